"""A shop that was not written for it, on a lagging replica: docs/guides/django.md, by itself."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from antipode_testing import MariaDBTopology

pytest.importorskip("oscar")
pytest.importorskip("MySQLdb")
pytest.importorskip("requests")

from tests.integration.django._customers import STEPS, make_tables, stale_pages


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_customers_see_what_they_did(antipode_mariadb: MariaDBTopology) -> None:
    """No page with the guide's settings, sessions in the database included; without, every page."""
    make_tables(antipode_mariadb)
    assert stale_pages(antipode_mariadb, "guided", range(2), sessions="db") == 0
    stale = stale_pages(antipode_mariadb, "plain", range(10, 12), held=True)
    assert stale == 2 * STEPS


def test_no_database_is_a_mistake() -> None:
    """Whoever installs the application and names no database is told so at start-up."""
    program = """
from django.conf import settings
settings.configure(INSTALLED_APPS=["antipode_shims.mysql.django.AntipodeConfig"])
import antipode, django
try:
    django.setup()
except antipode.ConfigurationError as error:
    print(error)
"""
    command = [sys.executable, "-c", program]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "ANTIPODE_DATABASES names no database" in told.stdout
