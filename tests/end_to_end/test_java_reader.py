"""A writer in Python and a reader in Java, a thousand times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.end_to_end._java_reader import violations

if TYPE_CHECKING:
    from pathlib import Path

    from antipode_testing import MySQLTopology

ROUNDS = 1_000


@pytest.mark.store("mysql")
@pytest.mark.timeout(1200)
def test_post_notification(antipode_mysql: MySQLTopology, tmp_path: Path) -> None:
    """Without the barrier every post is missing; with it none is."""
    assert violations(antipode_mysql, ROUNDS, tmp_path) == (ROUNDS, 0)
