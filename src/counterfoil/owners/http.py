"""An owner that speaks the seed's contract over HTTP: `POST /effects`, `GET /effects/{key}`,
`GET /lease`, and `POST /fence` where a call of its own raises the bar.

One connection an exchange, a total deadline, a cap on bytes, no redirects, no proxies from the
environment, no hidden resend. A status that is neither the documented confirmation nor the
documented refusal shows nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from counterfoil.errors import BadInput
from counterfoil.limits import CALL_DEADLINE_S, RESPONSE_BYTES_MAX
from counterfoil.operation.promises import Duration, seconds
from counterfoil.operation.replies import Answer, NoAnswer, Refusal, Reply, ReplyKind, Result
from counterfoil.owners.http_exchange import Failure, FailureKind, Response, effect_url, exchange
from counterfoil.owners.results import absent, present
from counterfoil.record.strict_json import parse_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from counterfoil.owners.port import Attempt, Operation

CONFIRMED = 200
REFUSED = 409
TOKEN_SUPERSEDED = 412
IN_PROGRESS = "in_progress"


class HttpOwner:
    """Our side of an owner under ``base_url``; decorate it with ``counterfoil.effect``.

    ``deadline`` bounds each exchange as a whole, ``response_bytes_max`` what is read of a reply,
    ``headers`` go with every request (authorization, say; they are never stored or logged).
    ``sends_token``: calls and questions carry the fencing token. Raises ``BadInput`` for a URL that
    is not plain http or https.
    """

    bounds_calls = True

    def __init__(
        self,
        base_url: str,
        *,
        deadline: Duration = CALL_DEADLINE_S,
        response_bytes_max: int = RESPONSE_BYTES_MAX,
        headers: Mapping[str, str] | None = None,
        sends_token: bool = False,
    ) -> None:
        effect_url(base_url, "any")  # refuses what is no owner's URL, and repeats nothing of it
        self.base_url = base_url.rstrip("/")
        self.deadline_s = seconds(deadline, of="deadline")
        self._response_bytes_max = response_bytes_max
        self._headers = {"Content-Type": "application/json", **(headers or {})}
        self._sends_token = sends_token

    def execute(self, operation: Operation, attempt: Attempt) -> Reply:
        """Send the attempt once and say what the wire showed."""
        body: dict[str, object] = {
            "idempotencyKey": attempt.key,
            "args": dict(operation.arguments),
        }
        if self._sends_token:
            body["fencingToken"] = attempt.token
        result = self._exchange("POST", f"{self.base_url}/effects", body, attempt.look)
        return reply_of(result, attempt.key)

    def reconcile(self, operation: Operation, attempt: Attempt) -> Answer | NoAnswer:
        """Ask what the owner holds under the attempt's key."""
        del operation
        url = effect_url(self.base_url, attempt.key)
        if self._sends_token and attempt.token is not None:
            url += f"?fencingToken={attempt.token}"
        return answer_of(self._exchange("GET", url, None), attempt.key)

    def read_token(self) -> int:
        """Return the token of the lease that the owner grants. Raises ``OSError`` if unread."""
        return self._token(self._exchange("GET", f"{self.base_url}/lease", None))

    def raise_fence(self, attempt: Attempt) -> bool:
        """Have the owner refuse tokens below the attempt's; True when it says that it does."""
        result = self._exchange("POST", f"{self.base_url}/fence", {"fencingToken": attempt.token})
        return attempt.token is not None and self._token(result) >= attempt.token

    def _exchange(
        self,
        method: str,
        url: str,
        body: Mapping[str, object] | None,
        look: Callable[[], str | None] | None = None,
    ) -> Response | Failure:
        return exchange(
            method,
            url,
            headers=self._headers,
            body=None if body is None else json.dumps(body).encode(),
            deadline_s=self.deadline_s,
            response_bytes_max=self._response_bytes_max,
            before_first_byte=look,
        )

    def _token(self, result: Response | Failure) -> int:
        said = object_in(result) if isinstance(result, Response) else None
        token = said.get("token") if said is not None else None
        if not isinstance(result, Response) or result.status != CONFIRMED:
            raise OSError("the owner did not say its token")
        if isinstance(token, bool) or not isinstance(token, int):
            raise OSError("the owner's token is no integer")
        return token


def reply_of(result: Response | Failure, key: str) -> Reply:
    """Return what one exchange shows of a call under ``key``."""
    if isinstance(result, Failure):
        match result.kind:
            case FailureKind.NOT_SENT:
                return Reply(ReplyKind.NO_EFFECT, Refusal.NOT_SENT, result.detail)
            case FailureKind.TIMEOUT:
                return Reply(ReplyKind.TIMEOUT, detail=result.detail)
            case FailureKind.CUT:
                return Reply(ReplyKind.CONNECTION_LOST, detail=result.detail)
    said = object_in(result)
    if said is not None and said.get("idempotencyKey", key) != key:
        return _lost("the owner answered for another key")
    if result.status == CONFIRMED and said is not None:
        return Reply(ReplyKind.CONFIRMED, value=said, effect_id=_effect_id(said))
    if result.status == REFUSED and said is not None and said.get("error") != IN_PROGRESS:
        return Reply(ReplyKind.NO_EFFECT, Refusal.DEFINITE, _word(said) or "refused")
    if result.status == TOKEN_SUPERSEDED and said is not None:
        return Reply(ReplyKind.NO_EFFECT, Refusal.TOKEN, "the fencing token is superseded")
    return _lost(f"status {result.status} is neither the confirmation nor the refusal")


def answer_of(result: Response | Failure, key: str) -> Answer | NoAnswer:
    """Return what one exchange answers to a question about ``key``."""
    if isinstance(result, Failure):
        return NoAnswer(result.detail)
    if result.status != CONFIRMED:
        return NoAnswer(f"the owner answered with status {result.status}")
    said = object_in(result)
    if said is None:
        return NoAnswer("the owner's answer cannot be read")
    if said.get("idempotencyKey", key) != key:
        return NoAnswer("the owner answered for another key")
    if said.get("result") == Result.PRESENT:
        return present(said, effect_id=_effect_id(said))
    if said.get("result") == Result.ABSENT and isinstance(said.get("final"), bool):
        return absent(final=said["final"] is True, partial=said.get("partial") is True)
    return NoAnswer("the owner's answer is neither present nor absent")


def object_in(response: Response) -> dict[str, object] | None:
    """Return the JSON object in a reply's body, or None for anything else."""
    kinds = [v for name, v in response.headers if name.lower() == "content-type"]
    if len(kinds) != 1 or kinds[0].partition(";")[0].strip().lower() != "application/json":
        return None
    try:
        return parse_object(response.body)
    except BadInput:
        return None


def _effect_id(said: Mapping[str, object]) -> str | None:
    found = said.get("effectId")
    return found if isinstance(found, str) and found else None


def _word(said: Mapping[str, object]) -> str | None:
    found = said.get("error")
    return found if isinstance(found, str) else None


def _lost(detail: str) -> Reply:
    return Reply(ReplyKind.CONNECTION_LOST, detail=detail)
