"""Hard cases of time: RFC 3339 as it is written, and instants compared exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.conformance.corpus.building import each, put, put_raw
from counterfoil.conformance.corpus.trails import at

if TYPE_CHECKING:
    from counterfoil.conformance.corpus.building import Case, Controls, Edit

EXPIRES = "/reservation/expiresAt"
SENT, SENT_AGAIN = "/attempts/0/dispatchedAt", "/attempts/1/dispatchedAt"
ANSWERED = "/reconciliations/0/at"
RETENTION = "/effectOwner/keyRetentionSeconds"
RETRY, SETTLED = "retry_after_unknown", "outcome_settled_without_authority"
DAY = "2026-03-02"


def cases(controls: Controls) -> list[Case]:
    """Return the cases: how a time is written, then what follows from when it is."""
    made = [
        controls.allow(name, "unknown", f"it expires at {text!r}", put(EXPIRES, text))
        for name, text in WRITTEN_WELL
    ]
    made += [controls.allow(*row) for row in ALLOWED]
    made += [controls.deny(*row) for row in DENIED]
    return made + [
        controls.malformed(name, "unknown", f"it expires at {text!r}", put(EXPIRES, text))
        for name, text in WRITTEN_BADLY
    ]


# No check compares these: whoever does not read them will not see what is wrong with the others.
WRITTEN_WELL = (
    ("time-in-lower-case", "2026-03-02t23:00:00z"),
    ("time-at-minus-zero", "2026-03-02T23:00:00-00:00"),
    ("time-at-the-widest-offset", "2026-03-02T23:00:00+23:59"),
    ("time-on-a-leap-day", "2028-02-29T23:59:59Z"),
    ("time-with-60-digits", "2026-03-02T23:00:00." + "0123456789" * 6 + "Z"),
    ("time-in-the-last-second", "9999-12-31T23:59:59.999999999Z"),
    ("time-in-the-first-second", "0001-01-01T00:00:00Z"),
)

WRITTEN_BADLY = (
    ("time-with-a-space", "2026-03-02 23:00:00Z"),
    ("time-with-a-comma", "2026-03-02T23:00:00,5Z"),
    ("time-without-an-offset", "2026-03-02T23:00:00"),
    ("time-at-24-00", "2026-03-02T24:00:00Z"),
    ("time-beyond-the-widest-offset", "2026-03-02T23:00:00+24:00"),
    ("time-with-a-bare-offset", "2026-03-02T23:00:00+0200"),
    ("time-in-the-year-0", "0000-01-01T00:00:00Z"),
    ("time-in-full-width-digits", "２０２６-03-02T23:00:00Z"),  # noqa: RUF001
    ("time-on-no-leap-day", "2026-02-29T23:59:59Z"),
    ("time-without-digits-after-the-point", "2026-03-02T23:00:00.Z"),
    ("time-by-the-week", "2026-W10-1T23:00:00Z"),
    ("time-without-seconds", "2026-03-02T23:00Z"),
    ("time-with-a-line-feed", "2026-03-02T23:00:00Z\n"),
)

ALLOWED: tuple[tuple[str, str, str, Edit], ...] = (
    (
        "answer-a-nanosecond-after-the-dispatch",
        "resent",
        "dispatch, answer and second dispatch differ in the ninth digit and the tenth",
        each(
            (SENT, at("09:00:00.123456788")),
            (ANSWERED, at("09:00:00.123456789")),
            (SENT_AGAIN, at("09:00:00.1234567891")),
        ),
    ),
    (
        "zeros-at-the-end-of-a-fraction",
        "resent",
        "the dispatch at .5 is written with eleven zeros more; the answer at .50001 is later",
        each((SENT, at("09:00:00.500000000000")), (ANSWERED, at("09:00:00.50001"))),
    ),
    (
        "answer-between-in-another-offset",
        "resent",
        "the answer's clock shows 10:02, an hour ahead of the dispatches' clock",
        put(ANSWERED, f"{DAY}T10:02:00+01:00"),
    ),
    (
        "answer-between-on-another-date",
        "resent",
        "where the owner is, it is the next day",
        put(ANSWERED, "2026-03-03T00:02:00+15:00"),
    ),
    (
        "answer-later-in-another-offset",
        "absent",
        "the answer's clock shows 08:30, an hour behind: it is after the dispatch",
        put(ANSWERED, f"{DAY}T08:30:00-01:00"),
    ),
    (
        "lease-ends-later-in-another-offset",
        "leased",
        "the lease ends at 08:40 by a clock that is an hour behind",
        put("/leases/1/expiresAt", f"{DAY}T08:40:00-01:00"),
    ),
    (
        "resend-just-inside-a-decimal-window",
        "deduplicated",
        "a window of 600.000000001 s, and 600 s between the dispatches",
        put_raw(RETENTION, "600.000000001"),
    ),
    (
        "resend-inside-a-window-with-an-exponent",
        "deduplicated",
        "a window of 6.001e2 s, and 600 s between the dispatches",
        put_raw(RETENTION, "6.001e2"),
    ),
    (
        "window-beyond-any-time",
        "deduplicated",
        "a window of 1e308 s",
        put_raw(RETENTION, "1e308"),
    ),
)

DENIED: tuple[tuple[str, str, str, str, Edit], ...] = (
    (
        "answer-a-nanosecond-before-the-dispatch",
        "resent",
        RETRY,
        "the answer precedes the dispatch by the ninth digit",
        each((SENT, at("09:00:00.123456789")), (ANSWERED, at("09:00:00.123456788"))),
    ),
    (
        "answer-a-nanosecond-after-the-resend",
        "resent",
        RETRY,
        "the answer follows the second dispatch by the ninth digit",
        each((ANSWERED, at("09:05:00.000000002")), (SENT_AGAIN, at("09:05:00.000000001"))),
    ),
    (
        "answer-after-the-resend-in-another-offset",
        "resent",
        RETRY,
        "the answer's clock shows 09:02, an hour behind: it is after the second dispatch",
        put(ANSWERED, f"{DAY}T09:02:00-01:00"),
    ),
    (
        "answer-before-the-dispatch-in-another-offset",
        "resent",
        RETRY,
        "the answer's clock shows 09:02, an hour ahead: it is before the dispatch",
        put(ANSWERED, f"{DAY}T09:02:00+01:00"),
    ),
    (
        "answer-earlier-in-another-offset",
        "absent",
        SETTLED,
        "the answer's clock shows 09:30, an hour ahead: nothing settles what was sent after it",
        put(ANSWERED, f"{DAY}T09:30:00+01:00"),
    ),
    (
        "answer-earlier-by-the-tenth-digit",
        "absent",
        SETTLED,
        "the answer precedes the dispatch by the tenth digit",
        each((SENT, at("09:30:00.0000000001")), (ANSWERED, at("09:30:00"))),
    ),
    (
        "lease-ended-in-another-offset",
        "leased",
        "dispatch_beyond_lease",
        "the lease ends at 09:40 by a clock that is an hour ahead",
        put("/leases/1/expiresAt", f"{DAY}T09:40:00+01:00"),
    ),
    (
        "lease-begun-a-nanosecond-late",
        "leased",
        "dispatch_beyond_lease",
        "the lease begins after the dispatch by the ninth digit",
        put("/leases/1/acquiredAt", at("09:20:00.000000001")),
    ),
    (
        "resend-just-outside-a-decimal-window",
        "deduplicated",
        RETRY,
        "a window of 599.999999999 s, and 600 s between the dispatches",
        put_raw(RETENTION, "599.999999999"),
    ),
    (
        "resend-outside-a-window-with-an-exponent",
        "deduplicated",
        RETRY,
        "a window of 5.999e2 s, and 600 s between the dispatches",
        put_raw(RETENTION, "5.999e2"),
    ),
    (
        "window-compared-as-the-decimal-written",
        "deduplicated",
        RETRY,
        "0.1 s as a double is longer than 0.1 s; the resend lies between the two",
        each((RETENTION, 0.1), (SENT_AGAIN, at("09:00:00.100000000000000005"))),
    ),
    (
        "window-of-no-time",
        "deduplicated",
        RETRY,
        "the owner keeps keys for 0 s",
        put(RETENTION, 0),
    ),
)
