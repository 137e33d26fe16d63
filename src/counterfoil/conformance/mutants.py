"""Ten ways to get it wrong, each one small change of ``reconcile``.

A suite that a mutant passes is not finished: ``CAUGHT_BY`` names, for each, a scenario that must
catch it, and a test runs them.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

from counterfoil.conformance.reference import (
    NO_EFFECT,
    Answer,
    Attempt,
    Reconcile,
    State,
    main,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from counterfoil.conformance.scenario import Json


class TrustsNonfinalAbsent(Reconcile):
    """Takes any absent answer for the last word."""

    def covers(self, answer: Answer, attempt: Attempt) -> bool:  # noqa: ARG002
        """Believe it."""
        return not answer.present


class ChangesKeyOnRetry(Reconcile):
    """Makes a new key for each attempt."""

    def key_of(self, attempt: Attempt) -> str:
        """Add the attempt's number to all but the first."""
        return self.key if attempt.number == 1 else f"{self.key}-{attempt.number}"


class DropsToken(Reconcile):
    """Has a lease and does not say so."""

    def token_to_send(self) -> int | None:
        """Leave the token out."""
        return None


class SendsSupersededToken(Reconcile):
    """Does not look whether its lease has moved."""

    def still_holds_lease(self) -> bool:
        """Assume it."""
        return True


class ReportsCommittedOnTimeout(Reconcile):
    """Hopes for the best when no reply comes."""

    def after_unknown(self, reply: tuple[int, dict[str, Json]] | None) -> str | None:
        """Settle a call without a reply as committed."""
        return "committed" if reply is None else None


class ReportsNotRunOn503(Reconcile):
    """Takes an owner that cannot answer for one that knows nothing."""

    def after_no_answer(self) -> str | None:
        """Settle as not run."""
        return "not_run"


class RetriesRefusalWithOtherArgs(Reconcile):
    """Changes the arguments when they are refused, and sends them under the same key."""

    def after_refusal(self) -> str | None:
        """Add a member and send again."""
        if isinstance(self.args, dict):
            self.args = {**self.args, "retry": True}
        with self.state.change() as book:
            book.attempts = [dataclasses.replace(one, end=NO_EFFECT) for one in book.attempts]
            sent = len(book.attempts)
        return self.dispatch(expected=sent)


class ResendsWhileInProgress(Reconcile):
    """Takes "in progress" for an invitation to try again."""

    def end(self, attempt: Attempt, end: str) -> str | None:
        """Forget that an attempt in progress is in doubt."""
        return super().end(attempt, NO_EFFECT if self._in_progress else end)

    def after_unknown(self, reply: tuple[int, dict[str, Json]] | None) -> str | None:
        """Note whether the owner said so."""
        self._in_progress = reply is not None and reply[1].get("error") == "in_progress"
        return None

    _in_progress = False


class BelievesAnswerAskedDuringCall(Reconcile):
    """Asks before the call has ended, and uses the answer afterwards."""

    _early: Answer | None = None

    def before_call(self) -> None:
        """Ask once the dispatch is stored."""
        self._early = self._early or super().ask()

    def ask(self) -> Answer | None:
        """Use the early answer, as if it had been asked for now."""
        early, self._early = self._early, None
        return early or super().ask()


class ForgetsStateOnRestart(Reconcile):
    """Keeps nothing where it would be found again."""

    def __init__(
        self,
        scenario: Mapping[str, Json],
        owner_url: str,
        state_folder: Path | None = None,  # noqa: ARG002
    ) -> None:
        super().__init__(scenario, owner_url, None)
        self.state = State(None)


MUTANTS: dict[str, type[Reconcile]] = {
    "trusts_nonfinal_absent": TrustsNonfinalAbsent,
    "changes_key_on_retry": ChangesKeyOnRetry,
    "drops_token": DropsToken,
    "sends_superseded_token": SendsSupersededToken,
    "reports_committed_on_timeout": ReportsCommittedOnTimeout,
    "reports_not_run_on_503": ReportsNotRunOn503,
    "retries_refusal_with_other_args": RetriesRefusalWithOtherArgs,
    "resends_while_in_progress": ResendsWhileInProgress,
    "believes_answer_asked_during_call": BelievesAnswerAskedDuringCall,
    "forgets_state_on_restart": ForgetsStateOnRestart,
}
"""The mutants by name."""

CAUGHT_BY: dict[str, tuple[str, str]] = {
    "trusts_nonfinal_absent": ("core", "late-commit-after-missed-lookup"),
    "changes_key_on_retry": ("crash", "killed-with-an-owner-that-only-deduplicates"),
    "drops_token": ("core", "lease-lost-after-lost-reply"),
    "sends_superseded_token": ("zombie", "lease-lost-with-nothing-committed"),
    "reports_committed_on_timeout": ("core", "lost-before-commit"),
    "reports_not_run_on_503": ("core", "owner-unreachable-after-lost-reply"),
    "retries_refusal_with_other_args": ("core", "definite-no-effect"),
    "resends_while_in_progress": ("field", "f12-a-call-still-in-progress"),
    "believes_answer_asked_during_call": ("core", "commit-then-lost-reply"),
    "forgets_state_on_restart": ("crash", "killed-after-the-commit"),
}
"""For each mutant, the set and the scenario that must catch it."""


if __name__ == "__main__":
    sys.exit(main(MUTANTS, "--mutant"))
