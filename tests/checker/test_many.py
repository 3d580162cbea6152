"""Nightly: 100,000 random histories against brute force."""

from __future__ import annotations

import pytest

from tests.checker.test_verdicts import agree

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
