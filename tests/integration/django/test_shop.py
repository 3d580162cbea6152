"""A shop that was not written for it, on a lagging replica: docs/guides/django.md, by itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from antipode_cli.report import load, report
from tests.integration._processes import environment

if TYPE_CHECKING:
    from pathlib import Path

    from antipode_testing import MariaDBTopology

pytest.importorskip("oscar")
pytest.importorskip("MySQLdb")
pytest.importorskip("requests")

from tests.integration.django._customers import STEPS, make_tables, stale_pages


@pytest.fixture(scope="module")
def stores(antipode_mariadb: MariaDBTopology) -> MariaDBTopology:
    """A primary and its replica with the shop's tables."""
    make_tables(antipode_mariadb)
    return antipode_mariadb


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_customers_see_what_they_did(stores: MariaDBTopology) -> None:
    """No page with the guide's settings, sessions in the database included; without, every page."""
    assert stale_pages(stores, "guided", range(2), sessions="db") == 0
    stale = stale_pages(stores, "plain", range(10, 12), held=True)
    assert stale == 2 * STEPS


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_dry_run_finds_nothing(
    stores: MariaDBTopology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the guide's settings no read is unguarded, and no lint is made of what the shop does."""
    monkeypatch.setenv("ANTIPODE_MODE", "dry-run")
    monkeypatch.setenv("ANTIPODE_DRY_RUN_DIR", str(tmp_path))
    stale_pages(stores, "guided", range(20, 21), held=True)
    found = report(load([tmp_path]))
    assert found.held
    assert (found.findings, found.lints) == ((), ())


SITE = """
import django
from tests.integration.django._shop import configure

configure({primary!r}, {replica!r}, "guided", "db")
django.setup()
from django.core.wsgi import get_wsgi_application
application = get_wsgi_application()
"""


@pytest.mark.slow
def test_doctor_has_nothing_to_correct(stores: MariaDBTopology, tmp_path: Path) -> None:
    """With the guide's settings all is in order, and what no log of MariaDB tells is said."""
    primary, replica = str(stores.primary), str(stores.replica)
    (tmp_path / "site_of_oscar.py").write_text(SITE.format(primary=primary, replica=replica))
    given = environment({})
    given["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{given['PYTHONPATH']}"
    ran = subprocess.run(
        [sys.executable, "-m", "antipode", "doctor", "--app", "site_of_oscar:application"],
        env=given,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (unknown,) = re.findall("^cannot tell .*", ran.stdout, re.MULTILINE)
    assert "whether a server was rebuilt" in unknown


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
