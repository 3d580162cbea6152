"""Level 5: services of two languages on real servers of Redis."""

from __future__ import annotations

import pytest

from tests.contract._live import LivePairs, pair, pairs, processes

__all__ = ["pair", "processes"]

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("pair", pairs("redis"), indirect=True)
class TestPairs(LivePairs):
    """Each language with each, itself included."""
