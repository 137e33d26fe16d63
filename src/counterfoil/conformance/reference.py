"""Two small runtimes: one asks the owner before it sends again, and one does not.

``reconcile`` passes every scenario; ``blind`` resends after any failure, as a plain retry wrapper
does, and fails. Both are what a first adapter may look like, and are what the suite is tested with.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import http.client
import json
import os
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from counterfoil.conformance.scenario import Json

CALL_S = 1.0
"""Seconds one exchange with the owner may take."""

PATIENCE_S = 3.0
"""Seconds in which the owner is asked before the answer is unknown."""

PAUSE_FIRST_S = 0.03
PAUSE_MAX_S = 0.4

CONFIRMED = "confirmed"
REFUSED = "refused"
NO_EFFECT = "no_effect"  # of this attempt alone: never sent, or its token was refused
UNKNOWN = "unknown"
ABSENT = "absent"  # was unknown, until the owner's absent answer covered it
ENDS_IN_DOUBT = (None, UNKNOWN)


@dataclass(slots=True)
class Attempt:
    """One dispatch. ``end`` is None from before the first byte until its worker has the reply."""

    number: int
    worker: str
    token: int | None
    end: str | None = None


@dataclass(slots=True)
class Book:
    """What is remembered of the operation."""

    attempts: list[Attempt] = field(default_factory=list)
    outcome: str | None = None

    def in_doubt(self) -> list[Attempt]:
        """Return the attempts that may have had an effect."""
        return [attempt for attempt in self.attempts if attempt.end in ENDS_IN_DOUBT]


class State:
    """The book in a folder, one file, changed under a lock; without a folder it is kept in memory.

    A worker holds a lock of its own as long as it lives: a lock that is free is a worker that died.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._memory = Book()
        self.worker = os.urandom(8).hex()
        if folder is not None:
            self._alive = (folder / f"{self.worker}.alive").open("w")
            fcntl.flock(self._alive, fcntl.LOCK_EX)

    @contextlib.contextmanager
    def change(self) -> Iterator[Book]:
        """Give the book as it stands, and store it durably when the block ends."""
        if self._folder is None:
            yield self._memory
            return
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            book = self._read(self._folder / "book.json")
            yield book
            fresh = self._folder / "book.new"
            with fresh.open("w") as file:
                json.dump(asdict(book), file)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._folder / "book.json")

    @staticmethod
    def _read(path: Path) -> Book:
        if not path.exists():
            return Book()
        stored = json.loads(path.read_text())
        return Book([Attempt(**each) for each in stored["attempts"]], stored["outcome"])

    def is_dead(self, worker: str) -> bool:
        """Whether an earlier worker on this host is proven dead."""
        if self._folder is None or worker == self.worker:
            return False
        with (self._folder / f"{worker}.alive").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    def close(self) -> None:
        """Let go of the worker's own lock."""
        if self._folder is not None:
            self._alive.close()


@dataclass(frozen=True, slots=True)
class Answer:
    """The owner's answer to a question; ``token`` was in force before or with it."""

    present: bool
    final: bool
    asked_at_s: float
    token: int | None


class Client:
    """The owner's three requests. None is no answer: cut, late, or not what was asked for."""

    def __init__(self, owner_url: str) -> None:
        parts = urlsplit(owner_url)
        self._host, self._port = parts.hostname or "", parts.port

    def request(
        self, method: str, path: str, body: Mapping[str, Json] | None = None
    ) -> tuple[int, dict[str, Json]] | None:
        """Send one request on a connection of its own; return the status and the JSON object."""
        connection = http.client.HTTPConnection(self._host, self._port, timeout=CALL_S)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            value = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()
        return (response.status, value) if isinstance(value, dict) else None


class Runtime:
    """What both policies share: the operation, the owner, and what is remembered."""

    def __init__(
        self, scenario: Mapping[str, Json], owner_url: str, state_folder: Path | None = None
    ) -> None:
        operation = cast("dict[str, Json]", scenario["operation"])
        self.key = str(operation["idempotencyKey"])
        self.args = operation["args"]
        self.promises = cast("dict[str, Json]", scenario["owner"])
        self.leased = "lease" in scenario
        self.client = Client(owner_url)
        self.state = State(state_folder)

    def read_token(self) -> int | None:
        """Return the lease's token, or None if it cannot be read."""
        reply = self.client.request("GET", "/lease")
        token = reply[1].get("token") if reply and reply[0] == 200 else None
        return token if isinstance(token, int) else None

    def call(
        self, key: str, args: Json, token: int | None
    ) -> tuple[str, tuple[int, dict[str, Json]] | None]:
        """Send the operation; return how the attempt ended, and the reply."""
        body: dict[str, Json] = {"idempotencyKey": key, "args": args}
        if token is not None:
            body["fencingToken"] = token
        reply = self.client.request("POST", "/effects", body)
        match reply:
            case (200, _):
                return CONFIRMED, reply
            case (409, {"error": "in_progress"}):
                return UNKNOWN, reply
            case (409, _):
                return REFUSED, reply
            case (412, _):
                return NO_EFFECT, reply
            case _:
                return UNKNOWN, reply

    def run(self) -> str:
        """Carry the operation out and return its outcome."""
        raise NotImplementedError


class Blind(Runtime):
    """Sends again after any failure."""

    def run(self) -> str:
        """Try three times."""
        token = self.read_token() if self.leased else None
        for _ in range(3):
            end, _reply = self.call(self.key, self.args, token)
            if end == CONFIRMED:
                return "committed"
            if end == REFUSED:
                return "not_run"
        return "unknown"


class Reconcile(Runtime):
    """Asks the owner before it sends again, and says unknown when nobody can know.

    An absent answer is believed only if each attempt in doubt is covered: by a token that is above
    the attempt's and in force, or by an end that was stored before the question and an owner that
    is final by then.
    """

    attempts_max = 4

    def run(self) -> str:
        """Carry it out; try again only where earlier attempts are known to be nothing."""
        self.token = self.read_token() if self.leased else None
        self.may_send = not self.leased or self.token is not None
        self.ends_seen_s: dict[int, float] = {}
        deadline_s = time.monotonic() + PATIENCE_S
        pause_s = PAUSE_FIRST_S
        try:
            while (outcome := self.step()) is None:
                if time.monotonic() > deadline_s:
                    return "unknown"
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, PAUSE_MAX_S)
            return outcome
        finally:
            self.state.close()

    def step(self) -> str | None:
        """Do the next thing; return the outcome once there is one."""
        with self.state.change() as book:
            if book.outcome is not None:
                return book.outcome
            sent, in_doubt = len(book.attempts), book.in_doubt()
            refused = any(attempt.end == REFUSED for attempt in book.attempts)
        if refused and not in_doubt:
            return self.after_refusal()
        if not in_doubt:
            return self.dispatch(expected=sent)
        self.note_ends(in_doubt)
        answer = self.ask()
        if answer is not None and answer.present:
            return self.settle("committed")
        if answer is None and (outcome := self.after_no_answer()):
            return outcome
        if answer is not None and all(self.covers(answer, attempt) for attempt in in_doubt):
            with self.state.change() as book:
                for attempt in in_doubt:
                    if book.attempts[attempt.number - 1].end in ENDS_IN_DOUBT:
                        book.attempts[attempt.number - 1].end = ABSENT
            return self.dispatch(expected=sent) if self.may_send else None
        if self.deduplicates_for_ever() and self.may_send:
            return self.dispatch(expected=sent)
        return None

    # --- sending ---------------------------------------------------------------------------------

    def dispatch(self, expected: int) -> str | None:
        """Store an attempt, send it, and store its end; do nothing if another worker was faster."""
        if not self.may_send:
            return None
        with self.state.change() as book:
            if len(book.attempts) != expected or book.outcome is not None:
                return None
            if expected >= self.attempts_max:
                return "unknown" if book.in_doubt() else "not_run"
            attempt = Attempt(expected + 1, self.state.worker, self.token)
            book.attempts.append(attempt)
        if not self.still_holds_lease():
            self.may_send = False
            return self.end(attempt, NO_EFFECT)
        self.before_call()
        end, reply = self.call(self.key_of(attempt), self.args, self.token_to_send())
        if end == NO_EFFECT:
            self.may_send = False
        if end == UNKNOWN and (outcome := self.after_unknown(reply)):
            return outcome
        return self.end(attempt, end)

    def end(self, attempt: Attempt, end: str) -> str | None:
        """Store how an attempt ended; return the outcome that this settles."""
        with self.state.change() as book:
            book.attempts[attempt.number - 1].end = end
            if end == CONFIRMED:
                book.outcome = "committed"
            return book.outcome

    def settle(self, outcome: str) -> str:
        """Store the outcome."""
        with self.state.change() as book:
            book.outcome = book.outcome or outcome
            return book.outcome

    def still_holds_lease(self) -> bool:
        """Compare the token with the one in force; it is never adopted."""
        return not self.leased or self.read_token() == self.token

    # --- asking ----------------------------------------------------------------------------------

    def ask(self) -> Answer | None:
        """Fence where the owner lets a question or a call do that, and ask about the key."""
        token = self.fence()
        carries = token is not None and self.promises["fences"] == "on_ask"
        query = f"?fencingToken={token}" if carries else ""
        asked_at_s = time.monotonic()
        reply = self.client.request("GET", f"/effects/{quote(self.key, safe='')}{query}")
        match reply:
            case (200, {"result": "present" | "absent" as result, "final": bool(final)}):
                return Answer(result == "present", final, asked_at_s, token)
            case _:
                return None

    def fence(self) -> int | None:
        """Return a token that is in force with the next question, or None."""
        match self.promises["fences"]:
            case "on_ask":
                return self.token
            case "by_lease":
                return self.read_token()
            case "by_call" if self.token is not None:
                reply = self.client.request("POST", "/fence", {"fencingToken": self.token})
                bar = reply[1].get("token") if reply and reply[0] == 200 else None
                return bar if isinstance(bar, int) else None
        return None

    def note_ends(self, in_doubt: list[Attempt]) -> None:
        """Note which attempts have ended, by their own worker's word or its death."""
        for attempt in in_doubt:
            if attempt.end == UNKNOWN or self.state.is_dead(attempt.worker):
                self.ends_seen_s.setdefault(attempt.number, time.monotonic())

    def covers(self, answer: Answer, attempt: Attempt) -> bool:
        """Whether an absent answer proves that this attempt has no effect and will have none."""
        if answer.token is not None and attempt.token is not None and answer.token > attempt.token:
            return True
        ended_at_s = self.ends_seen_s.get(attempt.number)
        if ended_at_s is None:
            return False
        if answer.final and self.promises["finalBy"] == "answer":
            return True
        settles_s = self.promises["settlesWithinSeconds"]
        return isinstance(settles_s, int | float) and answer.asked_at_s - ended_at_s > settles_s

    def deduplicates_for_ever(self) -> bool:
        """Whether the same call may be sent again without an answer."""
        return bool(
            self.promises["deduplicatesByKey"] and self.promises["keyRetentionSeconds"] is None
        )

    # --- what a mutant gets wrong ----------------------------------------------------------------

    def key_of(self, attempt: Attempt) -> str:  # noqa: ARG002
        """Every attempt goes out under the operation's own key."""
        return self.key

    def token_to_send(self) -> int | None:
        """A call carries the token that it was dispatched with."""
        return self.token

    def before_call(self) -> None:
        """Nothing is asked between the dispatch and the call: the answer would be too old."""

    def after_refusal(self) -> str | None:
        """A refusal settles the operation once no other attempt is in doubt."""
        return self.settle("not_run")

    def after_unknown(
        self,
        reply: tuple[int, dict[str, Json]] | None,  # noqa: ARG002
    ) -> str | None:
        """A reply that says nothing settles nothing."""
        return None

    def after_no_answer(self) -> str | None:
        """No answer settles nothing."""
        return None


POLICIES: dict[str, type[Runtime]] = {"reconcile": Reconcile, "blind": Blind}


def run(policy: str, scenario: Mapping[str, Json], owner_url: str) -> str:
    """Carry the scenario's operation out at the owner and return the outcome.

    ``policy`` is ``reconcile`` or ``blind``. What must survive a restart is kept in the folder that
    ``COUNTERFOIL_STATE_DIR`` names; without it nothing survives.
    """
    return run_class(POLICIES[policy], scenario, owner_url)


def run_class(kind: type[Runtime], scenario: Mapping[str, Json], owner_url: str) -> str:
    """Run one class of runtime; see ``run``."""
    folder = os.environ.get("COUNTERFOIL_STATE_DIR")
    return kind(scenario, owner_url, Path(folder) if folder else None).run()


def main(kinds: Mapping[str, type[Runtime]] = POLICIES, option: str = "--policy") -> int:
    """Run as the contract says: read a scenario file, print the outcome as the last line."""
    parser = argparse.ArgumentParser(description="A small runtime for the uncertain-effect suite.")
    parser.add_argument(option, dest="kind", choices=sorted(kinds), required=True)
    parser.add_argument("scenario", type=Path)
    options = parser.parse_args()
    owner_url = os.environ.get("AEV_EFFECT_OWNER")
    if not owner_url:
        parser.error("set AEV_EFFECT_OWNER to the owner's base URL")
    try:
        scenario: dict[str, Json] = json.loads(options.scenario.read_text("utf-8"))
    except (OSError, ValueError) as error:
        parser.error(f"{options.scenario} cannot be read as a scenario: {error}")
    print(json.dumps({"outcome": run_class(kinds[options.kind], scenario, owner_url)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
