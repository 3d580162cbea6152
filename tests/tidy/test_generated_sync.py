"""Synchronous files that are generated are what their asynchronous sources say."""

from __future__ import annotations

import pytest

from tools.generate_sync import PAIRS, Pair, generated


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.folder}/{pair.target}")
def test_a_generated_file_is_fresh(pair: Pair) -> None:
    """The committed file is what the generator makes now; `make generate` writes it anew."""
    assert pair.path.read_text(encoding="utf-8") == generated(pair)
