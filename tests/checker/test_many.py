"""Nightly: 100,000 random histories against brute force, and a million operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.checker.test_speed import measured
from tests.checker.test_verdicts import agree

if TYPE_CHECKING:
    from pathlib import Path

PARTS, EACH = 20, 5000


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(PARTS))
def test_brute_force_agrees_on_100000_histories(part: int) -> None:
    """Each reading's verdict is the one of a search through all serializations."""
    start = 1_000_000 + part * EACH
    found = agree(range(start, start + EACH))
    for reading in ("memory", "prefix", "whole lineage"):
        assert found[f"{reading}: ok"] > EACH * 0.4
        assert found[f"{reading}: violation"] > EACH * 0.2


@pytest.mark.timeout(1800)
def test_1000000_operations(tmp_path: Path) -> None:
    """1,000,000 operations of 50 processes are decided in minutes, in less than 1.5 GiB."""
    # 50 s of a processor that does nothing else, and 1,178 MiB.
    seconds, mib = measured(tmp_path, 1_000_000)
    assert seconds < 300
    assert mib < 1536
