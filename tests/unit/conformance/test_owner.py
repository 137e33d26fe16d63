"""The counting owner keeps the seed's contract, and its own promises."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from counterfoil import conformance
from counterfoil.conformance.ledger import Did, Kind, Ledger
from counterfoil.conformance.owner_server import OwnerServer
from counterfoil.conformance.scenario import Moment, Says

if TYPE_CHECKING:
    from collections.abc import Callable

    from counterfoil.conformance.scenario import Json, Scenario

    Make = Callable[..., Scenario]

LEASE = {"worker": "w"}


def test_a_confirmed_call_answers_200_with_the_effects_id(make: Make, client) -> None:
    with conformance.effect_owner(make()) as (url, owner):
        assert client(url).call() == (200, {"effectId": "effect-1"})
        assert [effect.key for effect in owner.tally().effects] == ["k"]


def test_a_lost_reply_is_a_connection_closed_without_an_answer(make: Make, client) -> None:
    with conformance.effect_owner(make(calls=[{"reply": "lost"}])) as (url, owner):
        assert client(url).call() is None
        assert len(owner.tally().effects) == 1


def test_a_refusal_is_409_and_leaves_no_effect(make: Make, client) -> None:
    with conformance.effect_owner(make(calls=[{"reply": "refused"}])) as (url, owner):
        assert client(url).call() == (409, {"error": "refused"})
        assert owner.tally().effects == ()


def test_steps_are_consumed_call_by_call_and_the_last_one_repeats(make: Make, client) -> None:
    calls: Json = [{"reply": "status", "status": 500, "lands": "never"}, {"reply": "confirmed"}]
    with conformance.effect_owner(make(calls=calls)) as (url, owner):
        statuses = [client(url).call(f"k{n}")[0] for n in range(3)]
        assert statuses == [500, 200, 200]
        assert len(owner.tally().effects) == 2


def test_a_question_is_answered_with_result_and_final(make: Make, client) -> None:
    with conformance.effect_owner(make()) as (url, _owner):
        one = client(url)
        assert one.look("a%2Fb%20c") == (200, {"result": "absent", "final": True})
        one.call("a/b c")
        assert one.look("a%2Fb%20c") == (
            200,
            {"result": "present", "final": True, "effectId": "effect-1"},
        )


@pytest.mark.parametrize(
    ("says", "reply"),
    [
        ("absent", (200, {"result": "absent", "final": False})),
        ("partial", (200, {"result": "absent", "final": False, "partial": True})),
        ("unavailable", (503, {"error": "unavailable"})),
        ("cut", None),
    ],
)
def test_a_look_up_says_what_its_step_says(make: Make, client, says: str, reply: object) -> None:
    with conformance.effect_owner(make(lookups=[{"says": says}])) as (url, _owner):
        client(url).call()
        assert client(url).look() == reply


def test_an_owner_that_cannot_be_asked_answers_503(make: Make, client) -> None:
    with conformance.effect_owner(make(lookup=False)) as (url, _owner):
        assert client(url).look()[0] == 503


@pytest.mark.parametrize("reply", ["lost", "reset", "cut", "garbage"])
def test_a_reply_that_is_none_still_leaves_the_effect(make: Make, client, reply: str) -> None:
    with conformance.effect_owner(make(calls=[{"reply": reply}])) as (url, owner):
        assert client(url).call() is None
        assert len(owner.tally().effects) == 1


def test_a_reset_is_seen_as_a_reset(make: Make) -> None:
    with conformance.effect_owner(make(calls=[{"reply": "reset"}])) as (url, _owner):
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 5) as connection:
            body = b'{"idempotencyKey": "k", "args": {}}'
            head = f"POST /effects HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            connection.sendall(head + body)
            with pytest.raises(ConnectionResetError):
                connection.recv(1)


def test_a_late_commit_lands_after_the_look_up_that_missed_it(make: Make, client) -> None:
    calls: Json = [{"reply": "lost", "lands": {"after": "lookups", "count": 1}}]
    with conformance.effect_owner(make(calls=calls)) as (url, _owner):
        one = client(url)
        one.call()
        assert one.look()[1] == {"result": "absent", "final": False}
        assert one.look()[1]["result"] == "present"


def test_what_is_on_the_wire_is_let_land_before_it_is_counted(make: Make, client) -> None:
    calls: Json = [{"reply": "lost", "lands": {"after": "release"}}]
    with conformance.effect_owner(make(calls=calls)) as (url, owner):
        client(url).call()
        assert len(owner.tally().effects) == 1


def test_a_confirmation_waits_for_the_landing(make: Make, client) -> None:
    calls: Json = [{"reply": "confirmed", "lands": {"after": "seconds", "count": 0.1}}]
    with conformance.effect_owner(make(calls=calls)) as (url, owner):
        assert client(url).call() == (200, {"effectId": "effect-1"})
        assert owner.tally().calls[0].did is Did.COMMITTED


def test_an_owner_that_deduplicates_holds_one_effect_a_key(make: Make, client) -> None:
    with conformance.effect_owner(make(deduplicatesByKey=True)) as (url, owner):
        assert client(url).call() == client(url).call() == (200, {"effectId": "effect-1"})
        assert len(owner.tally().effects) == 1


def test_a_known_key_with_other_arguments_is_refused_by_deduplication(make: Make, client) -> None:
    with conformance.effect_owner(make(deduplicatesByKey=True)) as (url, owner):
        client(url).call(args={"n": 1})
        assert client(url).call(args={"n": 1.0})[0] == 200
        assert client(url).call(args={"n": True})[0] == 422
        assert len(owner.tally().effects) == 1


def test_a_key_is_forgotten_after_its_retention(make: Make) -> None:
    now_s = [0.0]
    ledger = Ledger(make(deduplicatesByKey=True, keyRetentionSeconds=10), lambda: now_s[0])

    def call() -> Did:
        event, step = ledger.call_arrived("k", "{}", None, 1)
        return ledger.act(event, step)

    assert call() is Did.COMMITTED
    now_s[0] = 10.0
    assert call() is Did.DEDUPLICATED
    now_s[0] = 10.1
    assert call() is Did.COMMITTED


def test_nothing_sent_before_a_final_absent_answer_commits_after_it(make: Make) -> None:
    ledger = Ledger(make())
    question = ledger.lookup_arrived("k", None, connection=2)
    assert ledger.answer(question, Says.TRUTH)["final"] is True
    event, step = ledger.call_arrived("k", "{}", None, connection=1)
    assert ledger.act(event, step) is Did.DROPPED


def test_absent_is_not_final_while_a_call_is_on_the_wire(make: Make) -> None:
    ledger = Ledger(make())
    ledger.call_arrived("k", "{}", None, connection=1)
    question = ledger.lookup_arrived("k", None, connection=2)
    assert ledger.answer(question, Says.TRUTH) == {"result": "absent", "final": False}


# --- leases and tokens ---------------------------------------------------------------------------


def test_the_lease_passes_on_after_the_call_that_says_so(make: Make, client) -> None:
    scenario = make(lease=LEASE, calls=[{"reply": "lost", "movesLease": True}])
    with conformance.effect_owner(scenario) as (url, _owner):
        one = client(url)
        assert one.request("GET", "/lease") == (200, {"token": 1})
        one.call(fencingToken=1)
        assert one.request("GET", "/lease") == (200, {"token": 2})


def test_without_a_lease_there_is_no_token(make: Make, client) -> None:
    with conformance.effect_owner(make()) as (url, _owner):
        assert client(url).request("GET", "/lease")[0] == 404


def raise_nothing(one, token: int) -> None:
    """No way to raise the bar."""


def send_it(one, token: int) -> None:
    """Call under the newer token."""
    one.call("other", fencingToken=token)


def ask_with_it(one, token: int) -> None:
    """Ask with the newer token."""
    one.look("k", f"?fencingToken={token}")


def call_for_it(one, token: int) -> None:
    """Raise the bar by a call of its own."""
    one.request("POST", "/fence", b'{"fencingToken": %d}' % token)


@pytest.mark.parametrize(
    ("fences", "raised", "status"),
    [
        ("no", send_it, 200),
        ("on_send", ask_with_it, 200),
        ("on_send", send_it, 412),
        ("on_ask", raise_nothing, 200),
        ("on_ask", ask_with_it, 412),
        ("by_call", ask_with_it, 200),
        ("by_call", call_for_it, 412),
    ],
)
def test_an_older_token_is_refused_once_the_owner_knows_a_newer_one(
    make: Make, client, fences: str, raised, status: int
) -> None:
    with conformance.effect_owner(make(lease=LEASE, fences=fences)) as (url, _owner):
        raised(client(url), 2)
        assert client(url).call(fencingToken=1)[0] == status


def test_an_owner_that_grants_the_lease_refuses_older_and_missing_tokens(
    make: Make, client
) -> None:
    with conformance.effect_owner(make(lease=LEASE, fences="by_lease")) as (url, owner):
        owner.ledger.move_lease()
        assert client(url).call(fencingToken=1)[0] == 412
        assert client(url).call()[0] == 412
        assert client(url).call(fencingToken=2)[0] == 200


def test_a_held_call_is_measured_by_the_bar_at_its_delivery(make: Make, client) -> None:
    scenario = make(
        lease=LEASE,
        fences="by_lease",
        calls=[{"reply": "lost", "lands": {"after": "release"}}],
    )
    with conformance.effect_owner(scenario) as (url, owner):
        client(url).call(fencingToken=1)
        owner.ledger.move_lease()
        owner.ledger.deliver()
        tally = owner.tally()
        assert tally.effects == ()
        assert tally.calls[0].did is Did.SUPERSEDED
        assert tally.calls[0].token_in_force == 1


# --- a sender that froze before its first byte ---------------------------------------------------


FROZEN: list[Json] = [{"at": "call_arrived", "do": "freeze"}, {"do": "wake"}]
UNSENT: list[Json] = [{"reply": "lost", "lands": {"after": "wake"}}, {"reply": "confirmed"}]


def test_a_call_that_is_not_yet_sent_is_not_on_the_wire(make: Make, client) -> None:
    with OwnerServer(make(calls=UNSENT, faults=FROZEN)) as owner:
        one = client(owner.url)
        one.call()
        assert one.look() == (200, {"result": "absent", "final": True})
        owner.ledger.wake()
        assert one.look()[1]["result"] == "present"
        assert [event.did for event in owner.tally().calls] == [Did.COMMITTED]


def test_a_call_whose_sender_is_never_woken_leaves_nothing(make: Make, client) -> None:
    with OwnerServer(make(calls=UNSENT, faults=FROZEN)) as owner:
        client(owner.url).call()
        assert owner.tally().effects == ()


def test_a_call_sent_on_waking_meets_what_the_owner_knows_by_then(make: Make, client) -> None:
    scenario = make(calls=UNSENT, faults=FROZEN, deduplicatesByKey=True)
    with OwnerServer(scenario) as owner:
        client(owner.url).call()
        assert client(owner.url).call()[0] == 200
        owner.ledger.wake()
        assert [event.did for event in owner.tally().calls] == [Did.DEDUPLICATED, Did.COMMITTED]


def test_a_call_sent_on_waking_carries_a_token_that_passed_on(make: Make, client) -> None:
    scenario = make(calls=UNSENT, faults=FROZEN, lease=LEASE, fences="by_lease")
    with OwnerServer(scenario) as owner:
        client(owner.url).call(fencingToken=1)
        owner.ledger.move_lease()
        owner.ledger.wake()
        [call] = owner.tally().calls
        assert (call.did, call.token_in_force) == (Did.SUPERSEDED, 2)


# --- requests that cannot be read ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/effects", b"no json"),
        ("POST", "/effects", b"\xff"),
        ("POST", "/effects", b"[]"),
        ("POST", "/effects", b'{"args": {}}'),
        ("POST", "/effects", b'{"idempotencyKey": "", "args": {}}'),
        ("POST", "/effects", b'{"idempotencyKey": "k"}'),
        ("POST", "/effects", b'{"idempotencyKey": "k", "args": {}, "fencingToken": "1"}'),
        ("POST", "/effects", b'{"idempotencyKey": "k", "args": {"n": NaN}}'),
        ("POST", "/effects", b'{"idempotencyKey": "k", "args": ' + b"[" * 50_000),
        ("POST", "/fence", b"{}"),
        ("GET", "/effects/", None),
        ("GET", "/effects/k?fencingToken=x", None),
        ("GET", "/effects/a/b", None),
        ("GET", "/effects/%ff", None),
        ("BREW", "/effects", None),
    ],
)
def test_a_request_that_cannot_be_read_gets_400_and_is_counted(
    make: Make, client, method: str, path: str, body: bytes | None
) -> None:
    with conformance.effect_owner(make()) as (url, owner):
        status, value = client(url).request(method, path, body)
        assert status == 400
        assert value["error"]
        tally = owner.tally()
        assert [event.kind for event in tally.events] == [Kind.MALFORMED]
        assert tally.effects == ()
        assert client(url).call()[0] == 200


def test_a_body_in_chunks_is_read(make: Make) -> None:
    with conformance.effect_owner(make()) as (url, owner):
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 5) as connection:
            chunks = b'1c\r\n{"idempotencyKey": "k", "arg\r\n7\r\ns": {}}\r\n0\r\n\r\n'
            head = b"POST /effects HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
            connection.sendall(head + chunks)
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
        assert len(owner.tally().effects) == 1


def test_a_place_that_is_not_in_the_contract_is_404_and_no_finding(make: Make, client) -> None:
    scenario = make(accepted=[{"effects": 0, "outcome": "not_run"}])
    with conformance.effect_owner(scenario) as (url, owner):
        assert client(url).request("GET", "/health")[0] == 404
        assert conformance.judge(scenario, owner, "not_run") == []


# --- the server ----------------------------------------------------------------------------------


def test_a_request_of_a_sender_that_went_away_is_read_before_the_count(make: Make) -> None:
    body = b'{"idempotencyKey": "k", "args": {}}'
    head = f"POST /effects HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with conformance.effect_owner(make()) as (url, owner):
        host, port = url.removeprefix("http://").split(":")
        for _ in range(20):
            with socket.create_connection((host, int(port)), 5) as connection:
                connection.sendall(head + body)
        assert len(owner.tally().effects) == 20


def test_a_moment_is_told_while_the_request_stands_still(make: Make, client) -> None:
    seen: list[tuple[Moment, int]] = []
    scenario = make()

    def on_moment(moment: Moment) -> None:
        seen.append((moment, len(server.ledger.tally().effects)))

    with OwnerServer(scenario, on_moment=on_moment) as server:
        client(server.url).call()
        client(server.url).look()
    assert seen[:2] == [(Moment.CALL_ARRIVED, 0), (Moment.CALL_LANDED, 1)]
    assert {moment for moment, _ in seen[2:]} == {
        Moment.CALL_ANSWERED,
        Moment.LOOKUP_ARRIVED,
        Moment.LOOKUP_ANSWERED,
    }


def test_an_owner_that_stops_lets_go_of_a_caller_that_hangs(make: Make, client) -> None:
    arrived = threading.Event()
    replies: list[object] = []
    scenario = make(calls=[{"reply": "hang"}])
    with OwnerServer(scenario, on_moment=lambda _: arrived.set()) as owner:
        caller = threading.Thread(target=lambda: replies.append(client(owner.url).call()))
        caller.start()
        assert arrived.wait(5)
    caller.join(5)
    assert replies == [None]


def test_an_owner_can_be_judged_after_it_has_stopped(make: Make, client) -> None:
    scenario = make(calls=[{"reply": "lost", "lands": {"after": "release"}}])
    with conformance.effect_owner(scenario) as (url, owner):
        client(url).call()
    assert conformance.judge(scenario, owner, "committed") == []


def test_an_owner_in_this_process_refuses_faults_that_need_a_process(make: Make) -> None:
    scenario = make(faults=[{"do": "kill", "at": "call_arrived"}])
    with (
        pytest.raises(conformance.ScenarioError, match="use `counterfoil runtime`"),
        conformance.effect_owner(scenario),
    ):
        pass
