"""Several processes over one database at once, interrupts, and processes out of descriptors."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from crash_checks import dispatches_in, kinds_of, log_of, trails_of
from crash_child import Task
from crash_owner import CrashOwner, Step

import counterfoil as cf

if TYPE_CHECKING:
    from pathlib import Path

    from crash_process import Processes

SHARED = tuple(f"shared-{number}" for number in range(6))
WRITERS = 4


def test_four_processes_make_one_attempt_of_each_shared_operation_and_lose_no_append(
    processes: Processes, folder: Path
) -> None:
    database = folder / "effects.db"
    cf.open(database, create=True).close()
    with CrashOwner(witness=lambda: dispatches_in(database)) as owner:
        pids = [
            processes.start(
                Task(
                    str(database),
                    owner.url,
                    operations=(*SHARED, f"own-{writer}"),
                    stopped=True,
                    patience_s=15.0,
                )
            )
            for writer in range(WRITERS)
        ]
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        ended = [processes.wait(pid) for pid in pids]
    for each in ended:
        assert [said["outcome"] for said in each.outcomes] == ["committed"] * (len(SHARED) + 1), (
            each
        )
    assert set(owner.effects.values()) == {1}
    assert len(owner.posts) == len(SHARED) + WRITERS
    entries = log_of(database)
    assert sorted(e for each in ended for e in each.stored) == sorted(
        entry.event_id.hex() for entry in entries
    )
    tokens = [entry.token for entry in entries if entry.token is not None]
    assert tokens == sorted(set(tokens))
    trails_of(database)


@pytest.mark.parametrize("adapter", ["function", "http"])
def test_an_interrupted_call_is_recorded_as_unknown_and_found_later(
    processes: Processes, folder: Path, adapter: str
) -> None:
    database = folder / "effects.db"
    cf.open(database, create=True).close()
    step = Step(replies=False, kills="last", signal=signal.SIGINT)
    with CrashOwner(script=(step,)) as owner:
        task = Task(str(database), owner.url, adapter=adapter)
        pid = processes.start(task)
        owner.senders.put(pid)
        assert processes.wait(pid).status == 130
        assert kinds_of(database) == ["opened", "dispatched", "replied"]
        (trail,) = trails_of(database)
        assert trail["attempts"][0]["reply"] == "connection_lost"
        assert trail["reported"] == {"outcome": "unknown"}
        assert processes.run(task).outcome["outcome"] == "committed"
    assert owner.effects_made == 1


@pytest.mark.parametrize("descriptors", range(4, 12))
def test_a_process_out_of_descriptors_sends_nothing_that_is_not_recorded(
    processes: Processes, folder: Path, descriptors: int
) -> None:
    database = folder / "effects.db"
    cf.open(database, create=True).close()
    with CrashOwner(witness=lambda: dispatches_in(database)) as owner:
        starved = Task(
            str(database), owner.url, descriptors_max=descriptors, attempts_max=1, patience_s=0.2
        )
        ended = processes.run(starved)
        if ended.status == 0:
            assert ended.outcome["outcome"] == ("committed" if owner.posts else "not_run")
        else:
            assert ended.status == cf.BrokenWorld.exit_code, ended
            assert ended.error["error"].startswith("Store")
            assert not owner.posts
        assert all(post.dispatches == 1 for post in owner.posts)
        assert owner.effects_made == len(owner.posts)
        if kinds_of(database):
            trails_of(database)
