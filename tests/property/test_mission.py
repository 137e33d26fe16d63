"""Any sequence of commands: money is exact, a refusal changes nothing, a replay changes no byte."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "mission"))

from mission_desk import (
    CONTRACT,
    DEFAULTS,
    EXACT,
    check_derived,
    command_of,
    graph,
    node,
)

from counterfoil.mission import (
    CommandRejected,
    State,
    canonical_state_bytes,
    create_mission,
    parse_amount,
    parse_command,
    parse_contract,
    reduce,
    write_amount,
)

EFFECTS = ("CONFIRMED_APPLIED", "CONFIRMED_NOT_APPLIED")
NODES = ("task", "undo")

Log = list[tuple[int, dict[str, Any]]]
Step = tuple[int, int, str, str]
"""Which of the commands that are plausible now, how much later, an amount and a cost."""


def about_attempts(plain: dict[str, Any], cost: str) -> list[dict[str, Any]]:
    """Return what may come of the attempts as they stand; the usual comes more often."""
    found: list[dict[str, Any]] = []
    nodes = NODES if plain["runs"]["r"]["graphId"] else (None,)
    for name, attempt in plain["attempts"].items():
        at = {"attemptId": name}
        failed = {**at, "effect": "CONFIRMED_NOT_APPLIED", "actualCost": cost}
        answers = [command_of("settle", **at, actualCost=cost), command_of("settle", **failed)]
        if attempt["status"] == "PREPARED":
            under = [{"nodeId": node_id} if node_id else {} for node_id in nodes]
            found += [command_of("dispatch", **at, **members) for members in under] * 4
            found += [command_of("release", **at)]
        elif attempt["status"] == "DISPATCHED":
            found += answers * 4
            found += [
                command_of("settle", **at, effect="UNKNOWN", actualCost="0"),
                command_of("review", **at, actualCost=cost),
                command_of("review", **at, decision="STILL_UNKNOWN", actualCost="0"),
                command_of("redeliver", **at),
            ]
        else:
            found += [
                answers[0],
                command_of("correct", **failed),
                command_of("correct", **at, effect="CONFIRMED_APPLIED", actualCost=cost),
            ]
    return found


def about_operations(plain: dict[str, Any], amount: str) -> list[dict[str, Any]]:
    """Return what may follow for the operations, and new ones."""
    attempt, seq = f"a{len(plain['attempts'])}", len(plain["approvals"])
    fresh = {"operationId": f"o{len(plain['operations'])}", "attemptId": attempt, "amount": amount}
    approved = command_of(
        "approve", approval_id=f"{seq}", approval_operationId=fresh["operationId"]
    )
    found = [command_of("admit", **fresh), command_of("admit", **fresh, grantId="g2")] * 2
    found += [approved] * (3 if plain["contract"]["requiresApproval"] else 1)
    for name, operation in plain["operations"].items():
        said = {"approval_id": f"{seq}", "approval_operationId": name}
        found += [
            command_of("retry", operationId=name, attemptId=attempt, amount=amount),
            command_of("approve", **said, approval_decision="REJECTED"),
            command_of("approve", **said),
            command_of("completeNode", nodeId="task", result={"operationId": name}),
            command_of("completeNode", nodeId="reconcile", result={"operationId": name}),
        ]
        if operation["disposition"] == "CONFIRMED_APPLIED":
            found += [command_of("compensate", **fresh, originalOperationId=name)] * 2
            found += [
                command_of(
                    "completeNode",
                    nodeId="undo",
                    result={"operationId": other, "originalOperationId": name},
                )
                for other in plain["operations"]
            ]
    return found


def drawn(state: State, step: Step) -> tuple[int, dict[str, Any]]:
    """Return the command that a step means in a state, and its time."""
    pick, later, amount, cost = step
    plain: dict[str, Any] = state.plain()
    plausible = about_attempts(plain, cost) + about_operations(plain, amount)
    if pick % 32 == 0:
        plausible = [command_of(kind) for kind in DEFAULTS]
    command = plausible[pick // 32 % len(plausible)]
    epoch = plain["runs"]["r"]["epoch"]
    if epoch != "1" and command["type"] in FENCED:
        command["epoch"] = epoch
    now = max(0, int(plain["now"]) + later)
    if "authorizationCheckedAt" in command:
        command["authorizationCheckedAt"] = str(now)
    return now, command


FENCED = ("admit", "dispatch", "settle", "retry", "compensate", "completeNode", "finishRun")
LATER = [0] * 40 + [1, 7, -1, 900]
AMOUNTS = ("0", "1", "10", "10.5", "33.000000000000000000000000000001", "90")
COSTS = ("0", "2", "10", "12.25", "0.000000000000000000000000000003")
SEEDS = st.integers(0, 2**32 - 1)
"""A seed stands for a whole walk: drawn evenly, it goes far into a mission. A failure names it."""


def walk(seed: int) -> tuple[dict[str, Any], Log, list[Step]]:
    """Return a contract's members, an opening and the steps of one walk."""
    dice = random.Random(seed)
    contract = {
        "requiresApproval": dice.random() < 0.25,
        "budget": dice.choice(["100", "1000"]),
        "maxAttempts": dice.choice(["1", "3"]),
    }
    steps = [
        (dice.randrange(2**16), dice.choice(LATER), dice.choice(AMOUNTS), dice.choice(COSTS))
        for _ in range(dice.randrange(5, 50))
    ]
    return contract, OPENING[: dice.choice([3, 3, 5])], steps


OPENING: Log = [
    (10, command_of("startRun")),
    (10, command_of("grant", grant_limit="500")),
    (10, command_of("delegate")),
    (10, command_of("registerGraph")),
    (10, command_of("attachGraph")),
]
MANY = settings(max_examples=70, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def mission(contract: dict[str, Any]) -> State:
    return create_mission(parse_contract(json.dumps({**CONTRACT, **contract})))


def fold(state: State, log: Log) -> State:
    """Fold a log, refusals left out."""
    for now, command in log:
        try:
            state = reduce(state, parse_command(json.dumps(command)), now)
        except CommandRejected:
            continue
    return state


@MANY
@given(SEEDS)
def test_any_sequence_keeps_the_money_exact_and_every_refusal_changes_nothing(
    seed: int,
) -> None:
    contract, opening, steps = walk(seed)
    state = fold(mission(contract), opening)
    budget = Decimal(contract["budget"])
    for step in steps:
        now, command = drawn(state, step)
        before = canonical_state_bytes(state)
        try:
            then = reduce(state, parse_command(command), now)
        except CommandRejected:
            assert canonical_state_bytes(state) == before
            continue
        assert canonical_state_bytes(state) == before
        assert int(str(then["events"])) == int(str(state["events"])) + 1
        state = then
        spent, reserved = Decimal(str(state["spent"])), Decimal(str(state["reserved"]))
        assert spent >= 0
        assert reserved >= 0
        free = EXACT.subtract(EXACT.subtract(budget, spent), reserved)
        assert EXACT.add(EXACT.add(spent, reserved), free) == budget
        check_derived(state)


@MANY
@given(SEEDS)
def test_the_accepted_commands_alone_lead_to_the_same_bytes(
    seed: int,
) -> None:
    contract, opening, steps = walk(seed)
    state = fold(mission(contract), opening)
    accepted = [*opening]
    for step in steps:
        now, command = drawn(state, step)
        try:
            state = reduce(state, parse_command(command), now)
        except CommandRejected:
            continue
        accepted.append((now, command))
    again = mission(contract)
    for now, command in accepted:
        again = reduce(again, parse_command(json.dumps(command)), str(now))
    assert canonical_state_bytes(again) == canonical_state_bytes(state)


@MANY
@given(
    st.lists(
        st.tuples(st.sampled_from(COSTS), st.sampled_from(EFFECTS)), min_size=2, max_size=6
    ).flatmap(lambda answers: st.tuples(st.just(answers), st.permutations(range(len(answers)))))
)
def test_any_order_of_settlements_leads_to_the_same_bytes(
    case: tuple[list[tuple[str, str]], list[int]],
) -> None:
    answers, order = case
    state = fold(mission({}), OPENING[:3])
    for number in range(len(answers)):
        names = {"operationId": f"o{number}", "attemptId": f"a{number}"}
        for command in (
            command_of("admit", **names, amount="3"),
            command_of("dispatch", attemptId=f"a{number}"),
        ):
            state = reduce(state, parse_command(command), 10)
    after = []
    for numbers in (range(len(answers)), order):
        then = state
        for number in numbers:
            cost, effect = answers[number]
            settle = command_of("settle", attemptId=f"a{number}", effect=effect, actualCost=cost)
            then = reduce(then, parse_command(settle), 10)
        after.append(canonical_state_bytes(then))
    assert after[0] == after[1]


DIGITS = st.text("0123456789", min_size=1, max_size=31).map(lambda text: text.lstrip("0") or "0")
DECIMALS = st.builds(
    lambda whole, rest: f"{whole}.{rest}" if rest else whole,
    DIGITS,
    st.text("0123456789", max_size=32),
)


@given(st.lists(DECIMALS, min_size=1, max_size=8))
def test_amounts_add_up_like_exact_decimals(texts: list[str]) -> None:
    amounts = [parse_amount(text) for text in texts]
    total = Decimal(0)
    for text in texts:
        total = EXACT.add(total, Decimal(text))
    written = write_amount(type(amounts[0])(sum(amounts)))
    assert Decimal(written) == total
    assert "." not in written or not written.endswith("0")
    assert write_amount(type(amounts[0])(-sum(amounts))).lstrip("-") == written


@given(st.text("0123456789..+-eE_, \n\u0661\uff11\u00b2", max_size=12))
def test_any_text_is_an_amount_that_is_written_back_or_is_refused(text: str) -> None:
    try:
        amount = parse_amount(text)
    except ValueError:
        assert not (text.isascii() and text.isdigit() and (text == "0" or text[0] != "0"))
    else:
        assert set(text) <= set("0123456789.")
        assert Decimal(write_amount(amount)) == Decimal(text)


def long_log() -> Log:
    """Return a log that fills the maps: sixty operations, a graph, approvals, triggers."""
    log: Log = [
        *OPENING,
        (10, command_of("registerTrigger")),
        (10, command_of("startRun", runId="z")),
    ]
    wide = graph(*(node(f"n{n}", "TASK") for n in range(40)), node("end", "END"), name="wide")
    log.append((10, command_of("registerGraph", graph=wide)))
    log.append((10, command_of("grant", grant_id="vast", grant_limit="100")))
    for number in range(60):
        names = {"operationId": f"o{number}", "attemptId": f"a{number}"}
        about = {"attemptId": f"a{number}"}
        log += [
            (10, command_of("approve", approval_id=f"{number}", approval_operationId=f"o{number}")),
            (10, command_of("fireTrigger", firingId=f"f{number}", runId=f"r{number}")),
            (10, command_of("admit", **names, runId="z", grantId="vast", amount="1.5")),
            (10, command_of("dispatch", **about)),
            (10, command_of("settle", **about, actualCost=f"0.{number + 1}")),
            (10, command_of("settle", **about, actualCost="7")),
        ]
    return log


LONG = len(long_log())


@pytest.mark.parametrize("until", ["4", "400"])
def test_a_replay_gives_the_same_bytes_in_any_process_with_any_seed(
    tmp_path: Path, until: str
) -> None:
    contract, log = tmp_path / "contract.json", tmp_path / "log.jsonl"
    contract.write_text(json.dumps(CONTRACT))
    lines = [json.dumps({"now": str(now), "command": command}) for now, command in long_log()]
    log.write_text("\n".join(lines))
    outputs = set()
    command = [sys.executable, "-m", "counterfoil", "mission", "replay", str(contract), str(log)]
    for seed in ("0", "1", "4294967295"):
        done = subprocess.run(
            [*command, "--json", "--until", until],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=False,
        )
        assert done.stderr == b""
        outputs.add(done.stdout)
    state = fold(mission({}), long_log()[: int(until)])
    assert outputs
    assert len(outputs) == 1
    shown = json.loads(outputs.pop())
    assert shown["state"] == state.plain()
    assert int(shown["state"]["events"]) + len(shown["rejected"]) == min(int(until), LONG)
