"""`check_effect` against a real loopback server: a right effect passes, each wrong one is named."""

from __future__ import annotations

import http.client
import json
import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

import counterfoil as cf
from counterfoil.coordinator.effects import registered
from counterfoil.testing import EffectFindings, Report, Subject, check_effect

from .refunds import Client, Refunds, declare, find, refund, sandbox_for

if TYPE_CHECKING:
    from collections.abc import Callable

CROWD = 25
WATCH = 0.8


def check(
    server: Refunds,
    call: Callable[..., object] = refund,
    look_up: Callable[..., object] | None = find,
    **promises: Any,
) -> Report:
    client = Client()
    with server, sandbox_for(server, client) as sandbox:
        effect = declare(client, call, look_up, **promises)
        return check_effect(effect, sandbox, crowd=CROWD, watch=WATCH)


def only(report: Report, promise: Subject) -> str:
    """Return the text of the one finding, which is about this promise."""
    assert [finding.promise for finding in report.findings] == [promise], str(report)
    return str(report.findings[0])


RIGHT: dict[str, tuple[Refunds, dict[str, Any]]] = {
    "no promise": (Refunds(), {}),
    "settles": (Refunds(commit_delay_s=0.05), {"settles_within": "2m"}),
    "deduplicates": (
        Refunds(deduplicates=True),
        {"deduplicates": True, "key_retention": "forever"},
    ),
    "final": (Refunds(tombstones=True), {"final_by": "answer"}),
    "reads behind": (Refunds(read_lag_s=0.1), {"settles_within": "5s"}),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_effect_passes(name: str) -> None:
    server, promises = RIGHT[name]
    report = check(server, **promises).raise_for_findings()
    assert report.ok
    assert {"plain", "crowded", "no_reply", "cut_reply", "late_commit"} <= set(report.tried)
    assert ("stale_read" in report.tried) is (name != "final")
    assert ("sent_twice" in report.tried) is (name == "deduplicates")


def test_an_effect_without_a_look_up_passes_with_a_note_that_says_what_it_costs() -> None:
    report = check(Refunds(), look_up=None)
    assert report.ok
    assert "no look-up" in str(report)
    assert "late_commit: the operation stayed unknown (owner_cannot_be_asked" in str(report)


def test_checking_registers_nothing_beyond_the_effect_itself() -> None:
    check(Refunds())
    effect = registered("payment.refund")
    assert effect is not None
    assert not hasattr(effect.adapter, "sandbox")


# --- wrong look-ups ------------------------------------------------------------------------------


def test_a_look_up_that_always_says_absent_is_named() -> None:
    text = only(check(Refunds(), look_up=lambda attempt, client: cf.absent()), Subject.LOOK_UP)
    assert "It asked nobody." in text


def test_a_look_up_that_always_says_present_is_named() -> None:
    report = check(Refunds(), look_up=lambda attempt, client: cf.present({"id": attempt.key}))
    assert "never sent" in only(report, Subject.LOOK_UP)


def test_a_look_up_under_another_key_is_named_with_what_it_asked() -> None:
    def by_order(attempt: cf.Attempt, client: Client) -> object:
        return find(attempt._replace(key=attempt.arguments["order"]), client)

    text = only(check(Refunds(), look_up=by_order), Subject.LOOK_UP)
    assert "It asked GET /refunds/order-" in text
    assert "attempt.key is not named" in text


def test_a_look_up_that_does_not_read_its_answer_is_named() -> None:
    def unread(attempt: cf.Attempt, client: Client) -> object:
        find(attempt, client)
        return cf.absent()

    text = only(check(Refunds(), look_up=unread), Subject.LOOK_UP)
    assert "did not read the effect out of the answer" in text


def in_latest(attempt: cf.Attempt, client: Client, *, partial: bool) -> object:
    for each in client.get("/refunds?limit=20"):
        if each["key"] == attempt.key:
            return cf.present(each, effect_id=each["id"])
    return cf.absent(partial=partial)


def test_a_look_up_in_the_latest_page_is_named() -> None:
    report = check(Refunds(), look_up=lambda a, c: in_latest(a, c, partial=False))
    assert "cf.absent(partial=True)" in only(report, Subject.LOOK_UP)


def test_a_look_up_that_says_that_its_page_is_partial_passes() -> None:
    check(Refunds(), look_up=lambda a, c: in_latest(a, c, partial=True)).raise_for_findings()


def test_a_look_up_that_makes_the_effect_is_named() -> None:
    def find_or_create(attempt: cf.Attempt, client: Client) -> object:
        return cf.present(client.send(attempt.key, {"order": attempt.arguments["order"]})[1])

    assert "question itself" in only(check(Refunds(), look_up=find_or_create), Subject.LOOK_UP)


def test_a_look_up_that_fails_where_nothing_is_found_is_named() -> None:
    def unmapped(attempt: cf.Attempt, client: Client) -> object:
        return cf.present(client.get(f"/refunds/{attempt.key}"))

    text = only(check(Refunds(), look_up=unmapped), Subject.LOOK_UP)
    assert "HTTPError" in text


@pytest.mark.parametrize("promises", [{}, {"final_by": "answer"}, {"settles_within": "2m"}])
def test_final_said_while_a_call_can_still_commit_is_named(promises: dict[str, Any]) -> None:
    def sure(attempt: cf.Attempt, client: Client) -> object:
        found = find(attempt, client)
        return found if getattr(found, "result", None) == "present" else cf.absent(final=True)

    report = check(Refunds(), look_up=sure, **promises)
    assert "cf.absent(final=True)" in only(report, Subject.FINAL_BY)


# --- wrong calls ---------------------------------------------------------------------------------


def test_a_time_out_that_is_swallowed_is_named() -> None:
    def swallowing(attempt: cf.Attempt, client: Client, order: str) -> object:
        try:
            return refund(attempt, client, order)
        except TimeoutError:
            return {"id": None}

    text = only(check(Refunds(), swallowing), Subject.CALL)
    assert "heard nothing" in text
    assert "returned a value all the same" in text


def test_a_broken_connection_that_is_swallowed_is_named() -> None:
    def swallowing(attempt: cf.Attempt, client: Client, order: str) -> object:
        try:
            return refund(attempt, client, order)
        except ConnectionError:
            return None

    assert "connection broke" in only(check(Refunds(), swallowing), Subject.CALL)


def test_a_time_out_turned_into_no_effect_is_named_where_the_time_out_shows() -> None:
    def refusing(attempt: cf.Attempt, client: Client, order: str) -> object:
        try:
            return refund(attempt, client, order)
        except TimeoutError:
            raise cf.NoEffect("timed_out") from None

    assert "out of TimeoutError" in only(check(Refunds(), refusing), Subject.CALL)


def test_a_time_out_turned_into_no_effect_is_named_where_it_is_hidden() -> None:
    def hiding(attempt: cf.Attempt, client: Client, order: str) -> object:
        lost = False
        try:
            return refund(attempt, client, order)
        except OSError:
            lost = True
        raise cf.NoEffect(f"lost={lost}")

    text = only(check(Refunds(), hiding), Subject.CALL)
    assert "(lost=True) while the owner holds 1 effect" in text


def test_a_fresh_key_for_each_call_is_named() -> None:
    def fresh(attempt: cf.Attempt, client: Client, order: str) -> object:
        return refund(attempt._replace(key=str(uuid.uuid4())), client, order)

    text = only(check(Refunds(), fresh), Subject.CALL)
    assert "POST /refunds, without attempt.key" in text


def test_a_fresh_key_is_named_without_a_look_up_too() -> None:
    def fresh(attempt: cf.Attempt, client: Client, order: str) -> object:
        return refund(attempt._replace(key=str(uuid.uuid4())), client, order)

    server = Refunds(deduplicates=True)
    report = check(server, fresh, None, deduplicates=True, key_retention="forever")
    assert "Send attempt.key" in only(report, Subject.CALL)


def test_an_http_response_that_is_returned_is_named() -> None:
    def raw(attempt: cf.Attempt, client: Client, order: str) -> object:
        connection = http.client.HTTPConnection(urlsplit(client.base).netloc, timeout=1)
        headers = {"Idempotency-Key": attempt.key}
        connection.request("POST", "/refunds", json.dumps({"order": order}), headers)
        response = connection.getresponse()
        response.read()
        connection.close()
        return response

    assert "HTTP response" in only(check(Refunds(), raw), Subject.CALL)


def test_a_client_that_sends_again_by_itself_is_named() -> None:
    def insisting(attempt: cf.Attempt, client: Client, order: str) -> object:
        try:
            return refund(attempt, client, order)
        except OSError:
            return refund(attempt, client, order)

    assert "retries" in only(check(Refunds(), insisting), Subject.CALL)


def test_a_client_that_goes_past_the_sandbox_is_named() -> None:
    def past(attempt: cf.Attempt, client: Client, order: str) -> object:
        return refund(attempt, Client(server.url), order)

    server = Refunds()
    assert "sandbox.url" in only(check(server, past), Subject.SET_UP)


def test_a_call_that_fails_before_it_sends_is_named_by_what_it_raised() -> None:
    def broken(attempt: cf.Attempt, client: Client, order: str) -> object:
        raise LookupError("no such setting")

    text = only(check(Refunds(), broken), Subject.CALL)
    assert "raised LookupError" in text
    assert "No request of it passed" in text


def test_arguments_that_the_owner_refuses_are_named() -> None:
    def refused(attempt: cf.Attempt, client: Client, order: str) -> object:
        client.send(attempt.key, {"order": order})
        raise cf.NoEffect("order_unknown")

    assert "order_unknown" in only(check(Refunds(), refused), Subject.SET_UP)


# --- wrong promises ------------------------------------------------------------------------------


@pytest.mark.parametrize("look_up", [find, None])
def test_an_owner_said_to_deduplicate_that_does_not_is_named(look_up: Any) -> None:
    report = check(Refunds(), look_up=look_up, deduplicates=True, key_retention="forever")
    assert "2 effects" in only(report, Subject.DEDUPLICATES)


def test_a_repeated_key_read_as_a_refusal_is_named() -> None:
    server = Refunds(refuses_repeats=True)
    report = check(server, deduplicates=True, key_retention="forever")
    assert "no_effect (key_used)" in only(report, Subject.CALL)


@pytest.mark.parametrize("accepts_first", [False, True])
def test_an_owner_said_to_settle_sooner_than_it_commits_is_named(accepts_first: bool) -> None:
    server = Refunds(commit_delay_s=0.5, accepts_first=accepts_first)
    client = Client(timeout_s=2 if accepts_first else 1)
    with server, sandbox_for(server, client) as sandbox:
        effect = declare(client, settles_within="50ms")
        report = check_effect(effect, sandbox, crowd=0, watch=WATCH)
    assert "settles_within 50 ms" in only(report, Subject.SETTLES_WITHIN)


def test_an_owner_said_to_settle_sooner_than_its_reads_show_is_named() -> None:
    report = check(Refunds(read_lag_s=0.3), settles_within="50ms")
    assert "showed it only" in only(report, Subject.SETTLES_WITHIN)


def test_a_report_with_findings_raises_and_shows_itself() -> None:
    report = check(Refunds(), look_up=lambda attempt, client: cf.absent())
    with pytest.raises(EffectFindings) as caught:
        report.raise_for_findings()
    assert str(caught.value) == str(report)
    assert "mend this first" in str(report)
