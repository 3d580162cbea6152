"""The first end of PostgreSQL, at its full length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.postgresql._django import pages, prepare

if TYPE_CHECKING:
    from antipode_testing import PostgreSQLTopology

pytest.importorskip("django")
pytest.importorskip("psycopg")
pytestmark = [pytest.mark.store("postgresql"), pytest.mark.timeout(400)]


def test_300_pages_after_a_form(antipode_postgresql: PostgreSQLTopology) -> None:
    """On a standby 300 ms behind none of 300 pages is stale, and all of 30 without our settings."""
    prepare(antipode_postgresql)
    antipode_postgresql.set_lag(300)
    assert pages(antipode_postgresql, 30, covered=False)["stale"] == 30
    found = pages(antipode_postgresql, 300, covered=True)
    assert found["stale"] == 0
    assert not {"served_stale", "incomplete", "unscoped_write"} & set(found["counts"])
