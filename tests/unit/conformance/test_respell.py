"""A scenario is respelled from a seed: the same seed, the same letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from counterfoil import conformance
from counterfoil.conformance.respell import respelled, worker_name

if TYPE_CHECKING:
    from counterfoil.conformance.scenario import Json

CORE = conformance.shipped_scenarios()


@given(st.integers(0, 2**64), st.sampled_from(CORE))
def test_the_same_seed_gives_the_same_spelling(seed: int, scenario) -> None:
    once, again = respelled(scenario, seed), respelled(scenario, seed)
    assert dict(once[0]) == dict(again[0])
    assert once[1] == again[1]
    assert worker_name(scenario, seed, 1) == worker_name(scenario, seed, 1)


@given(st.integers(0, 2**64), st.sampled_from(CORE))
def test_id_and_key_say_nothing_of_the_scenario(seed: int, scenario) -> None:
    again, neutral = respelled(scenario, seed)
    before, after = scenario["operation"], again["operation"]
    assert before["id"] != after["id"]
    assert before["idempotencyKey"] != after["idempotencyKey"]
    assert before["action"] == after["action"]
    assert scenario.id not in neutral


@given(st.integers(0, 2**64), st.sampled_from(CORE))
def test_arguments_keep_their_shape(seed: int, scenario) -> None:
    again, _ = respelled(scenario, seed)
    assert shape(again["operation"]["args"]) == shape(scenario["operation"]["args"])


def shape(value: Json) -> object:
    match value:
        case dict():
            return {name: shape(entry) for name, entry in value.items()}
        case str():
            return "".join("d" if one.isdigit() else "a" if one.isalpha() else one for one in value)
        case _:
            return type(value), len(str(value))


def test_two_workers_have_two_names() -> None:
    assert worker_name(CORE[0], 7, 1) != worker_name(CORE[0], 7, 2)
