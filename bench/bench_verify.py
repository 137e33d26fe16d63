"""How quick ``counterfoil verify`` is, as ratios that hold on any machine.

Two promises: judging one record costs at most so many starts of Python, and judging a file of
records at most so many times ``json.loads`` on its lines. Runs are interleaved, so that a busy
machine slows both sides; each side counts as its median.

    python bench/bench_verify.py
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

START_LIMIT = 3.0
STREAM_LIMIT = 5.0
START_RUNS = 21
STREAM_RUNS = 9
RECORDS = 8_000
KINDS = 16

# As installed: an installer compiles the package, so compiling is no part of a start.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

DIGEST = "sha256:" + "5e" * 32
CONTRACT = "https://probityai.github.io/agent-evidence-vectors/predicate/v1/uncertain-effect"


def moment(hour: int, seconds: float) -> str:
    minute, second = divmod(seconds, 60)
    return f"2026-05-04T{hour:02}:{int(minute):02}:{second:09.6f}Z"


def record(n: int) -> dict[str, object]:
    """Return a trail of about 2 KB: three dispatches by two workers, the middle reply lost."""
    hour, key = n % 24, f"refund-{n:08}"
    sent = [n * 0.000017 + 61.5, n * 0.000017 + 130.25, n * 0.000017 + 300.125]
    replies = ["no_effect", "timeout" if n % 8 else "connection_lost", "confirmed"]
    attempts = [
        {
            "attempt": place + 1,
            "idempotencyKey": key,
            "argsDigest": DIGEST,
            "dispatchedAt": moment(hour, at),
            "reply": reply,
            "worker": f"worker-{place // 2}",
            "fencingToken": 40 + place // 2,
            "endedAt": moment(hour, at + 2),
            "detail": "the owner closed the connection before it answered, after 2.00 s",
        }
        for place, (at, reply) in enumerate(zip(sent, replies, strict=True))
    ]
    leases = [
        {
            "worker": f"worker-{place}",
            "fencingToken": 40 + place,
            "acquiredAt": moment(hour, 60 + 200 * place),
            "expiresAt": moment(hour, 240 + 200 * place),
        }
        for place in range(2)
    ]
    answer = {"at": moment(hour, 280), "idempotencyKey": key, "result": "absent", "final": True}
    return {
        "contractId": CONTRACT,
        "operation": {
            "id": f"order-{n:08}/refund",
            "action": "payments.refund",
            "idempotencyKey": key,
            "argsDigest": DIGEST,
        },
        "effectOwner": {"id": "payments", "deduplicatesByKey": False, "keyRetentionSeconds": None},
        "attempts": attempts,
        "leases": leases,
        "reconciliations": [answer] if n % 16 else [],
        "ownerEffects": [{"id": f"re_{n:08}", "at": moment(hour, 301)}],
        "reservation": {"units": 12.50, "expiresAt": moment(hour, 3000), "charged": True},
        "reported": {"outcome": "committed"},
    }


def seconds(command: list[str]) -> float:
    began = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False, env=ENVIRONMENT)
    took = time.perf_counter() - began
    assert done.returncode in {0, 1}, f"{command} exited {done.returncode}"
    return took


def start_ratio(folder: Path) -> float:
    """Return whole processes: ``counterfoil verify record.json --json`` over ``python -c pass``."""
    path = folder / "record.json"
    path.write_text(json.dumps(record(1)), "utf-8")
    verify = [str(Path(sys.executable).with_name("counterfoil")), "verify", str(path), "--json"]
    nothing = [sys.executable, "-c", "pass"]
    seconds(verify)
    ours, theirs = [], []
    for _ in range(START_RUNS):
        ours.append(seconds(verify))
        theirs.append(seconds(nothing))
    return statistics.median(ours) / statistics.median(theirs)


def stream_ratio(folder: Path) -> float:
    """Return, in this process: judging and answering every line over ``json.loads`` on it."""
    from counterfoil.cli.verify import run

    path = folder / "records.jsonl"
    path.write_text("".join(json.dumps(record(n)) + "\n" for n in range(RECORDS)), "utf-8")
    answers = folder / "answers.jsonl"
    ours, theirs = [], []
    for _ in range(STREAM_RUNS):
        with answers.open("w", encoding="utf-8") as out, contextlib.redirect_stdout(out):
            began = time.perf_counter()
            code = run([str(path), "--json"])
            ours.append(time.perf_counter() - began)
        assert code == 1, code
        began = time.perf_counter()
        with path.open("rb") as lines:
            for line in lines:
                json.loads(line)
        theirs.append(time.perf_counter() - began)
    assert answers.read_text("utf-8").count('"decision"') == RECORDS
    return statistics.median(ours) / statistics.median(theirs)


def ratios() -> list[tuple[str, float, float]]:
    """Return each promise's name, the measured ratio and the limit."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [
            ("verify one record / python -c pass", start_ratio(folder), START_LIMIT),
            ("verify 2 KB lines / json.loads", stream_ratio(folder), STREAM_LIMIT),
        ]


if __name__ == "__main__":
    print(f"a record of {len(json.dumps(record(1)))} bytes")
    for name, ratio, limit in ratios():
        print(f"{name}: {ratio:.2f} (limit {limit:.0f}) {'ok' if ratio <= limit else 'TOO SLOW'}")
