"""``counterfoil verify``: judges records, bare or signed, and says what it found.

Harnesses start it once per case, so it parses its own options and imports only what a bare record
needs. A file of many records is read as it is judged: memory does not grow with it.
"""

from __future__ import annotations

import os
import sys

from counterfoil.cli.verify_answers import Answerer, Asked
from counterfoil.cli.verify_inputs import STDIN, Problem, read
from counterfoil.errors import BadInput
from counterfoil.reader.shown import escaped
from counterfoil.record.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from counterfoil.cli.verify_answers import Answers
    from counterfoil.cli.verify_inputs import Batch
    from counterfoil.evidence.statement import Chain

ALLOWED, DENIED, UNUSABLE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141
FLAGS = ("--json", "--explain", "--strict")
VALUED = (
    "--key", "--keyring", "--threshold", "--at", "--chain-head", "--chain-count", "--jobs",
)  # fmt: skip
REPEATED = ("--key", "--keyring")
JOBS_MAX = 256


class Options(Value):
    """What the command line asks for."""

    paths: tuple[str, ...]
    asked: Asked
    jobs: int = 1


def run(argv: list[str]) -> int:
    """Judge what ``argv`` names; print the answers; return the exit code.

    0: all allowed. 1: one denied, or with ``--strict`` one with an advisory. 2: one malformed or
    refused, or an input that cannot be used, which is said on the error stream.
    """
    if sys.stdout is None:
        _complain("standard output is closed; open it, or nobody hears the answer")
        return UNUSABLE
    try:
        options = parse_options(argv)
        code = _print_answers(_answers(options), live=options.jobs == 1)
        sys.stdout.flush()
    except BadInput as error:
        _complain(str(error))
        _drop_output()
        return UNUSABLE
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()  # the reader of our output left
        return BROKEN_PIPE
    except OSError as error:
        _complain(str(_full(error)))
        _drop_output()
        return UNUSABLE
    return code


# --- options -------------------------------------------------------------------------------------


def parse_options(argv: list[str]) -> Options:
    """Return what ``argv`` asks for, key files read.

    Raises BadInput for an option or value that is none, without a path, and for keys that cannot be
    used.
    """
    paths: list[str] = []
    flags: set[str] = set()
    values: dict[str, list[str]] = {}
    rest = iter(argv)
    for word in rest:
        name, has_value, value = word.partition("=")
        if word == "--":
            paths += rest
        elif word in FLAGS:
            flags.add(word)
        elif name in VALUED:
            found = value if has_value else next(rest, None)
            if found is None:
                raise BadInput(f"{name} needs a value; --help shows examples")
            if name in values and name not in REPEATED:
                raise BadInput(f"{name} stands twice; give it once")
            values.setdefault(name, []).append(found)
        elif word.startswith("-") and word != STDIN:
            options = ", ".join(FLAGS + VALUED)
            raise BadInput(f"no option {escaped(word)}; the options are {options}")
        else:
            paths.append(word)
    if not paths:
        raise BadInput("name a record, a folder or - for standard input; --help shows examples")
    asked = Asked("--json" in flags, "--explain" in flags, "--strict" in flags)
    jobs = _number(values, "--jobs", most=JOBS_MAX)
    if values.keys() - {"--jobs"}:
        asked = _with_keys(asked, values)
    return Options(tuple(paths), asked, jobs)


def _with_keys(asked: Asked, values: Mapping[str, list[str]]) -> Asked:
    from counterfoil.cli.keyfiles import read_keyring
    from counterfoil.record import instants

    key_paths = [path for name in REPEATED for path in values.get(name, ())]
    if not key_paths:
        [name] = sorted(values.keys() - {"--jobs"})[:1]
        raise BadInput(
            f"{name} is about signed evidence; name trusted keys with --key or --keyring"
        )
    try:
        outside_time = instants.parse(values["--at"][0]) if "--at" in values else None
    except BadInput as error:
        raise BadInput(f"--at {error}") from None
    return asked._replace(
        keyring=read_keyring(key_paths, _number(values, "--threshold")),
        outside_time=outside_time,
        chain=_chain(values),
    )


def _chain(values: Mapping[str, list[str]]) -> Chain | None:
    if ("--chain-head" in values) != ("--chain-count" in values):
        raise BadInput("--chain-head and --chain-count go together; give both")
    if "--chain-head" not in values:
        return None
    from counterfoil.evidence.statement import chain_of

    return chain_of(values["--chain-head"][0], _number(values, "--chain-count"))


def _number(values: Mapping[str, list[str]], name: str, most: int = 2**53 - 1) -> int:
    """Return a number from 1 to ``most``, 1 where the option is not there."""
    text = values.get(name, ["1"])[0]
    if not (text.isascii() and text.isdigit() and len(text) <= 16 and 1 <= int(text) <= most):
        raise BadInput(f"{name} must be a number from 1 to {most}, not {escaped(text[:40])}")
    return int(text)


# --- answers -------------------------------------------------------------------------------------


def _answers(options: Options) -> Iterator[Answers | Problem]:
    items: Iterable[Batch | Problem] = read(options.paths, live=options.jobs == 1)
    if options.jobs > 1:
        from counterfoil.cli.verify_jobs import answers_of

        return answers_of(items, options.asked, options.jobs)
    answer = Answerer(options.asked).answer
    return (item if isinstance(item, Problem) else answer(item) for item in items)


def _print_answers(found: Iterator[Answers | Problem], *, live: bool) -> int:
    """Print answers as they come; return the exit code that they come to."""
    denied = unusable = False
    for item in found:
        if isinstance(item, Problem):
            unusable = True
            _flush()  # what came before is said before
            _complain(f"{escaped(item.path)}: {item.detail}")
            continue
        denied, unusable = denied or item.denied, unusable or item.unusable
        _write(item.text)
        if live:
            _flush()
    return UNUSABLE if unusable else DENIED if denied else ALLOWED


def _write(text: str) -> None:
    """Say something. Raises BadInput where the output takes no more."""
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError as error:
        _write(text.encode(error.encoding, "backslashreplace").decode(error.encoding))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _full(error) from None


def _flush() -> None:
    """Say what is due now. Raises BadInput where the output takes no more."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _full(error) from None


def _full(error: OSError) -> BadInput:
    problem = (error.strerror or "cannot be written").lower()
    return BadInput(f"standard output: {problem}; the answers are not complete")


def _drop_output() -> None:
    """What is still buffered has nowhere to go, and Python would complain when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        pass
    else:
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> None:
    if sys.stderr is None:
        return
    text = f"counterfoil verify: {message}\n"
    sys.stderr.write(text.encode("ascii", "backslashreplace").decode("ascii"))
