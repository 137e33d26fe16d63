"""What proves that a worker can send nothing any more, and what looks like a proof and is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from counterfoil.coordinator.worker import BY_BOOT, BY_LOCK, Worker

if TYPE_CHECKING:
    from pathlib import Path

    from counterfoil.store.port import WorkerRecord


@pytest.fixture
def asker(tmp_path: Path) -> Worker:
    return Worker(tmp_path / "locks")


@pytest.fixture
def ended(asker: Worker) -> WorkerRecord:
    worker = Worker(asker.locks)
    worker.end(leave_no_trace=False)
    return worker.record


def test_a_free_lock_proves_it(asker: Worker, ended: WorkerRecord) -> None:
    assert asker.proof_of_death(ended) == BY_LOCK


def test_a_free_lock_of_an_earlier_boot_proves_it(asker: Worker, ended: WorkerRecord) -> None:
    assert asker.proof_of_death(ended._replace(boot="another boot")) == BY_BOOT


def test_a_held_lock_disproves_it_whatever_the_boot_says(asker: Worker) -> None:
    alive = Worker(asker.locks)
    try:
        assert asker.proof_of_death(alive.record) is None
        assert asker.proof_of_death(alive.record._replace(boot="another boot")) is None
    finally:
        alive.end(leave_no_trace=True)


@pytest.mark.parametrize("boot", ["this boot", "another boot"])
def test_a_lock_that_is_not_here_proves_nothing_even_under_one_host_name(
    asker: Worker, ended: WorkerRecord, boot: str
) -> None:
    """Two hosts made from one image have one name and two boots."""
    elsewhere = ended._replace(lock="w-elsewhere.lock")
    if boot == "another boot":
        elsewhere = elsewhere._replace(boot=boot)
    assert asker.proof_of_death(elsewhere) is None
    assert asker.proof_of_death(elsewhere._replace(lock=None)) is None


@pytest.mark.parametrize("unnamed", [{"host": "another"}, {"host": ""}, {"boot": ""}])
def test_another_host_or_one_without_a_name_proves_nothing(
    asker: Worker, ended: WorkerRecord, unnamed: dict[str, str]
) -> None:
    assert asker.proof_of_death(ended._replace(**unnamed)) is None
