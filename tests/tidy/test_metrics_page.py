"""The page of metrics names, held to the code."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COUNTED = re.compile(r'(?<![\w.])count\(\s*"(\w+)"')


def test_every_metric_is_listed() -> None:
    """Whoever sees a count in production finds on the page what it means."""
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`(\w+)`", page))
    counted = {
        name
        for folder in ("antipode", "shims")
        for path in (ROOT / folder).rglob("*.py")
        for name in COUNTED.findall(path.read_text(encoding="utf-8"))
    }
    assert counted
    assert counted <= listed
