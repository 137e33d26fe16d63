"""What the adapters share: the scenario's file, the owner's requests, the last line.

Standard library only: it runs in an environment that has the measured libraries and not ours.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

CALL_S = 1.0
"""Seconds one exchange with the owner may take."""

ABANDONED_S = 2.0
"""Seconds without a sign of life after which a library that counts them takes a worker for dead:
well above the longest call, as each of them asks for."""

PATIENCE_S = 4.5
"""Seconds in which an adapter comes back to an operation that is not settled."""

PAUSE_S = 0.2

RECIPE = "recipe"
CAREFUL = "careful"
MODES = (RECIPE, CAREFUL)
"""How the owner's absent answer is read: as the usual recipe has it, it did not happen; or only
where that is final, or where another call does no harm because the owner deduplicates for ever."""


class NoReply(Exception):
    """The call was sent, and what came back does not say what it did."""


class LeaseLost(Exception):
    """The lease passed on: the call was not sent, or the owner refused its token."""


class Task:
    """The operation of the scenario that the command line names, and its owner."""

    def __init__(self) -> None:
        """Read ``[MODE] SCENARIO.json`` from the command line."""
        *modes, path = sys.argv[1:]
        mode = modes[0] if modes else CAREFUL
        if mode not in MODES:
            sys.exit(f"the mode is one of {', '.join(MODES)}, not {mode!r}")
        scenario: dict[str, Any] = json.loads(Path(path).read_text("utf-8"))
        owner = scenario["owner"]
        deduplicates = owner["deduplicatesByKey"] and owner["keyRetentionSeconds"] is None
        self._believes_every_absent = mode == RECIPE or deduplicates
        self.key: str = scenario["operation"]["idempotencyKey"]
        self.action: str = scenario["operation"]["action"]
        self.args: dict[str, Any] = scenario["operation"]["args"]
        self.url = os.environ["AEV_EFFECT_OWNER"]
        # Shared by every worker of the operation: a second one finds the first one's records.
        self.folder = Path(os.environ["COUNTERFOIL_STATE_DIR"])
        self._leased = "lease" in scenario
        self._token = self._read_token() if self._leased else None

    def _read_token(self) -> int | None:
        reply = self._request("GET", f"{self.url}/lease")
        return reply[1].get("token") if reply and reply[0] == 200 else None

    def send(self) -> dict[str, Any]:
        """Send the call once; return the owner's answer, ``{"refused": True}`` if it said no.

        Raises ``NoReply`` when the effect may have happened, ``LeaseLost`` when this call did
        nothing because another worker has the lease.
        """
        body: dict[str, Any] = {"idempotencyKey": self.key, "args": self.args}
        if self._leased:
            # The last look before the first byte: the token that is in force is never adopted.
            if self._token is None or self._read_token() != self._token:
                raise LeaseLost("another worker holds the lease")
            body["fencingToken"] = self._token
        match self._request("POST", f"{self.url}/effects", body):
            case (200, answer):
                return answer
            case (409, {"error": "in_progress"}):
                raise NoReply("the owner is still at work on an earlier call")
            case (409, _):
                return {"refused": True}
            case (412, _):
                raise LeaseLost("the owner refused the token")
            case _:
                raise NoReply("the reply was lost")

    def happened(self) -> bool | None:
        """Ask the owner: True if it holds the effect, False if not, None where nobody can say."""
        match self._request("GET", f"{self.url}/effects/{quote(self.key, safe='')}"):
            case (200, answer):
                return self.read(answer)
            case _:
                return None

    def read(self, answer: object) -> bool | None:
        """Read an answer about the key, in the mode of this run."""
        match answer:
            case {"result": "present"}:
                return True
            case {"result": "absent", "final": final} if final or self._believes_every_absent:
                return False
            case _:
                return None

    @staticmethod
    def _request(
        method: str, url: str, body: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]] | None:
        """Exchange one request on a connection of its own; None without a JSON object."""
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=CALL_S)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, parts.path, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            value = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()
        return (response.status, value) if isinstance(value, dict) else None


def outcome_of(answer: dict[str, Any]) -> str:
    """Say what an answer of the owner settles."""
    return "not_run" if answer.get("refused") else "committed"


def report(outcome: str) -> None:
    """Print the last line."""
    print(json.dumps({"outcome": outcome}), flush=True)


def come_back(step: Callable[[], str | None]) -> None:
    """Take the step until it gives an outcome or patience ends, and report."""
    deadline_s = time.monotonic() + PATIENCE_S
    while (outcome := step()) is None and time.monotonic() < deadline_s:
        time.sleep(PAUSE_S)
    report(outcome or "unknown")
