"""Scenario files -> scenarios, strictly: what is not understood is refused, with its place."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from counterfoil.conformance.scenario import (
    SETS,
    Accepted,
    CallStep,
    Deed,
    Fault,
    Fences,
    Json,
    Landing,
    LandsWhen,
    LookupStep,
    Moment,
    Outcome,
    Promises,
    Reply,
    Says,
    Scenario,
    ScenarioError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

SHIPPED = Path(__file__).parent / "scenarios"
SCENARIO_BYTES_MAX = 256 * 1024
"""One scenario file: a page of JSON; a larger one is some other file."""

SECONDS_MAX = 60.0
"""No scripted wait is longer than the minute that a runtime has."""

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)
_Word = TypeVar("_Word", bound=StrEnum)


def shipped_scenarios(*sets: str) -> tuple[Scenario, ...]:
    """Return the shipped scenarios of ``sets``; without any, those of ``core``.

    Raises ``ScenarioError`` for a set that is not shipped.
    """
    found: list[Scenario] = []
    for name in sets or ("core",):
        if name not in SETS:
            raise ScenarioError(name, "", f"no such set; there are {', '.join(SETS)}")
        found += load_folder(SHIPPED / name, name)
    return tuple(found)


def load_folder(folder: Path, set_name: str = "own") -> tuple[Scenario, ...]:
    """Read each ``*.json`` of a folder, in the order of the names; ids may not repeat."""
    if not folder.is_dir():
        raise ScenarioError(str(folder), "", "no such folder; name one that holds scenario files")
    scenarios = tuple(load_file(path, set_name) for path in sorted(folder.glob("*.json")))
    if not scenarios:
        raise ScenarioError(str(folder), "", "holds no scenario; put *.json files there")
    seen: set[str] = set()
    for scenario in scenarios:
        if scenario.id in seen:
            raise ScenarioError(str(folder), "/id", f"{scenario.id!r} is there twice; rename one")
        seen.add(scenario.id)
    return scenarios


def load_file(path: Path, set_name: str = "own") -> Scenario:
    """Read one scenario. Raises ``ScenarioError`` naming the file and a JSON Pointer."""
    try:
        with path.open("rb") as file:
            data = file.read(SCENARIO_BYTES_MAX + 1)
    except OSError as error:
        raise ScenarioError(str(path), "", f"cannot be read: {error.strerror}") from None
    if len(data) > SCENARIO_BYTES_MAX:
        raise ScenarioError(str(path), "", f"is larger than {SCENARIO_BYTES_MAX} bytes")
    return scenario_from_bytes(data, str(path), set_name)


def scenario_from_bytes(data: bytes, file: str, set_name: str = "own") -> Scenario:
    """Read one scenario from the bytes of a file; ``file`` is its name in messages."""
    try:
        value: Json = json.loads(
            data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        raise ScenarioError(file, "", f"is no JSON that can be used: {error}") from None
    return _scenario(_Place(value, "", file), set_name)


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member name is there twice")
    return members


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


@dataclass(frozen=True, slots=True)
class _Place:
    """A value in a file and where it stands; each method reads it as one shape or refuses it."""

    value: Json
    pointer: str
    file: str

    def refuse(self, detail: str) -> NoReturn:
        raise ScenarioError(self.file, self.pointer, detail)

    def members(self, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, _Place]:
        if not isinstance(self.value, dict):
            self.refuse("must be an object")
        required, known = list(required), {*required, *optional}
        for name in self.value:
            if name not in known:
                self._inside(name).refuse(f"is unknown here; known are {', '.join(sorted(known))}")
        for name in required:
            if name not in self.value:
                self._inside(name).refuse("is missing")
        return {name: self._inside(name) for name in self.value}

    def _inside(self, name: str) -> _Place:
        assert isinstance(self.value, dict)
        step = name.replace("~", "~0").replace("/", "~1")
        return _Place(self.value.get(name), f"{self.pointer}/{step}", self.file)

    def items(self) -> tuple[_Place, ...]:
        if not isinstance(self.value, list) or not self.value:
            self.refuse("must be a list with at least one entry")
        return tuple(
            _Place(value, f"{self.pointer}/{n}", self.file) for n, value in enumerate(self.value)
        )

    def text(self) -> str:
        if not isinstance(self.value, str) or not self.value:
            self.refuse("must be a string that is not empty")
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            self.refuse("must be true or false")
        return self.value

    def whole(self, least: int, most: int = 1_000_000) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self.refuse("must be a whole number")
        if not least <= self.value <= most:
            self.refuse(f"must lie between {least} and {most}")
        return self.value

    def seconds(self, most: float = SECONDS_MAX) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.refuse("must be a number of seconds")
        if not 0 <= self.value <= most:
            self.refuse(f"must lie between 0 and {most:g} seconds")
        return float(self.value)

    def word(self, words: type[_Word]) -> _Word:
        try:
            return words(self.text())
        except ValueError:
            self.refuse(f"{self.value!r} is none of {', '.join(words)}")


def _scenario(place: _Place, set_name: str) -> Scenario:
    members = place.members(
        ("id", "summary", "operation", "owner", "behaviour", "accepted"), ("lease", "faults")
    )
    if not _ID.fullmatch(members["id"].text()):
        members["id"].refuse("must be words of a-z and 0-9 joined by hyphens")
    _operation(members["operation"])
    promises = _promises(members["owner"])
    worker = None
    if "lease" in members:
        worker = members["lease"].members(("worker",))["worker"].text()
    elif promises.fences is not Fences.NO:
        members["owner"].refuse("fences by tokens, and the scenario names no lease; add one")
    calls, lookups = _behaviour(members["behaviour"], promises, has_lease=worker is not None)
    faults = _faults(members.get("faults"), has_lease=worker is not None)
    _check_wake(members["behaviour"], calls, faults)
    assert isinstance(place.value, dict)
    return Scenario(
        members=place.value,
        id=members["id"].text(),
        set_name=set_name,
        summary=members["summary"].text(),
        promises=promises,
        worker=worker,
        calls=calls,
        lookups=lookups,
        faults=faults,
        accepted=tuple(_accepted(entry) for entry in members["accepted"].items()),
    )


def _operation(place: _Place) -> None:
    members = place.members(("id", "action", "idempotencyKey", "args"), ("hints",))
    for name in ("id", "action", "idempotencyKey"):
        members[name].text()
    for name in {"args", "hints"} & set(members):
        if not isinstance(members[name].value, dict):
            members[name].refuse("must be an object")


def _promises(place: _Place) -> Promises:
    members = place.members(
        (
            "deduplicatesByKey",
            "keyRetentionSeconds",
            "lookup",
            "finalBy",
            "settlesWithinSeconds",
            "fences",
        )
    )
    final_by = members["finalBy"]
    if final_by.value not in ("answer", None):
        final_by.refuse('must be "answer" or null')
    retention, settles = members["keyRetentionSeconds"], members["settlesWithinSeconds"]
    return Promises(
        deduplicates=members["deduplicatesByKey"].flag(),
        key_retention_s=None if retention.value is None else retention.seconds(most=1e9),
        lookup=members["lookup"].flag(),
        final_by_answer=final_by.value == "answer",
        settles_within_s=None if settles.value is None else settles.seconds(),
        fences=members["fences"].word(Fences),
    )


def _behaviour(
    place: _Place, promises: Promises, *, has_lease: bool
) -> tuple[tuple[CallStep, ...], tuple[LookupStep, ...]]:
    members = place.members(("calls",), ("lookups",))
    calls = tuple(_call(entry, has_lease=has_lease) for entry in members["calls"].items())
    if not promises.lookup:
        if "lookups" in members:
            members["lookups"].refuse("the owner cannot be asked; leave look-ups out")
        return calls, (LookupStep(Says.UNAVAILABLE),)
    if "lookups" not in members:
        return calls, (LookupStep(),)
    return calls, tuple(_lookup(entry) for entry in members["lookups"].items())


def _call(place: _Place, *, has_lease: bool) -> CallStep:
    members = place.members(("reply",), ("lands", "status", "delaySeconds", "movesLease"))
    reply = members["reply"].word(Reply)
    landing = Landing(LandsWhen.NEVER if reply is Reply.REFUSED else LandsWhen.NOW)
    if "lands" in members:
        landing = _landing(members["lands"])
    if landing.when is LandsWhen.NEVER and reply is Reply.CONFIRMED:
        members["reply"].refuse("an owner does not confirm what never lands")
    if "status" in members and reply not in (Reply.STATUS, Reply.IN_PROGRESS):
        members["status"].refuse("goes with the replies status and in_progress only")
    if reply is Reply.STATUS and "status" not in members:
        place.refuse("the reply status needs a status")
    if "movesLease" in members and not has_lease:
        members["movesLease"].refuse("the scenario names no lease")
    return CallStep(
        landing=landing,
        reply=reply,
        status=members["status"].whole(201, 599) if "status" in members else 409,
        delay_s=members["delaySeconds"].seconds() if "delaySeconds" in members else 0.0,
        moves_lease="movesLease" in members and members["movesLease"].flag(),
    )


def _landing(place: _Place) -> Landing:
    if isinstance(place.value, str):
        when = place.word(LandsWhen)
        if when not in (LandsWhen.NOW, LandsWhen.NEVER):
            place.refuse('must be "now", "never" or an object with after')
        return Landing(when)
    members = place.members(("after",), ("count",))
    when = members["after"].word(LandsWhen)
    if when in (LandsWhen.NOW, LandsWhen.NEVER):
        members["after"].refuse("must be lookups, calls, seconds, release or wake")
    if when in (LandsWhen.RELEASE, LandsWhen.WAKE):
        if "count" in members:
            members["count"].refuse(f"a {when} is not counted")
        return Landing(when)
    if "count" not in members:
        place.refuse("needs a count")
    count = members["count"]
    return Landing(when, count.seconds() if when is LandsWhen.SECONDS else count.whole(1))


def _lookup(place: _Place) -> LookupStep:
    members = place.members(("says",), ("delaySeconds",))
    delay = members["delaySeconds"].seconds() if "delaySeconds" in members else 0.0
    return LookupStep(members["says"].word(Says), delay)


def _faults(place: _Place | None, *, has_lease: bool) -> tuple[Fault, ...]:
    if place is None:
        return ()
    return tuple(_fault(entry, has_lease=has_lease) for entry in place.items())


def _check_wake(place: _Place, calls: tuple[CallStep, ...], faults: tuple[Fault, ...]) -> None:
    unsent = any(step.landing.when is LandsWhen.WAKE for step in calls)
    if unsent and not {Deed.FREEZE, Deed.WAKE} <= {fault.do for fault in faults}:
        place.refuse("a call lands after a wake, and no faults freeze a worker and wake it")


def _fault(place: _Place, *, has_lease: bool) -> Fault:
    members = place.members(("do",), ("at", "count"))
    deed = members["do"].word(Deed)
    moment = members["at"].word(Moment) if "at" in members else None
    if not has_lease and (deed is Deed.MOVE_LEASE or moment is Moment.LEASE_READ):
        place.refuse("the scenario names no lease")
    if "count" in members and moment is None:
        members["count"].refuse("counts moments; say at which")
    return Fault(deed, moment, members["count"].whole(1) if "count" in members else 1)


def _accepted(place: _Place) -> Accepted:
    members = place.members(("effects", "outcome"))
    return Accepted(members["effects"].whole(0), members["outcome"].word(Outcome))
