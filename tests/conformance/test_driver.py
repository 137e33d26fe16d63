"""Each way in which a runtime can misbehave is its own sentence, and nothing is left running."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from counterfoil import conformance
from counterfoil.conformance.process import CAPTURE_BYTES_MAX, processes_of
from counterfoil.conformance.runtime import (
    RuntimeNotStarted,
    read_outcome,
    resolve_command,
    run_scenario,
)

if TYPE_CHECKING:
    from counterfoil.conformance.report import Row
    from counterfoil.conformance.scenario import Scenario

CONFIRMED = next(one for one in conformance.shipped_scenarios() if one.id == "confirmed")
SEND = """
    import http.client, json, os, sys
    from urllib.parse import urlsplit
    scenario = json.load(open(sys.argv[1]))
    operation = scenario["operation"]
    def send():
        at = urlsplit(os.environ["AEV_EFFECT_OWNER"])
        body = {"idempotencyKey": operation["idempotencyKey"], "args": operation["args"]}
        connection = http.client.HTTPConnection(at.hostname, at.port, timeout=20)
        connection.request("POST", "/effects", json.dumps(body))
        connection.getresponse().read()
    def report(outcome):
        print(json.dumps({"outcome": outcome}), flush=True)
"""


def drive(code: str, scenario: Scenario = CONFIRMED, *, limit_s: float = 30) -> Row:
    program = textwrap.dedent(SEND) + textwrap.dedent(code)
    return run_scenario([sys.executable, "-c", program], scenario, seed=3, time_limit_s=limit_s)


def test_a_runtime_that_does_its_job_passes() -> None:
    row = drive("send(); report('committed')")
    assert row.passed
    assert row.verdict == "pass"
    assert row.got == "1 effect and committed"
    assert row.expected == "1 effect and committed"


def test_lines_before_the_last_do_not_matter() -> None:
    assert drive("send(); print('working'); report('unknown'); report('committed')").passed


@pytest.mark.parametrize(
    ("stdout", "exit_code", "complaint"),
    [
        (b'{"outcome": "committed"}\n', 3, "exited with 3; the contract asks for exit 0"),
        (b'{"outcome": "committed"}\n', -9, "was ended by signal 9; the contract asks for exit 0"),
        (b"\n \n", 0, 'printed nothing; its last line must be {"outcome": ...}'),
        (b"all done\n", 0, "printed a last line that is not JSON: 'all done'"),
        (b"[1]\n", 0, "printed a last line that is no object with an outcome: '[1]'"),
        (b"[" * 100_000, 0, "printed a last line that is not JSON: '" + "[" * 200 + "'"),
        (b"{}\n", 0, "printed a last line that is no object with an outcome: '{}'"),
        (
            b'{"outcome": "done"}\n',
            0,
            "reported 'done', which is none of committed, not_run, unknown",
        ),
        (b'{"outcome": 1}\n', 0, "reported 1, which is none of committed, not_run, unknown"),
        (b'\xff{"outcome": "committed"}\n', 0, "printed bytes that are not UTF-8"),
    ],
)
def test_each_misbehaviour_has_its_own_sentence(
    stdout: bytes, exit_code: int, complaint: str
) -> None:
    assert read_outcome(stdout, exit_code) == (complaint, None)


def test_a_failure_names_the_runtime_and_what_the_owner_holds() -> None:
    row = drive("send(); sys.exit(4)")
    assert row.findings == ("The runtime exited with 4; the contract asks for exit 0.",)
    assert row.got == "1 effect and no outcome"
    assert row.outputs[0].exit == "4"


def test_a_runtime_that_hangs_is_ended_at_the_limit() -> None:
    row = drive("report('committed'); import time; time.sleep(60)", limit_s=1)
    assert row.findings[0] == "The runtime did not finish within 1 s."
    assert row.outputs[0].exit == "ended at the time limit"
    assert row.duration_s < 10


def test_what_a_runtime_leaves_running_is_ended_and_reported() -> None:
    row = drive(
        """
        import subprocess
        for apart in (False, True):
            child = subprocess.Popen(["sleep", "60"], start_new_session=apart)
            print(child.pid)
        send(); report("committed")
        """
    )
    assert row.findings == ("The runtime left processes running (2); they were ended.",)
    children = [int(line) for line in row.outputs[0].stdout.split()[:2]]
    assert not [pid for pid in children if is_running(pid)]


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_output_without_end_is_capped_and_its_end_is_kept() -> None:
    row = drive("send(); print('x' * 3_000_000); report('committed')")
    assert row.passed
    assert len(row.outputs[0].stdout) < 3 * CAPTURE_BYTES_MAX


def test_the_runtime_sees_a_neutral_name_and_no_behaviour() -> None:
    row = drive(
        """
        print(json.dumps([sys.argv[1], scenario, os.environ["COUNTERFOIL_STATE_DIR"]]))
        """
    )
    path, shown, state = json.loads(row.outputs[0].stdout)
    assert set(shown) == {"id", "operation", "owner"}
    assert "confirmed" not in path + shown["id"] + shown["operation"]["id"]
    assert not Path(path).exists()
    assert not Path(state).exists()


def test_a_request_that_breaks_the_contract_is_a_finding() -> None:
    row = drive(
        """
        send()
        at = urlsplit(os.environ["AEV_EFFECT_OWNER"])
        connection = http.client.HTTPConnection(at.hostname, at.port, timeout=20)
        connection.request("POST", "/effects", "no json")
        connection.getresponse().read()
        report("committed")
        """
    )
    assert row.findings == (
        "The owner could not read request 1 of this kind: the body is not JSON.",
    )


@pytest.mark.parametrize("text", ["", "no-such-program-here", "./nope", "'"])
def test_a_command_that_is_not_there_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(RuntimeNotStarted) as caught:
        resolve_command(text)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_program_judges_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "adapter"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    with pytest.raises(RuntimeNotStarted, match="cannot be started: Exec format error"):
        run_scenario(resolve_command(str(broken)), CONFIRMED, seed=1)


# --- faults --------------------------------------------------------------------------------------


def of(set_name: str, scenario_id: str) -> Scenario:
    return next(one for one in conformance.shipped_scenarios(set_name) if one.id == scenario_id)


def test_a_worker_that_is_started_again_finds_its_folder() -> None:
    code = """
        seen = os.path.join(os.environ["COUNTERFOIL_STATE_DIR"], "seen")
        if os.path.exists(seen):
            report("committed")
            sys.exit()
        open(seen, "w").close()
        send()
    """
    row = drive(code, of("crash", "killed-after-the-commit"))
    assert row.passed
    assert [output.exit for output in row.outputs] == ["killed by the scenario", "0"]


def test_a_frozen_worker_goes_on_when_it_is_woken() -> None:
    code = """
        mark = os.path.join(os.environ["COUNTERFOIL_STATE_DIR"], "first")
        first = not os.path.exists(mark)
        open(mark, "w").close()
        if first:
            send()
        report("committed" if first else "unknown")
    """
    row = drive(code, of("zombie", "frozen-with-the-call-on-the-wire"))
    assert row.findings == ()
    assert [output.exit for output in row.outputs] == ["0", "0"]


def test_a_worker_that_believes_a_final_answer_beside_a_frozen_one_leaves_two_effects() -> None:
    code = """
        at = urlsplit(os.environ["AEV_EFFECT_OWNER"])
        mark = os.path.join(os.environ["COUNTERFOIL_STATE_DIR"], "first")
        if os.path.exists(mark):
            connection = http.client.HTTPConnection(at.hostname, at.port, timeout=20)
            connection.request("GET", "/effects/" + operation["idempotencyKey"])
            answer = json.loads(connection.getresponse().read())
            assert answer == {"result": "absent", "final": True}, answer
        open(mark, "w").close()
        send(); report("committed")
    """
    row = drive(code, of("zombie", "frozen-before-the-first-byte"))
    assert row.got == "2 effects and committed"
    assert [output.exit for output in row.outputs] == ["0", "0"]


def test_a_fault_that_did_not_happen_is_noted() -> None:
    row = drive("report('unknown')", of("crash", "killed-after-the-commit"))
    assert row.notes == (
        "The fault kill at call_landed did not happen: the runtime never came there.",
    )


def test_a_second_worker_that_hangs_does_not_keep_the_first_one_frozen() -> None:
    code = """
        mark = os.path.join(os.environ["COUNTERFOIL_STATE_DIR"], "first")
        if os.path.exists(mark):
            import time; time.sleep(60)
        open(mark, "w").close()
        send(); report("committed")
    """
    row = drive(code, of("zombie", "frozen-with-the-call-on-the-wire"), limit_s=2)
    assert row.findings[0] == "Worker 2 did not finish within 2 s."
    assert row.outputs[0].exit == "0"


def test_a_process_is_found_by_its_marker_outside_its_group() -> None:
    marker = f"test-{os.getpid()}-{time.monotonic_ns()}"
    no_such_group = 2**22 + 1
    with subprocess.Popen(
        ["sh", "-c", "echo up; read line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={"COUNTERFOIL_RUN": marker},
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        assert processes_of(no_such_group, marker) == [child.pid]
        child.kill()
    assert processes_of(no_such_group, marker) == []
