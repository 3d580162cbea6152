"""The page about promised writes does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import antipode

PAGE = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "promises.md"


def test_example_runs() -> None:
    """Who got the answer finds no refund without a barrier, waits for it, and then finds it."""
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(example, str(PAGE), "exec"), names)  # noqa: S102 - our own examples
    try:
        answer = names["cancel"]("order:1")
        assert names["refunds_abroad"].read("order:1")[0] is None
        with pytest.raises(antipode.BarrierTimeout):
            antipode.barrier(answer, timeout=0.1)
        (message,) = names["queue"]
        names["refund"](message)
        assert names["refund_of"]("order:1", answer) == b"80"
    finally:
        names["refunds"].close()
        names["refunds_abroad"].close()
        names["regions"].close()


def test_size_of_a_promise() -> None:
    """A promise takes as much of the text as the page says."""
    with antipode.scope():
        tokens = [antipode.promise(name, expires_in_s=600).token for name in ("cart", "refunds-eu")]
    assert [35 <= len(token) - len("1") <= 45 for token in tokens] == [True, True]
    assert "35 to 45 bytes" in PAGE.read_text(encoding="utf-8")
