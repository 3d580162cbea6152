"""Migrations read and write for no request: they are no lost writes, and need no scope."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode.shim import unscoped
from antipode.telemetry import Metric

if TYPE_CHECKING:
    from antipode_testing import MariaDBTopology

PROGRAM = """
import sys
from django.conf import settings
host, port = sys.argv[1:]
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.mysql", "HOST": host, "PORT": port,
                           "NAME": "app", "USER": "app", "PASSWORD": "app"}},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"],
)
import antipode, django
from antipode_shims import mysql
antipode.configure(on_unscoped="raise")
django.setup()
mysql.instrument_django("default", datastore="shop")
from django.core.management import call_command
call_command("migrate", verbosity=0, interactive=False)
counted = {name.name for name, times in antipode.telemetry.metrics().items() if times}
assert not counted & {"unscoped_write", "unscoped_read"}, counted
from django.contrib.auth.models import Group
try:
    Group.objects.create(name="editors")
except antipode.ConfigurationError as error:
    print(error)
with antipode.scope():
    call_command("migrate", "auth", "zero", verbosity=0, interactive=False)
    call_command("migrate", "contenttypes", "zero", verbosity=0, interactive=False)
"""


@pytest.mark.slow
def test_migrations_of_django(antipode_mariadb: MariaDBTopology) -> None:
    """`migrate` runs under `on_unscoped="raise"`, and counts nothing; other code raises as ever."""
    pytest.importorskip("MySQLdb")
    place = antipode_mariadb.primary
    command = [sys.executable, "-c", PROGRAM, place.host, str(place.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "outside a scope: open one with antipode.scope()" in done.stdout


@pytest.mark.parametrize("module", ["alembic.runtime.migration", "django.db.migrations.executor"])
def test_migrations_by_their_modules(module: str) -> None:
    """Whatever a migration of these calls is left out, and what calls by another module is not."""
    for name, more in ((module, 0), ("shop.jobs", 1)):
        metric = Metric("unscoped_write", "shop")
        before = antipode.telemetry.metrics().get(metric, 0)
        names = {"__name__": name, "unscoped": unscoped}
        exec("def run():\n    unscoped('write', 'shop')\nrun()", names)  # noqa: S102 - a module
        assert antipode.telemetry.metrics().get(metric, 0) == before + more
