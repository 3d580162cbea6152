"""What ``antipode doctor`` says of a Django project on PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from antipode_testing import PostgreSQLTopology

pytest.importorskip("django")
pytestmark = pytest.mark.store("postgresql")
SETTINGS = """
import antipode

antipode.configure(barriers="auto")
SECRET_KEY = "k" * 50
INSTALLED_APPS = ["antipode_shims.postgresql.django.AntipodeConfig"]
MIDDLEWARE = ["antipode.integrations.django.AntipodeSessionMiddleware"]
DATABASES = {{
    alias: {{"ENGINE": "django.db.backends.postgresql", "NAME": "app", "USER": "app",
             "PASSWORD": "app", "HOST": "127.0.0.1", "PORT": port}}
    for alias, port in (("default", {primary}), ("replica", {replica}))
}}
ANTIPODE_DATABASES = {{
    "default": {{"datastore": "shop"}},
    "replica": {{"datastore": "shop", "reads_from": "replica"}},
}}
"""
GRANT = "GRANT EXECUTE ON FUNCTION pg_read_file(text, bigint, bigint, boolean)"


@pytest.mark.slow
def test_doctor_names_the_grant(antipode_postgresql: PostgreSQLTopology, tmp_path: Path) -> None:
    """A user who may not see timelines is a problem, with the GRANT; with it nothing is open."""
    ports = {
        "primary": antipode_postgresql.primary.port,
        "replica": antipode_postgresql.replica.port,
    }
    (tmp_path / "settings_pg.py").write_text(SETTINGS.format(**ports))
    antipode_postgresql.execute(f"REVOKE {GRANT[6:]} FROM app")
    antipode_postgresql.wait_replicated()
    try:
        found = said(tmp_path, status=1)
        assert GRANT in found
        assert "GRANT pg_read_all_stats" in found
    finally:
        antipode_postgresql.execute(f"{GRANT} TO app")
    antipode_postgresql.wait_replicated()
    assert "GRANT" not in said(tmp_path, status=0)


def said(folder: Path, *, status: int) -> str:
    """What the program prints of the project in *folder*."""
    found = subprocess.run(
        [sys.executable, "-m", "antipode", "doctor", "--app", "settings_pg"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.returncode == status, found.stdout + found.stderr
    return found.stdout
