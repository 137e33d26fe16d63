"""What the README shows is what the commands print, and its example runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")


class Api:
    """A payment service that loses the reply to its first call."""

    def __init__(self) -> None:
        self.refunds: dict[str, dict[str, str]] = {}

    def refund(self, order_id: str, amount: str, idempotency_key: str) -> dict[str, str]:
        self.refunds[idempotency_key] = {"id": "re_1", "order": order_id, "amount": amount}
        raise ConnectionResetError

    def find(self, key: str) -> dict[str, str] | None:
        return self.refunds.get(key)


def test_the_example_survives_a_lost_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    api = Api()
    exec(compile(example, "README.md", "exec"), {"api": api})
    assert capsys.readouterr().out.startswith("committed found_at_owner")
    assert len(api.refunds) == 1


def test_every_page_that_is_named_is_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_table_is_what_the_demo_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from click.testing import CliRunner

    from counterfoil.cli.demo import command

    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(command, [], standalone_mode=False)
    assert result.return_value == 0, result.output
    printed = {
        tuple(cell.strip() for cell in line.strip("│ \n").split("│"))
        for line in result.output.splitlines()
        if line.startswith("│")
    }
    (table,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    shown = {tuple(re.split(r"\s{2,}", line)) for line in table.splitlines()[1:]}
    assert shown == printed
    assert len(list((tmp_path / "demo-trails").iterdir())) == 8
