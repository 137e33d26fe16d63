"""What is no amount, no count, no name, no command and no contract, and where it says so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mission_desk import ACTION, CONTRACT, LEFT_OUT, Desk, command_of, graph, node

from counterfoil.errors import BadInput
from counterfoil.mission import (
    CommandError,
    ContractError,
    action_digest,
    parse_amount,
    parse_command,
    parse_contract,
    write_amount,
)

NO_AMOUNTS = [
    "1e3",
    "1E3",
    "+1",
    "-1",
    "-0",
    "01",
    "00",
    "0x1",
    " 1",
    "1 ",
    "1\n",
    "\n1",
    "1_000",
    "1,000",
    "１",  # full-width  # noqa: RUF001
    "٣",  # Arabic-Indic
    "²",
    "",
    ".5",
    "5.",
    ".",
    "1.2.3",
    "1.-2",
    "01.5",
    "NaN",
    "Infinity",
    "1" * 65,
    "0." + "1" * 63,
]
NO_COUNTS = [*NO_AMOUNTS, "1.0", "0.5"]
NO_NAMES: list[Any] = ["", "x" * 257, 1, None, True, ["r"], {"r": 1}, "a\ud800"]


def failing(kind: str, **members: Any) -> str:
    """Return where a command is refused."""
    with pytest.raises(CommandError) as caught:
        parse_command(json.dumps(command_of(kind, **members)))
    return caught.value.path


@pytest.mark.parametrize("text", NO_AMOUNTS, ids=ascii)
def test_what_is_no_amount_is_refused_where_it_stands(text: str) -> None:
    assert failing("admit", amount=text) == "/amount"
    assert failing("grant", grant_limit=text) == "/grant/limit"


@pytest.mark.parametrize("text", NO_COUNTS, ids=ascii)
def test_what_is_no_count_is_refused_where_it_stands(text: str) -> None:
    assert failing("claimRun", epoch=text) == "/epoch"
    assert failing("approve", approval_expiresAt=text) == "/approval/expiresAt"


@pytest.mark.parametrize("text", NO_COUNTS, ids=ascii)
def test_what_is_no_time_is_no_now(desk: Desk, text: str) -> None:
    with pytest.raises(CommandError) as caught:
        desk.do("startRun", runId="r2", now=text)
    assert caught.value.path == "/now"


@pytest.mark.parametrize("now", [-1, 10**64, True, 1.0, None, b"1"])
def test_what_is_no_time_in_python_is_no_now(desk: Desk, now: Any) -> None:
    command = parse_command(command_of("startRun", runId="r2"))
    from counterfoil.mission import reduce

    with pytest.raises(CommandError) as caught:
        reduce(desk.state, command, now)
    assert caught.value.path == "/now"


@pytest.mark.parametrize("name", NO_NAMES, ids=ascii)
def test_what_is_no_name_is_refused_where_it_stands(name: Any) -> None:
    assert failing("startRun", runId=name) == "/runId"
    assert failing("grant", grant_actions=["fine", name]) == "/grant/actions/1"


@pytest.mark.parametrize("name", ["x" * 256, "\U0001f4b6" * 256, " ", "null", "a\u0301", "\x00"])
def test_any_other_text_is_a_name(name: str) -> None:
    desk = Desk()
    desk.do("startRun", runId=name)
    assert set(desk.state["runs"]) == {name}  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0", "0"),
        ("0.0", "0"),
        ("10", "10"),
        ("10.50", "10.5"),
        ("0.000", "0"),
        ("1.2300", "1.23"),
        ("9" * 64, "9" * 64),
        ("0." + "0" * 61 + "1", "0." + "0" * 61 + "1"),
        ("1" * 30 + "." + "2" * 33, "1" * 30 + "." + "2" * 33),
    ],
)
def test_an_amount_is_written_without_trailing_zeros(text: str, written: str) -> None:
    assert write_amount(parse_amount(text)) == written


# --- shape ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", ""),
        ("{", ""),
        ("[]", ""),
        ("null", ""),
        ('"startRun"', ""),
        ("{} {}", ""),
        ("\ufeff{}", ""),
        ("{}", "/type"),
        ('{"type": "start"}', "/type"),
        ('{"type": ["startRun"]}', "/type"),
        ('{"type": "startRun", "runId": "r", "runId": "r"}', "/runId"),
        ('{"type": "startRun", "runId": "r", "run\\u0049d": "s"}', "/runId"),
        ('{"type": "startRun", "runId": "r", "more/~": 1}', "/more~1~0"),
        ('{"type": "startRun", "runId": NaN}', "/runId"),
        ('{"type": "startRun", "runId": 9007199254740992}', "/runId"),
        ('{"type": "startRun", "runId": "r", "\\ud800": 1}', ""),
        ("[" * 100_000, ""),
        ('{"a":' * 100_000, ""),
        ('{"type": "startRun", "runId": ' + "9" * 10_000 + "}", "/runId"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_what_is_no_command_is_refused_where_it_is_wrong(text: str, path: str) -> None:
    for source in (text, text.encode("utf-8")):
        with pytest.raises(CommandError) as caught:
            parse_command(source)
        assert caught.value.path == path
        assert "\n" not in str(caught.value)


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(CommandError):
        parse_command(b'{"type": "startRun", "runId": "\xff"}')


PAYLOADS: list[tuple[str, str]] = [
    ('{"n": 9007199254740992}', "/n"),
    ('{"n": -9007199254740992}', "/n"),
    ('{"n": 9007199254740992.0}', "/n"),
    ('{"n": 1e16}', "/n"),
    ('{"n": 1e400}', "/n"),
    ('{"n": -Infinity}', "/n"),
    ('{"n": [0, "\\udfff"]}', "/n/1"),
    ('{"n": {"a": 1, "b": {"c": 1, "c": 1}}}', "/n/b/c"),
    ('{"\\ud83d": 1}', ""),
]


@pytest.mark.parametrize(("payload", "path"), PAYLOADS)
def test_a_payload_that_not_every_reader_keeps_is_refused(payload: str, path: str) -> None:
    text = json.dumps(command_of("admit")).replace('{"value": 1}', payload)
    with pytest.raises(CommandError) as caught:
        parse_command(text)
    assert caught.value.path == "/action/payload" + path


@pytest.mark.parametrize("payload", ['{"n": 9007199254740991}', '{"n": 1e21}', '{"n": -0.5}'])
def test_a_payload_comes_back_as_it_was(desk: Desk, payload: str) -> None:
    desk.do("admit", action={**ACTION, "payload": json.loads(payload)})
    assert desk.operation()["action"]["payload"] == json.loads(payload)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


def test_a_command_is_at_most_64_deep() -> None:
    # The command and its action are two containers, the payload the third.
    parse_command(json.dumps(command_of("admit", action={**ACTION, "payload": nested(62)})))
    path = failing("admit", action={**ACTION, "payload": nested(63)})
    assert path == "/action/payload" + "/a" * 62


@pytest.mark.parametrize("value", [None, "x", [], 1])
def test_a_payload_is_an_object(value: Any) -> None:
    assert failing("admit", action={**ACTION, "payload": value}) == "/action/payload"
    assert failing("admit", action={**ACTION, "preconditions": value}) == "/action/preconditions"


@pytest.mark.parametrize("value", ["", {}, [], None, 1, True])
def test_evidence_and_reasons_are_text_or_an_object_and_not_empty(value: Any) -> None:
    for kind, member in [
        ("settle", "evidence"),
        ("review", "evidence"),
        ("correct", "evidence"),
        ("recordCriterion", "evidence"),
        ("revokeGrant", "reason"),
        ("stopMission", "reason"),
    ]:
        assert failing(kind, **{member: value}) == f"/{member}"


def test_an_unknown_effect_costs_nothing_yet() -> None:
    assert failing("settle", effect="UNKNOWN", actualCost="0.1") == "/actualCost"
    assert failing("review", decision="STILL_UNKNOWN", actualCost="1") == "/actualCost"
    parse_command(command_of("settle", effect="UNKNOWN", actualCost="0.0"))


def test_a_correction_is_never_unknown() -> None:
    assert failing("correct", effect="UNKNOWN", actualCost="0") == "/effect"


@pytest.mark.parametrize(
    ("kind", "members", "path"),
    [
        ("finishRun", {"status": "OPEN"}, "/status"),
        ("admit", {"policy": "allow"}, "/policy"),
        ("admit", {"mandatoryChecksOk": 1}, "/mandatoryChecksOk"),
        ("admit", {"epoch": None}, "/epoch"),
        ("admit", {"amount": 10}, "/amount"),
        ("dispatch", {"nodeId": None}, "/nodeId"),
        ("grant", {"grant_profile": "infinite"}, "/grant/profile"),
        ("grant", {"grant_resources": ["a", "b", "a"]}, "/grant/resources/2"),
        ("grant", {"grant_canDelegate": "true"}, "/grant/canDelegate"),
        ("grant", {"grant_depth": LEFT_OUT}, "/grant/depth"),
        ("approve", {"approval_actionDigest": "A" * 64}, "/approval/actionDigest"),
        ("approve", {"approval_actionDigest": "a" * 63}, "/approval/actionDigest"),
        ("approve", {"approval_decision": "MAYBE"}, "/approval/decision"),
        ("approve", {"approval_seq": "1"}, "/approval/seq"),
        ("review", {"epoch": "1"}, "/epoch"),
        ("completeNode", {"result": {"node": "x"}}, "/result/node"),
        ("completeNode", {"result": {"operationId": 1}}, "/result/operationId"),
        ("recordCriterion", {"met": "yes"}, "/met"),
    ],
)
def test_a_member_that_cannot_be_used_is_pointed_at(
    kind: str, members: dict[str, Any], path: str
) -> None:
    assert failing(kind, **members) == path


END = node("end", "END")


@pytest.mark.parametrize(
    ("nodes", "path"),
    [
        ([], "/nodes"),
        ([node("a", "TASK")], "/nodes"),
        ([END, node("e", "END")], "/nodes/1/kind"),
        ([END, node("a", "JOB")], "/nodes/1/kind"),
        ([END, node("a", "TASK"), node("a", "TASK")], "/nodes/2/id"),
        ([END, node("a", "TASK", "b")], "/nodes/1/dependsOn/0"),
        ([END, node("a", "TASK", "end")], "/nodes/1/dependsOn/0"),
        ([END, node("a", "TASK"), node("b", "TASK", "a", "a")], "/nodes/2/dependsOn/1"),
        ([END, node("a", "TASK", "a")], "/nodes"),
        ([END, node("a", "TASK", "b"), node("b", "TASK", "a")], "/nodes"),
        ([END, {**node("a", "TASK"), "config": []}], "/nodes/1/config"),
        ([END, 7], "/nodes/1"),
    ],
)
def test_what_is_no_graph_is_pointed_at(nodes: list[Any], path: str) -> None:
    assert failing("registerGraph", graph=graph(*nodes)) == "/graph" + path


def test_a_long_chain_of_nodes_is_a_graph() -> None:
    chain = [node("0", "TASK"), *(node(str(n), "TASK", str(n - 1)) for n in range(1, 3000))]
    parse_command(command_of("registerGraph", graph=graph(*chain, node("end", "END", "2999"))))


# --- contracts and actions -----------------------------------------------------------------------


@pytest.mark.parametrize("member", CONTRACT)
def test_every_member_of_a_contract_must_be_there(member: str) -> None:
    contract = {name: value for name, value in CONTRACT.items() if name != member}
    with pytest.raises(ContractError) as caught:
        parse_contract(json.dumps(contract))
    assert caught.value.path == f"/{member}"


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({"aiwsEdition": "0.5"}, "/aiwsEdition"),
        ({"profile": "finite-v2"}, "/profile"),
        ({"maxAttempts": "0"}, "/maxAttempts"),
        ({"budget": "1e3"}, "/budget"),
        ({"deadline": 10000}, "/deadline"),
        ({"features": ["graphs", "loops"]}, "/features/1"),
        ({"features": ["graphs", "graphs"]}, "/features/1"),
        ({"criteria": "review"}, "/criteria"),
        ({"requiresApproval": None}, "/requiresApproval"),
        ({"more": 1}, "/more"),
    ],
)
def test_a_contract_that_cannot_be_used_is_pointed_at(members: dict[str, Any], path: str) -> None:
    with pytest.raises(ContractError) as caught:
        parse_contract(json.dumps({**CONTRACT, **members}))
    assert caught.value.path == path
    assert isinstance(caught.value, BadInput)


def test_the_state_carries_its_contract() -> None:
    desk = Desk(budget="100.50", features=[], criteria=[])
    assert desk.state["contract"] == {**CONTRACT, "budget": "100.5", "features": []}
    assert desk.state["now"] == "0"


def test_the_digest_of_an_action_is_that_of_its_canonical_bytes() -> None:
    turned = (
        '{"resource":"doc","preconditions":{"revision":1.0},'
        '"payload":{"value":1},"capability":"wr\\u0069te"}'
    )
    digest = "f14215c0db3d56c55aa2da2def27f4bdd5f0cd00ef3a53f3dd94b53347c174b9"
    assert action_digest(turned) == action_digest(ACTION) == digest


def test_the_digest_of_what_is_no_action_is_refused() -> None:
    with pytest.raises(CommandError) as caught:
        action_digest({**ACTION, "payload": 3})
    assert caught.value.path == "/payload"


def test_a_command_does_not_change_with_the_mapping_it_was_read_from(desk: Desk) -> None:
    members = command_of("admit")
    command = parse_command(members)
    members["action"]["payload"]["value"] = 2
    from counterfoil.mission import reduce

    state = reduce(desk.state, command, 10)
    assert state["operations"]["o"]["action"]["payload"] == {"value": 1}  # type: ignore[index]


@pytest.mark.parametrize("value", [{"a": (1, 2)}, {"a": {1}}, {1: "a"}, {"a": b"x"}])
def test_a_mapping_that_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(CommandError):
        parse_command(command_of("admit", action={**ACTION, "payload": value}))


def test_a_hostile_name_does_not_reach_the_terminal() -> None:
    text = '{"type": "startRun", "runId": "r", "\\u001b[2J\\n": 1}'
    with pytest.raises(CommandError) as caught:
        parse_command(text)
    assert str(caught.value).isprintable()
