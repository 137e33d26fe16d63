"""The state: a mapping that never changes, over maps that never change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from counterfoil.mission import CommandError, canonical_state_bytes, reduce
from counterfoil.mission.persistent import PersistentMap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mission_desk import Desk


def test_the_state_has_the_members_of_the_page(desk: Desk) -> None:
    assert list(desk.state) == [
        "contract",
        "now",
        "spent",
        "reserved",
        "events",
        "stopped",
        "runs",
        "grants",
        "approvals",
        "operations",
        "attempts",
        "graphs",
        "triggers",
    ]
    assert dict(desk.state) == desk.state.plain()
    with pytest.raises(KeyError):
        desk.state["free"]


def test_canonical_bytes_are_one_line(desk: Desk) -> None:
    desk.do("admit")
    text = canonical_state_bytes(desk.state)
    assert text.endswith(b"}\n")
    assert text.count(b"\n") == 1


def test_what_is_read_can_be_changed_without_changing_the_state(desk: Desk) -> None:
    desk.do("admit")
    before = canonical_state_bytes(desk.state)
    desk.operation()["action"]["payload"]["value"] = 9
    desk.operation()["attempts"].append("x")
    desk.state.plain()["runs"].clear()  # type: ignore[union-attr]
    assert canonical_state_bytes(desk.state) == before


def test_old_states_stay_valid_and_lead_elsewhere(desk: Desk) -> None:
    states = [(desk.state, canonical_state_bytes(desk.state))]
    for number in range(60):
        desk.do("admit", operationId=f"o{number}", attemptId=f"a{number}", amount="0.1")
        states.append((desk.state, canonical_state_bytes(desk.state)))
    for state, text in states:
        assert canonical_state_bytes(state) == text
    desk.state = states[7][0]
    desk.do("release", attemptId="a3")
    assert desk.state["reserved"] == "0.6"


def test_what_was_not_parsed_is_no_command(desk: Desk) -> None:
    with pytest.raises(CommandError):
        reduce(desk.state, {"type": "startRun", "runId": "r2"}, 10)  # type: ignore[arg-type]


def test_a_state_cannot_be_assigned_to(desk: Desk) -> None:
    with pytest.raises(AttributeError):
        desk.state.parts = None  # type: ignore[misc,assignment]


def test_a_record_that_is_not_there_is_a_key_error(desk: Desk) -> None:
    for name in ("operations", "attempts", "runs"):
        with pytest.raises(KeyError):
            desk.state[name]["x"]  # type: ignore[index]


def test_a_table_is_sorted_and_shows_itself(desk: Desk) -> None:
    for name in ("z", "a", "m"):
        desk.do("admit", operationId=name, attemptId=f"{name}1", amount="1")
    assert list(desk.state["attempts"]) == ["a1", "m1", "z1"]  # type: ignore[call-overload]
    assert "'z1': {'operationId': 'z'" in repr(desk.state["attempts"])
    assert repr(desk.state["operations"]).startswith("{'a': {'runId': 'r'")
    assert len(desk.state["attempts"]) == 3  # type: ignore[arg-type]


# --- the map -------------------------------------------------------------------------------------


class Clashing(str):
    """Text whose hash has only four values: every leaf is full and every level is used."""

    __slots__ = ()

    def __hash__(self) -> int:
        return len(self) % 4

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)


def keys(kind: type[str], count: int) -> Iterator[str]:
    return (kind(f"{number:b}") for number in range(count))


@pytest.mark.parametrize(("kind", "count"), [(str, 3000), (Clashing, 120)])
def test_a_map_holds_what_a_dict_holds(kind: type[str], count: int) -> None:
    made: PersistentMap[int] = PersistentMap()
    model: dict[str, int] = {}
    for number, key in enumerate(keys(kind, count)):
        made, model[key] = made.set(key, number), number
    for number, key in enumerate(keys(kind, count)):
        if number % 3 == 0:
            made = made.without(key)
            del model[key]
        elif number % 3 == 1:
            made, model[key] = made.set(key, -number), -number
    assert made == model
    assert len(made) == len(model)
    assert list(made) == sorted(model)


def test_an_older_map_is_not_changed() -> None:
    made: PersistentMap[int] = PersistentMap()
    older: list[tuple[PersistentMap[int], dict[str, int]]] = []
    model: dict[str, int] = {}
    for number in range(400):
        older.append((made, dict(model)))
        key = f"k{number % 150}"
        if key in model:
            made = made.without(key)
            del model[key]
        else:
            made = made.set(key, number)
            model[key] = number
    assert all(then == was for then, was in older)


def test_a_map_says_what_it_does_not_hold() -> None:
    made: PersistentMap[Any] = PersistentMap[Any]().set("a", None)
    assert "a" in made
    assert "b" not in made
    assert 1 not in made  # type: ignore[comparison-overlap]
    assert made.get("b", 3) == 3
    for missing in (made.__getitem__, made.without):
        with pytest.raises(KeyError):
            missing("b")
