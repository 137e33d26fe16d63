"""A call that outlives its lease keeps it, and only for as long as it runs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

import counterfoil as cf

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Service


def test_a_long_call_keeps_its_lease_and_another_worker_waits(
    tmp_path: Path, service: Service
) -> None:
    renewed, go_on = threading.Event(), threading.Event()
    path = tmp_path / "e.db"

    @cf.effect("long", owner=cf.Owner("s", deduplicates=True, key_retention="forever"))
    def long(attempt: cf.Attempt) -> object:
        go_on.wait(30)
        return service.call(attempt)

    # A lease must cover its margin before the first byte, so it cannot be very short.
    with cf.open(path, create=True, lease=4) as first, cf.open(path, lease=4) as second:
        outcomes: list[cf.Outcome[object]] = []
        thread = threading.Thread(target=lambda: outcomes.append(first.perform(long, "o-1")))

        append = first.store.append

        def watched(*args: object, **options: object) -> object:
            result = append(*args, **options)  # type: ignore[arg-type]
            if "Leased(" in repr(args[2]) and "Dispatched(" not in repr(args[2]):
                renewed.set()
            return result

        first.store.append = watched  # type: ignore[method-assign,assignment]
        thread.start()
        assert renewed.wait(30)
        with pytest.raises(cf.OperationInFlight):
            second.perform(long, "o-1", wait_if_in_flight=False)
        go_on.set()
        thread.join()
    assert (outcomes[0].status, outcomes[0].attempts, service.count) == ("committed", 1, 1)
