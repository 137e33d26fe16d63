"""`check_effect` over a scripted owner, and over a sandbox of a user's own."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import pytest

import counterfoil as cf
from counterfoil.testing import Fault, OwnerRefusal, ScriptedOwner, Subject, check_effect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from counterfoil.testing import Report, Request, ScriptedSandbox

CROWD = 5
WATCH = 0.3


def sandbox_of(owner: ScriptedOwner) -> ScriptedSandbox:
    numbers = count(1)
    return owner.sandbox(lambda: {"to": f"reader {next(numbers)}"})


def declare(owner: ScriptedOwner, *, token: bool = True, **promises: Any) -> cf.Effect[..., Any]:
    @cf.effect("letter.send", owner=cf.Owner("post", **promises))
    def send(attempt: cf.Attempt, *, to: str) -> object:
        try:
            return owner.call(attempt.key, {"to": to}, attempt.token if token else None)
        except OwnerRefusal as refusal:
            raise cf.NoEffect(refusal.code) from None

    @send.reconcile
    def find(attempt: cf.Attempt) -> object:
        view = owner.find(attempt.key, attempt.token)
        if view.effect is not None:
            return cf.present(view.effect, effect_id=view.effect["id"])
        return cf.absent(final=view.final, partial=view.partial)

    return send


def check(owner: ScriptedOwner, **promises: Any) -> Report:
    return check_effect(declare(owner, **promises), sandbox_of(owner), crowd=CROWD, watch=WATCH)


@pytest.mark.parametrize(
    ("owner", "promises"),
    [
        ({}, {}),
        ({}, {"settles_within": "2m"}),
        ({}, {"final_by": "answer"}),
        ({"fences": True}, {"fences": "on_ask"}),
        ({"deduplicates": True}, {"deduplicates": True, "key_retention": "forever"}),
    ],
)
def test_a_right_effect_passes_in_process(owner: dict[str, Any], promises: dict[str, Any]) -> None:
    check(ScriptedOwner(**owner), **promises).raise_for_findings()


def test_an_effect_that_does_not_send_its_token_to_a_fencing_owner_is_named() -> None:
    report = check(ScriptedOwner(fences=True), token=False, fences="on_ask")
    assert [finding.promise for finding in report.findings] == [Subject.FENCES]


def test_an_effect_that_raises_its_fence_by_a_call_passes() -> None:
    owner = ScriptedOwner(fences=True)
    effect = declare(owner, fences="by_call")

    @effect.raise_fence
    def raise_fence(attempt: cf.Attempt) -> bool:
        owner.find("", attempt.token)
        return True

    report = check_effect(effect, sandbox_of(owner), crowd=CROWD, watch=WATCH)
    report.raise_for_findings()


def test_an_effect_under_the_owners_own_lease_passes() -> None:
    owner = ScriptedOwner(fences=True)
    effect = declare(owner, fences="by_lease")
    effect.read_token(lambda: 7)
    report = check_effect(effect, sandbox_of(owner), crowd=CROWD, watch=WATCH)
    report.raise_for_findings()


def test_a_lease_that_moves_before_each_call_is_named() -> None:
    owner = ScriptedOwner(fences=True)
    effect = declare(owner, fences="by_lease")
    tokens = count(1)
    effect.read_token(lambda: next(tokens))
    report = check_effect(effect, sandbox_of(owner), crowd=CROWD, watch=WATCH)
    assert [finding.promise for finding in report.findings] == [Subject.SET_UP]
    assert "Nothing was sent" in str(report)


def test_a_class_form_is_checked_too() -> None:
    owner = ScriptedOwner()

    @cf.effect("letter.send", owner=cf.Owner("post"))
    class Letters:
        def execute(self, operation: cf.Operation, attempt: cf.Attempt) -> object:
            try:
                return owner.call(attempt.key, operation.arguments)
            except TimeoutError:
                return None

        def reconcile(self, operation: cf.Operation, attempt: cf.Attempt) -> object:
            found = owner.find(attempt.key).effect
            return cf.present(found) if found else cf.absent()

    letters = cast("cf.Effect[..., object]", Letters)
    report = check_effect(letters, sandbox_of(owner), crowd=0, watch=WATCH)
    assert [finding.promise for finding in report.findings] == [Subject.CALL]


def declare_async(owner: ScriptedOwner, *, swallows: bool) -> cf.Effect[..., Any]:
    @cf.effect("letter.send", owner=cf.Owner("post"), deadline="5s")
    async def send(attempt: cf.Attempt, *, to: str) -> object:
        await asyncio.sleep(0)
        try:
            return owner.call(attempt.key, {"to": to})
        except TimeoutError:
            if swallows:
                return None
            raise

    @send.reconcile
    async def find(attempt: cf.Attempt) -> object:
        await asyncio.sleep(0)
        found = owner.find(attempt.key).effect
        return cf.present(found) if found else cf.absent()

    return send


@pytest.mark.parametrize("swallows", [False, True])
def test_an_async_effect_is_checked_on_a_loop_of_its_own(swallows: bool) -> None:
    owner = ScriptedOwner()
    effect = declare_async(owner, swallows=swallows)
    report = check_effect(effect, sandbox_of(owner), crowd=CROWD, watch=WATCH)
    assert report.ok is not swallows


def test_an_async_effect_is_not_checked_inside_a_running_loop() -> None:
    owner = ScriptedOwner()
    effect = declare_async(owner, swallows=False)

    async def inside() -> None:
        with pytest.raises(cf.BadInput, match=r"asyncio\.to_thread"):
            check_effect(effect, sandbox_of(owner))
        report = await asyncio.to_thread(
            check_effect, effect, sandbox_of(owner), crowd=CROWD, watch=WATCH
        )
        assert report.ok

    asyncio.run(inside())


def test_a_call_that_outlasts_its_deadline_is_noted() -> None:
    owner = ScriptedOwner()
    effect = declare(owner)
    effect.deadline_s = 1e-9
    report = check_effect(effect, sandbox_of(owner), crowd=0, watch=WATCH)
    assert report.ok
    assert "shorter than the effect's deadline" in str(report)


class OwnSandbox:
    """What a user writes for a transport that is not HTTP: it can only break a connection."""

    def __init__(self, owner: ScriptedOwner) -> None:
        self.owner, self.inner = owner, sandbox_of(owner)

    def arguments(self) -> Mapping[str, Any]:
        return self.inner.arguments()

    def effects(self, attempt: cf.Attempt) -> int:
        return self.owner.effects.get(attempt.key, 0)

    def set_fault(self, fault: Fault | None) -> bool:
        return fault in (None, Fault.CUT_REPLY) and self.inner.set_fault(fault)

    def release(self) -> None:
        self.inner.release()

    def requests(self) -> Sequence[Request] | None:
        return None


def test_a_sandbox_that_cannot_do_a_fault_is_told_apart_from_one_that_passed() -> None:
    owner = ScriptedOwner()
    report = check_effect(declare(owner), OwnSandbox(owner), crowd=CROWD, watch=WATCH)
    assert report.tried == ("plain", "crowded", "cut_reply")
    assert "late_commit: not tried, because the sandbox cannot do it" in report.notes


def test_one_effect_id_for_all_effects_is_named() -> None:
    owner = ScriptedOwner()

    @cf.effect("letter.send", owner=cf.Owner("post"))
    def send(attempt: cf.Attempt, *, to: str) -> object:
        return owner.call(attempt.key, {"to": to})

    @send.reconcile
    def find(attempt: cf.Attempt) -> object:
        found = owner.find(attempt.key).effect
        return cf.present(found, effect_id="letter") if found else cf.absent()

    report = check_effect(send, sandbox_of(owner), crowd=CROWD, watch=WATCH)
    assert [finding.promise for finding in report.findings] == [Subject.LOOK_UP]
    assert "effect_id" in str(report)


def test_a_look_up_that_calls_a_pending_effect_present_is_named() -> None:
    owner = ScriptedOwner()
    asked: set[str] = set()

    @cf.effect("letter.send", owner=cf.Owner("post"))
    def send(attempt: cf.Attempt, *, to: str) -> object:
        asked.add(attempt.key)
        return owner.call(attempt.key, {"to": to})

    @send.reconcile
    def find(attempt: cf.Attempt) -> object:
        return cf.present() if attempt.key in asked else cf.absent()

    report = check_effect(send, sandbox_of(owner), crowd=CROWD, watch=WATCH)
    assert [finding.promise for finding in report.findings] == [Subject.LOOK_UP]
    assert "the call reached the owner after it" in str(report)


def test_an_effect_that_makes_two_is_named() -> None:
    owner = ScriptedOwner(["twice"])
    report = check(owner)
    assert [finding.promise for finding in report.findings] == [Subject.CALL]
    assert "2 effects" in str(report)


def test_an_effect_that_reports_without_doing_is_named() -> None:
    effect = cf.effect("letter.send", owner=cf.Owner("post"))(lambda attempt, *, to: to)
    owner = ScriptedOwner()
    report = check_effect(effect, OwnSandbox(owner), crowd=CROWD, watch=WATCH)
    assert [finding.promise for finding in report.findings] == [Subject.CALL]
    assert "the owner holds no effect" in str(report)


def test_arguments_that_do_not_fit_the_effect_are_refused() -> None:
    owner = ScriptedOwner()
    with pytest.raises(cf.BadInput, match=r"letter\.send"):
        check_effect(declare(owner), owner.sandbox(lambda: {"from": "Ada"}))


def test_a_crowd_of_less_than_none_is_refused() -> None:
    owner = ScriptedOwner()
    with pytest.raises(cf.BadInput, match="crowd"):
        check_effect(declare(owner), sandbox_of(owner), crowd=-1)
