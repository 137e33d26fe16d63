"""What `check_effect` found, in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Subject(StrEnum):
    """What a finding is about: the user's two functions, a promise of the owner, or the set-up."""

    CALL = "call"
    LOOK_UP = "look-up"
    DEDUPLICATES = "deduplicates"
    SETTLES_WITHIN = "settles_within"
    FINAL_BY = "final_by"
    FENCES = "fences"
    SET_UP = "set-up"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not hold.

    ``promise`` is what does not hold, ``done`` what was tried, ``seen`` what came of it, and
    ``change`` what to do about it; each of the three is a sentence.
    """

    promise: Subject
    done: str
    seen: str
    change: str

    def __str__(self) -> str:
        return f"{self.promise} does not hold. {self.done} {self.seen} {self.change}"


class EffectFindings(AssertionError):
    """An effect was checked and something does not hold; the text is the report."""


@dataclass(frozen=True, slots=True)
class Report:
    """The findings about one effect.

    ``tried`` names the trials that were carried out; ``notes`` are sentences on what was not tried,
    or stayed unknown without anything being wrong.
    """

    effect: str
    tried: tuple[str, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether everything that was tried holds."""
        return not self.findings

    def raise_for_findings(self) -> Self:
        """Return self if all holds. Raises ``EffectFindings``, an ``AssertionError``."""
        if self.findings:
            raise EffectFindings(str(self))
        return self

    def __str__(self) -> str:
        count = len(self.findings)
        said = "nothing found" if not count else f"{count} finding{'s' if count > 1 else ''}"
        lines = [f"effect {self.effect!r}: {said} (tried: {', '.join(self.tried)})"]
        lines += [f"  {number}. {finding}" for number, finding in enumerate(self.findings, 1)]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)
