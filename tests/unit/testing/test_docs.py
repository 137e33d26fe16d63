"""The blocks of the page on testing run as they stand, in order."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "testing-your-effect.md"


def test_every_block_of_the_page_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    page: dict[str, object] = {"__name__": "page"}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"block {number} of {PAGE.name}", "exec"), page)
