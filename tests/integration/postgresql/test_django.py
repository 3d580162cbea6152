"""A Django project on a PostgreSQL standby, by settings alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.postgresql._django import pages, prepare

if TYPE_CHECKING:
    from antipode_testing import PostgreSQLTopology

pytest.importorskip("django")
pytest.importorskip("psycopg")
pytestmark = pytest.mark.store("postgresql")


@pytest.mark.slow
def test_the_page_after_a_form_shows_what_was_saved(
    antipode_postgresql: PostgreSQLTopology,
) -> None:
    """On a standby that is behind every page is stale without our settings, and with them none."""
    prepare(antipode_postgresql)
    antipode_postgresql.pause()
    assert pages(antipode_postgresql, 5, covered=False)["stale"] == 5
    antipode_postgresql.resume()
    antipode_postgresql.set_lag(300)
    found = pages(antipode_postgresql, 20, covered=True)
    assert found["stale"] == 0
    assert not {"served_stale", "incomplete", "unscoped_write"} & set(found["counts"])
