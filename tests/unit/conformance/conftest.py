"""Builders and a small HTTP client for the tests of the effect owner."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from counterfoil.conformance.loading import scenario_from_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from counterfoil.conformance.scenario import Json, Scenario


def members(**changes: Json) -> dict[str, Json]:
    """Return the members of a plain scenario, with changes; None takes a member out."""
    plain: dict[str, Json] = {
        "id": "plain",
        "summary": "The owner commits and replies.",
        "operation": {"id": "op-1", "action": "pay", "idempotencyKey": "k-1", "args": {"n": 1}},
        "owner": {
            "deduplicatesByKey": False,
            "keyRetentionSeconds": None,
            "lookup": True,
            "finalBy": "answer",
            "settlesWithinSeconds": None,
            "fences": "no",
        },
        "behaviour": {"calls": [{"reply": "confirmed"}]},
        "accepted": [{"effects": 1, "outcome": "committed"}],
    }
    for name, value in changes.items():
        if name in plain["owner"]:  # type: ignore[operator]
            plain["owner"][name] = value  # type: ignore[index,call-overload]
        elif name in ("calls", "lookups"):
            plain["behaviour"][name] = value  # type: ignore[index,call-overload]
        else:
            plain[name] = value
    return {name: value for name, value in plain.items() if value is not None}


@pytest.fixture
def make() -> Callable[..., Scenario]:
    """Make a scenario from a plain one and changes to it."""

    def made(**changes: Json) -> Scenario:
        return scenario_from_bytes(json.dumps(members(**changes)).encode(), "made.json")

    return made


class Client:
    """Speaks to an owner; a reply is ``(status, value)``, or None where there was none."""

    def __init__(self, url: str) -> None:
        self.parts = urlsplit(url)

    def request(
        self, method: str, path: str, body: bytes | None = None
    ) -> tuple[int, dict[str, Json]] | None:
        connection = http.client.HTTPConnection(
            str(self.parts.hostname), self.parts.port, timeout=5
        )
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def call(self, key: str = "k", **more: Json) -> tuple[int, dict[str, Json]] | None:
        body = {"idempotencyKey": key, "args": {"n": 1}} | more
        return self.request("POST", "/effects", json.dumps(body).encode())

    def look(self, key: str = "k", query: str = "") -> tuple[int, dict[str, Json]] | None:
        return self.request("GET", f"/effects/{key}{query}")


@pytest.fixture
def client() -> Callable[[str], Client]:
    """Make a client for an owner's URL."""
    return Client
