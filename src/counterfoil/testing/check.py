"""`check_effect`: lost replies, late commits, partial views and stale reads, driven through a
user's own call and look-up by the real coordinator, each beside the truth in a sandbox.

Without a fault first: what does not hold there explains all that would follow, so nothing else is
tried until it is mended. Then each fault meets the first call of an operation of its own. The
coordinator runs on a virtual clock: before it jumps, what is held is delivered, so that nothing
lands later than any promise allows because of us.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
import time
from typing import TYPE_CHECKING, Any

from counterfoil.errors import BadInput
from counterfoil.operation.events import Answered, Dispatched
from counterfoil.operation.identity import StreamId, make_key
from counterfoil.operation.promises import Duration, Fences, seconds
from counterfoil.operation.replies import Answer, ReplyKind, Result
from counterfoil.owners.port import Attempt, Operation
from counterfoil.record.digests import canonical_bytes
from counterfoil.testing import judging
from counterfoil.testing.books import VirtualClock, memory_book
from counterfoil.testing.recorder import Recorder, check_no_loop_runs
from counterfoil.testing.report import Finding, Report
from counterfoil.testing.sandbox import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from counterfoil.coordinator.effects import Effect
    from counterfoil.coordinator.outcome import Outcome
    from counterfoil.testing.recorder import Asked
    from counterfoil.testing.sandbox import Sandbox

CROWD = 120
"""Other effects made before a look-up is asked about an old one: more than a common page (100)."""

WATCH_S = 2.0
"""Seconds that an effect is waited for before it counts as not there."""

POLL_S = 0.005
"""Seconds between two looks at the truth."""

PATIENCE_S = 60.0
"""Virtual seconds of patience beyond `settles_within`."""

PATIENT_CALL_S = 5.0
"""Seconds after which a call that names no deadline is said to wait long."""

NAMESPACE = "check"


def check_effect(
    effect: Effect[..., Any],
    sandbox: Sandbox,
    *,
    crowd: int = CROWD,
    watch: Duration = WATCH_S,
) -> Report:
    """Try an effect's own call and look-up against faults, and say which promise does not hold.

    ``crowd`` is how many other effects are made to try a look-up that reads a list (0: not tried),
    ``watch`` how long an effect may take to be there. Nothing is registered and no file is written.
    What time and chance alone would show stays unproven: a report without findings is no proof.
    Raises ``BadInput`` for arguments that do not fit the effect.
    """
    if crowd < 0:
        raise BadInput("check_effect: crowd is a number of effects, 0 or more")
    check_no_loop_runs(effect.adapter)
    return _Check(effect, sandbox, crowd, seconds(watch, of="watch")).run()


class _Check:
    def __init__(
        self, effect: Effect[..., Any], sandbox: Sandbox, crowd: int, watch_s: float
    ) -> None:
        self.effect, self.sandbox = effect, sandbox
        self.crowd, self.watch_s = crowd, watch_s
        self.promises = effect.owner.promises
        self.recorder = Recorder(effect.adapter, sandbox)
        self.recorded = dataclasses.replace(effect, ready=self.recorder)
        patience_s = PATIENCE_S + (self.promises.settles_within_s or 0.0)
        self.book = memory_book(
            clock=VirtualClock(self.before_jump), namespace=NAMESPACE, patience=patience_s
        )
        self.nonce = secrets.token_hex(4)  # a server that remembers keys has not seen these
        self.made = 0
        self.tried: list[str] = []
        self.notes: list[str] = []
        self.findings: dict[tuple[str, str], Finding] = {}
        self.plain_writes = 0
        self.plain_attempt: Attempt | None = None
        self.lag_s = 0.0
        self.landing_s = 0.0
        self.watch_until_s = 0.0
        self.landed_after_s: float | None = None
        self.released = True

    def run(self) -> Report:
        try:
            self.plain()
            if not self.findings:
                self.crowded()
                self.called_twice()
                for fault in Fault:
                    self.under(fault)
            else:
                self.notes.append("mend this first: nothing else was tried")
        finally:
            self.sandbox.set_fault(None)
            self.recorder.close()
            self.book.close()
        found = tuple(self.findings.values())
        return Report(self.effect.name, tuple(self.tried), found, tuple(self.notes))

    def add(self, findings: Iterable[Finding]) -> None:
        """Keep each finding once, however many trials show it."""
        for finding in findings:
            self.findings.setdefault((finding.promise, finding.change), finding)

    # --- trials ----------------------------------------------------------------------------------

    def plain(self) -> None:
        self.tried.append("plain")
        if self.recorder.can_ask:
            self.add(self.about_unsent())
        else:
            self.notes.append(
                "the effect has no look-up: after a lost reply only a resend to an owner that "
                "deduplicates, or a person, can settle it"
            )
        outcome = self.carry("plain", None)
        if not self.recorder.calls:
            self.add((judging.nothing_sent(str(outcome.why)),))
            return
        call = self.recorder.calls[0]
        self.plain_attempt, self.plain_writes = call.attempt, call.writes
        if call.reply.kind is ReplyKind.CONFIRMED:
            self.wait_for(lambda: self.recorder.count(call.attempt) > 0)
            self.landing_s = time.monotonic() - call.ended_s
        found = list(judging.about_plain_call(call, self.recorder.count(call.attempt)))
        self.add(found)
        if self.recorder.can_ask and not found:
            self.add(self.about_plain_look_up())

    def about_unsent(self) -> Iterable[Finding]:
        probe = self.new_attempt("unsent", None)
        before = self.sandbox.effects(probe)
        asked = self.asked(probe)
        self.recorder.asks.clear()
        return judging.about_unsent(asked, before, self.sandbox.effects(probe))

    def about_plain_look_up(self) -> Iterable[Finding]:
        call = self.recorder.calls[0]
        asked = first = self.asked(call.attempt)
        if shows(asked):
            return ()
        self.wait_for(lambda: shows(self.asked(call.attempt)))
        asked = self.recorder.asks[-1]
        if shows(asked):
            self.lag_s = time.monotonic() - call.ended_s
            behind = judging.milliseconds(self.lag_s)
            self.notes.append(f"look-ups are behind: the effect was shown {behind} after the reply")
            return judging.about_lag(self.lag_s, self.promises)
        done = "The effect was called once and confirmed, and then the look-up was asked."
        if isinstance(first.answer, Answer):
            return (judging.said_absent(done, call, first),)
        return (judging.no_answer(done, first.answer),)

    def crowded(self) -> None:
        if not self.recorder.can_ask or self.crowd == 0:
            return
        self.tried.append("crowded")
        assert self.plain_attempt is not None
        for number in range(self.crowd):
            reply = self.recorder.adapter_call(self.new_attempt("crowd", self.plain_attempt.token))
            if reply.kind is not ReplyKind.CONFIRMED:
                self.notes.append(
                    f"crowded: only {number} of {self.crowd} other effects could be made "
                    f"({reply.detail}), so a list that reaches further was not tried"
                )
                break
        asked = self.asked(self.plain_attempt)
        self.add(judging.about_crowd(asked.answer, self.crowd))

    def called_twice(self) -> None:
        if not self.promises.deduplicates:
            return
        self.tried.append("called_twice")
        assert self.plain_attempt is not None
        attempt = self.new_attempt("twice", self.plain_attempt.token)
        self.recorder.begin(None)
        self.watch_until_s = time.monotonic() + self.watch_s
        self.recorder.call(attempt)
        self.recorder.call(attempt)
        first, second = self.recorder.calls
        self.wait_for(lambda: self.recorder.count(attempt) > 0)
        self.settle_down()
        self.add(judging.about_two_calls(first, second, self.recorder.count(attempt)))

    def under(self, fault: Fault) -> None:
        """Carry one operation whose first call meets this fault, and judge what came of it."""
        if fault is Fault.SENT_TWICE and not self.promises.deduplicates:
            return
        if fault is Fault.STALE_READ and not self.recorder.can_ask:
            return
        believed = self.promises.final_by_answer or self.promises.fences.stop_older_sends
        if fault is Fault.STALE_READ and believed:
            self.notes.append(
                f"{fault}: not tried, because the owner promises that no answer is old"
            )
            return
        outcome = self.carry(fault, fault)
        if not self.recorder.injected:
            self.notes.append(f"{fault}: not tried, because the sandbox cannot do it")
            return
        self.tried.append(fault)
        if not self.recorder.calls:
            self.notes.append(f"{fault}: nothing was sent ({outcome.why})")
            return
        self.let_land()
        calls = self.recorder.calls
        if len(calls) > 1 or sum(call.writes for call in calls) > 1:
            self.settle_down()
        seen = judging.Seen(
            fault=fault,
            calls=calls,
            asks=self.recorder.asks,
            outcome=outcome,
            bases=self.bases(outcome.operation_id),
            count=self.recorder.count(calls[0].attempt),
            landed_after_s=self.landed_after_s,
            lag_s=self.lag_s,
            plain_writes=self.plain_writes,
            promises=self.promises,
        )
        self.add(judging.judge(seen))
        slow = judging.slow_note(seen, self.effect.deadline_s, PATIENT_CALL_S)
        self.notes += [note for note in (judging.unknown_note(seen), slow) if note is not None]

    # --- time ------------------------------------------------------------------------------------

    def before_jump(self, left_s: float) -> None:
        """The coordinator is about to wait: let happen what will happen meanwhile."""
        del left_s
        if self.recorder.calls:
            self.let_land()
            if self.lag_s:
                time.sleep(2 * self.lag_s)

    def let_land(self) -> None:
        """End the fault, and wait until the first call's effect is there; measure how long."""
        first = self.recorder.calls[0]
        landed = self.recorder.count(first.attempt) > 0
        began_s = first.ended_s
        if not self.released:
            if self.recorder.fault is Fault.LATE_COMMIT:
                began_s = time.monotonic()
            self.sandbox.release()
            self.released, self.recorder.stale = True, False
        if landed:
            return
        self.wait_for(lambda: self.recorder.count(first.attempt) > 0)
        if self.landed_after_s is None and self.recorder.count(first.attempt) > 0:
            self.landed_after_s = time.monotonic() - began_s

    def wait_for(self, happened: Callable[[], bool]) -> None:
        """Look again and again, for as long as this trial may watch."""
        while not happened() and time.monotonic() < self.watch_until_s:
            time.sleep(POLL_S)

    def settle_down(self) -> None:
        """Give a second effect the time that the first one took after its reply, and some more."""
        time.sleep(min(self.watch_s, 2 * self.landing_s + 0.05))

    # --- parts -----------------------------------------------------------------------------------

    def carry(self, name: str, fault: Fault | None) -> Outcome[Any]:
        self.recorder.begin(fault)
        self.watch_until_s = time.monotonic() + self.watch_s
        self.landed_after_s, self.released = None, fault is None
        return self.book.perform(self.recorded, self.new_id(name), **dict(self.sandbox.arguments()))

    def new_id(self, name: str) -> str:
        self.made += 1
        return f"check-{self.nonce}-{self.made}-{name}"

    def new_attempt(self, name: str, token: int | None) -> Attempt:
        """Return an attempt at an operation of its own, as the book would make it."""
        arguments = dict(self.sandbox.arguments())
        self.effect.bind(arguments)
        arguments = json.loads(canonical_bytes(arguments))
        stream = StreamId(NAMESPACE, "default", self.new_id(name))
        operation = Operation(stream.operation_id, self.effect.name, stream.tenant, arguments, {})
        key = make_key(stream, self.effect.name)
        return Attempt(operation, 1, key, token, self.effect.deadline_s)

    def asked(self, attempt: Attempt) -> Asked:
        """Ask as the book would, without a fence that would stop anything."""
        token = (attempt.token or 0) if self.promises.fences is Fences.ON_ASK else None
        self.recorder.ask(attempt._replace(token=token))
        return self.recorder.asks[-1]

    def bases(self, operation_id: str) -> frozenset[str]:
        """Return what licensed a resend or a settlement, as the trail has it."""
        stream = StreamId(NAMESPACE, "default", operation_id)
        bodies = [event.body for event in self.book.store.events(stream)]
        licensed = {body.basis for body in bodies if isinstance(body, Answered | Dispatched)}
        return frozenset(basis for basis in licensed if basis in judging.BY_BASIS)


def shows(asked: Asked) -> bool:
    """Whether the effect was shown, or the view did not claim to show it."""
    answer = asked.answer
    return isinstance(answer, Answer) and (answer.result is Result.PRESENT or answer.partial)
