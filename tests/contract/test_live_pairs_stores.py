"""Level 5: services of two languages on real servers of every other store, nightly."""

from __future__ import annotations

import pytest

from tests.contract._live import SHIMS, LivePairs, pair, pairs, processes

__all__ = ["pair", "processes"]


@pytest.mark.parametrize("pair", pairs(*sorted({*SHIMS} - {"redis"})), indirect=True)
class TestPairs(LivePairs):
    """Each language with each, itself included."""
