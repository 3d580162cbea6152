"""Three hundred pages of a shop on a lagging replica: docs/guides/django.md, by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from antipode_testing import MariaDBTopology

pytest.importorskip("oscar")
pytest.importorskip("MySQLdb")
pytest.importorskip("requests")

from tests.integration.django._customers import STEPS, make_tables, stale_pages

PAGES = 300


@pytest.mark.timeout(1800)
def test_no_page_is_stale_where_all_are_without(antipode_mariadb: MariaDBTopology) -> None:
    """Of 300 pages none with the guide's settings, wherever sessions are; all of 300 without."""
    make_tables(antipode_mariadb)
    customers = PAGES // STEPS
    for round_, sessions in enumerate(("signed_cookies", "db")):
        numbers = range(round_ * customers, (round_ + 1) * customers)
        assert stale_pages(antipode_mariadb, "guided", numbers, sessions=sessions) == 0
    numbers = range(2 * customers, 3 * customers)
    assert stale_pages(antipode_mariadb, "plain", numbers, held=True) == PAGES
