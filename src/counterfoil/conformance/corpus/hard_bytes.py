"""Hard cases of bytes: what is one JSON object in UTF-8, and what only resembles one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.conformance.corpus.building import put, put_raw, swap, whole
from counterfoil.limits import RECORD_DEPTH_MAX

if TYPE_CHECKING:
    from counterfoil.conformance.corpus.building import Case, Controls, Edit

NOTICE, KIND, UNITS = "/notices/0", "/notices/0/kind", "/notices/0/units"
DEPTH_OF_UNITS = 4  # the document, its notices, the notice, and the first container in it
DEEP = 20_000
REPORTED = '  "reported": {\n    "outcome": "committed"\n  }'


def nested(containers: int) -> str:
    """Return lists inside one another."""
    return "[" * containers + "]" * containers


def cases(controls: Controls) -> list[Case]:
    """Return the cases, each next to its twin."""
    made = [controls.allow(name, "confirmed", edit, make) for name, edit, make in ALLOWED]
    return made + [controls.malformed(name, "confirmed", edit, make) for name, edit, make in BROKEN]


_FITS = RECORD_DEPTH_MAX - DEPTH_OF_UNITS + 1

ALLOWED: tuple[tuple[str, str, Edit], ...] = (
    (
        "names-that-differ-by-case",
        "a member Reported beside reported says something else; names are case-sensitive",
        put("/Reported", {"outcome": "not_run"}),
    ),
    (
        "names-in-a-notice-that-differ-by-case",
        "a notice holds the names a and A",
        put_raw(NOTICE, '{"a": 1, "A": 1}'),
    ),
    (
        "names-that-differ-by-normal-form",
        "a notice holds one letter composed and decomposed; names are not normalised",
        put_raw(NOTICE, '{"\u00e9": 1, "e\u0301": 1}'),
    ),
    (
        "name-that-is-escaped",
        "a member's name is written with an escape",
        swap('"reply"', '"\\u0072eply"'),
    ),
    (
        "text-of-many-scripts",
        "a notice holds letters of two, three and four bytes",
        put_raw(KIND, '"\u00e9 \u4e2d \U0001f9fe"'),
    ),
    ("surrogate-pair-escaped", "a notice holds an escaped pair", put_raw(KIND, '"\\ud83e\\uddfe"')),
    (
        "control-character-escaped",
        "a notice holds an escaped control character",
        put_raw(KIND, '"a\\u0000b"'),
    ),
    (
        "white-space-around",
        "white space stands before and after the document",
        whole(lambda data: b"\n\t " + data + b"\r\n \n"),
    ),
    (
        "all-on-one-line",
        "the document is one line",
        whole(lambda data: b"".join(line.strip() for line in data.splitlines())),
    ),
    ("number-that-underflows", "a notice's number is nearly zero", put_raw(UNITS, "1e-400")),
    ("number-of-300-digits", "a notice's number is large", put_raw(UNITS, "9" * 300)),
    ("number-minus-zero", "a notice's number is minus zero", put_raw(UNITS, "-0")),
    ("as-deep-as-allowed", "a notice makes the document 128 deep", put_raw(UNITS, nested(_FITS))),
    (
        "brackets-inside-a-string",
        "a notice's text holds many brackets, which nest nothing",
        put(KIND, "[" * 300),
    ),
)

BROKEN: tuple[tuple[str, str, Edit], ...] = (
    (
        "name-twice",
        "reported stands there twice, alike",
        swap(REPORTED, REPORTED + ",\n" + REPORTED),
    ),
    ("name-twice-in-a-notice", "a notice holds a twice", put_raw(NOTICE, '{"a": 1, "a": 1}')),
    (
        "name-twice-once-escaped",
        "a notice holds a twice, once escaped",
        put_raw(NOTICE, '{"a": 1, "\\u0061": 1}'),
    ),
    ("byte-that-is-no-utf-8", "a notice holds the byte ff", put_raw(KIND, b'"\xff"')),
    ("surrogate-as-bytes", "a notice holds a surrogate in bytes", put_raw(KIND, b'"\xed\xa0\x80"')),
    ("overlong-bytes", "a notice holds a slash in two bytes", put_raw(KIND, b'"\xc0\xaf"')),
    ("surrogate-alone", "a notice holds one escaped surrogate", put_raw(KIND, '"\\ud83e"')),
    ("surrogates-reversed", "an escaped pair, reversed", put_raw(KIND, '"\\uddfe\\ud83e"')),
    (
        "surrogate-alone-in-a-name",
        "a notice's name is one surrogate",
        put_raw(NOTICE, '{"\\udc00": 1}'),
    ),
    ("control-character-bare", "a notice holds a bare control", put_raw(KIND, b'"a\x1fb"')),
    (
        "byte-order-mark",
        "the document begins with a byte order mark",
        whole(lambda data: b"\xef\xbb\xbf" + data),
    ),
    (
        "no-break-space-before",
        "the document begins with a no-break space",
        whole(lambda data: b"\xc2\xa0" + data),
    ),
    ("utf-16", "the document is UTF-16", whole(lambda data: data.decode().encode("utf-16-le"))),
    ("nul-after", "a NUL follows the document", whole(lambda data: data + b"\0")),
    ("second-object-after", "a second object follows", whole(lambda data: data + b"{}\n")),
    ("document-that-is-a-list", "the record stands in a list", whole(lambda d: b"[" + d + b"]")),
    ("document-that-is-empty", "the file is empty", whole(lambda _: b"")),
    ("document-cut-off", "the end of the document is missing", whole(lambda data: data[:-60])),
    ("comma-at-the-end", "a comma follows the last member", whole(lambda d: d[:-3] + b",\n}\n")),
    ("comment", "a comment stands in the document", whole(lambda d: b"{ // trail" + d[1:])),
    ("number-nan", "a notice's number is NaN", put_raw(UNITS, "NaN")),
    ("number-infinity", "a notice's number is -Infinity", put_raw(UNITS, "-Infinity")),
    ("number-that-overflows", "a notice's number overflows a double", put_raw(UNITS, "1e400")),
    ("number-of-5000-digits", "a notice's number overflows a double", put_raw(UNITS, "9" * 5000)),
    ("number-with-a-leading-zero", "a notice's number is 01", put_raw(UNITS, "01")),
    ("too-deep-by-one", "a notice makes the document 129 deep", put_raw(UNITS, nested(_FITS + 1))),
    ("too-deep-by-far", "a notice nests lists without end", put_raw(UNITS, nested(DEEP))),
)
