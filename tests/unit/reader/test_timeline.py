"""A trail as ordered moments."""

from __future__ import annotations

from building import absent, at, attempt, held, lease, trail

from counterfoil.reader.shown import escaped, shown
from counterfoil.reader.timeline import Kind, timeline
from counterfoil.record.codec import decode


def test_moments_come_in_the_order_of_time_and_name_their_members() -> None:
    values = trail(
        "committed",
        held(1, 5, "timeout", "w1", 1),
        held(2, 65, "confirmed", "w2", 2),
        answers=[absent(30)],
        leases=[lease("w1", 1, 0, 50), lease("w2", 2, 60, 110)],
        reservation={"units": 1, "expiresAt": at(90), "charged": True},
    )
    assert [(m.kind.value, m.member) for m in timeline(decode(values))] == [
        ("lease_acquired", "/leases/0"),
        ("dispatched", "/attempts/0"),
        ("answered", "/reconciliations/0"),
        ("lease_expires", "/leases/0"),
        ("lease_acquired", "/leases/1"),
        ("dispatched", "/attempts/1"),
        ("reservation_expires", "/reservation"),
        ("lease_expires", "/leases/1"),
    ]


def test_at_one_instant_the_lease_and_the_answer_come_before_the_dispatch() -> None:
    values = trail(
        "unknown",
        held(1, 5, "timeout", "w1", 1),
        answers=[absent(5)],
        leases=[lease("w1", 1, 5, 5)],
    )
    assert [m.kind for m in timeline(decode(values))] == [
        Kind.LEASE_ACQUIRED,
        Kind.ANSWERED,
        Kind.DISPATCHED,
        Kind.LEASE_EXPIRES,
    ]


def test_a_moment_as_json_has_its_time_in_utc() -> None:
    values = trail(
        "committed", attempt(1, 0, "confirmed", dispatchedAt="2026-03-01T12:30:00.50+02:30")
    )
    (moment,) = timeline(decode(values))
    assert moment.as_json() == {
        "at": "2026-03-01T10:00:00.5Z",
        "kind": "dispatched",
        "text": 'attempt 1 is sent under "key-1": confirmed',
        "member": "/attempts/0",
    }


def test_shown_text_keeps_letters_and_escapes_what_is_invisible() -> None:
    assert shown("Zoë 漢 é") == '"Zoë 漢 é"'
    assert shown('a"b\\c\n\x1b\u200b\u202e\ud800\U000e0001') == (
        '"a\\"b\\\\c\\u000a\\u001b\\u200b\\u202e\\ud800\\U000e0001"'
    )
    assert escaped("plain") == "plain"


def test_shown_text_is_cut_before_it_is_escaped() -> None:
    assert shown("\n" * 100, 3) == '"\\u000a\\u000a\\u000a"...'
