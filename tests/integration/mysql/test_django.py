"""Instrumented Django databases on real servers, in a process that has nothing but them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ._clients import Sql

pytest.importorskip("django")
pytest.importorskip("MySQLdb")

#: Settings are made once in a process: hence one of its own.
PROGRAM = """
import importlib
import sys
import django
from django.conf import settings

def database(place):
    host, _, port = place.rpartition(":")
    return {"ENGINE": "django.db.backends.mysql", "NAME": "app", "USER": "app", "PASSWORD": "app",
            "HOST": host, "PORT": port}

settings.configure(DATABASES={"default": database(sys.argv[1]), "replica": database(sys.argv[2])})
django.setup()
from django.db import DatabaseError, connections, models, transaction

import antipode
from antipode import ConfigurationError, StaleSnapshot
from antipode_shims import mysql

class Note(models.Model):
    id = models.IntegerField(primary_key=True)
    body = models.TextField()

    class Meta:
        app_label = "notes"
        db_table = "notes"

for instrumentor in {
    "none": (),
    "mysqlclient": ("mysqlclient.MySQLClientInstrumentor",),
    "django": ("django.DjangoInstrumentor",),
}[sys.argv[3]]:
    module, _, name = instrumentor.partition(".")
    module = importlib.import_module(f"opentelemetry.instrumentation.{module}")
    getattr(module, name)().instrument(is_sql_commentor_enabled=True)

connections["default"].ensure_connection()
for _ in range(2):
    mysql.instrument_django(datastore="notes")
mysql.instrument_django("replica", datastore="notes", reads_from="replica")
try:
    mysql.instrument_django(datastore="other")
except ConfigurationError:
    pass
else:
    raise AssertionError

with antipode.scope() as scope:
    Note.objects.create(id=1, body="a")
    assert len(scope.lineage) == 1, scope.lineage
    antipode.barrier(timeout=15, at="read")
    assert Note.objects.using("replica").get(id=1).body == "a"
    before = scope.lineage
    try:
        with transaction.atomic():
            Note.objects.create(id=2, body="b")
            assert scope.lineage == before
            raise KeyError
    except KeyError:
        pass
    assert scope.lineage == before
    with transaction.atomic():
        Note.objects.create(id=2, body="b")
        with transaction.atomic():
            Note.objects.filter(id=1).update(body="c")
        assert scope.lineage == before
    assert scope.lineage != before
    antipode.barrier(timeout=15)
    assert Note.objects.using("replica").get(id=1).body == "c"
    with transaction.atomic("replica"):
        Note.objects.using("replica").count()
        Note.objects.create(id=3, body="d")
        antipode.barrier(timeout=15, at="read")
        # Django's transactions are READ COMMITTED, where each read has a snapshot of its own.
        assert Note.objects.using("replica").count() == 3
    with transaction.atomic("replica"), connections["replica"].cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    with transaction.atomic("replica"):
        Note.objects.using("replica").count()
        Note.objects.filter(id=3).update(body="f")
        antipode.barrier(timeout=15, at="read")
        try:
            Note.objects.using("replica").count()
        except StaleSnapshot:
            pass
        else:
            raise AssertionError
    assert Note.objects.using("replica").count() == 3
    connections["default"].close()
    before = scope.lineage
    Note.objects.create(id=4, body="e")
    assert scope.lineage != before
    assert not scope.lineage.incomplete

for alias in ("default", "replica"):
    mysql.uninstrument_django(alias)
    mysql.uninstrument_django(alias)
with antipode.scope() as scope:
    Note.objects.all().delete()
    assert not len(scope.lineage)
connections.close_all()
print("done")
"""


@pytest.mark.parametrize("traced", ["none", "mysqlclient", "django"])
def test_django(sql: Sql, traced: str) -> None:
    """Positions at each commit, floors on the reading alias, snapshots that raise; undoable.

    OpenTelemetry's own instrumentations of the client or of Django, switched on before, change
    nothing of that.
    """
    sql.topology.set_lag(100)
    places = [str(sql.topology.primary), str(sql.topology.replica)]
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, *places, traced],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.stdout == "done\n", found.stderr


ATOMIC = """
import sys
import django
from django.conf import settings

def database(place):
    host, _, port = place.rpartition(":")
    return {"ENGINE": "django.db.backends.mysql", "NAME": "app", "USER": "app", "PASSWORD": "app",
            "HOST": host, "PORT": port, "ATOMIC_REQUESTS": True}

class AlwaysReplica:
    def db_for_read(self, model, **hints):
        return "replica"

    def db_for_write(self, model, **hints):
        return "default"

    def allow_relation(self, obj1, obj2, **hints):
        return True

exec(sys.argv[3])
ROUTER = AlwaysReplica()

class Chosen:
    def __getattr__(self, name):
        return getattr(ROUTER, name)

seen = []

def view(request, number):
    Note.objects.create(id=number, body="a")
    seen.append(Note.objects.filter(id=number).exists())
    return HttpResponse()

settings.configure(
    DATABASES={"default": database(sys.argv[1]), "replica": database(sys.argv[2])},
    DATABASE_ROUTERS=[Chosen()],
    ROOT_URLCONF="__main__",
    SECRET_KEY="k" * 50,
    ALLOWED_HOSTS=["*"],
    INSTALLED_APPS=["antipode_shims.mysql.django.AntipodeConfig"],
    MIDDLEWARE=["antipode.integrations.django.AntipodeSessionMiddleware"],
    ANTIPODE_DATABASES={
        "default": {"datastore": "shop"},
        "replica": {"datastore": "shop", "reads_from": "replica"},
    },
)

import antipode
antipode.configure(barriers="auto", auto_timeout=15)
django.setup()
from django.db import connections, models
from django.http import HttpResponse
from django.test import Client
from django.urls import path

class Note(models.Model):
    id = models.IntegerField(primary_key=True)
    body = models.TextField()

    class Meta:
        app_label = "notes"
        db_table = "notes"

urlpatterns = [path("<int:number>", view)]
Client().get("/1")
counts = antipode.telemetry.metrics()
assert counts[("read_before_commit", "shop")] == 1, counts
ROUTER = ReplicaRouter()
Client().get("/2")
after = antipode.telemetry.metrics()
sent = after.pop(("reads_at_primary", "shop"), 0)
assert after == counts, after
assert sent == ("reads_from" in sys.argv[3])
assert seen == [False, True], seen
with antipode.scope():
    assert ReplicaRouter().db_for_read(Note) == "replica"
connections.close_all()
print("done")
"""


GUIDE = Path("docs/guides/django.md").read_text(encoding="utf-8")
ROUTERS = re.findall(r"(?m)^class ReplicaRouter:\n(?:(?:    .*)?\n)+", GUIDE)


@pytest.mark.slow
@pytest.mark.parametrize("router", ROUTERS, ids=["uncommitted", "reads_from"])
def test_django_in_the_transaction_of_a_request(sql: Sql, router: str) -> None:
    """With ATOMIC_REQUESTS a page reads what it wrote by the guide's routers; others are told."""
    places = [str(sql.topology.primary), str(sql.topology.replica)]
    found = subprocess.run(
        [sys.executable, "-c", ATOMIC, *places, f"import antipode\n{router}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.stdout == "done\n", found.stderr


WITH_PYMYSQL = """
import sys
import pymysql

pymysql.version_info = (2, 2, 8, "final", 0)  # Django asks for mysqlclient's.
pymysql.install_as_MySQLdb()

import django
from django.conf import settings

host, _, port = sys.argv[1].rpartition(":")
options = {"charset": "utf8mb4"}
settings.configure(DATABASES={"default": {
    "ENGINE": "django.db.backends.mysql", "NAME": "app", "USER": "app", "PASSWORD": "app",
    "HOST": host, "PORT": port, "OPTIONS": options}})
django.setup()
from django.db import connections, models

import antipode
from antipode_shims import mysql

class Note(models.Model):
    id = models.IntegerField(primary_key=True)
    body = models.TextField()

    class Meta:
        app_label = "notes"
        db_table = "notes"

mysql.instrument_django(datastore="notes")
with antipode.scope() as scope:
    note = Note.objects.create(id=1, body="a")
    (write,) = scope.lineage
    assert not write.covering
    assert Note.objects.filter(id=1).update(body="a") == 1
    note.save(force_update=True)
    assert connections["default"].connection.client_flag & 1 << 23
mysql.uninstrument_django()
connections.close_all()
assert Note.objects.filter(id=1).update(body="a") == 1
assert not connections["default"].connection.client_flag & 1 << 23
assert connections["default"].settings_dict["OPTIONS"] is options
connections.close_all()
print("done")
"""


@pytest.mark.slow
def test_django_on_pymysql_counts_the_rows_that_it_finds(sql: Sql) -> None:
    """Positions come with the replies, by a flag that joins Django's own and goes with the rest."""
    found = subprocess.run(
        [sys.executable, "-c", WITH_PYMYSQL, str(sql.topology.primary)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.stdout == "done\n", found.stderr


ERRORS = """
import sys
import pymysql

pymysql.version_info = (2, 2, 8, "final", 0)  # Django asks for mysqlclient's.
pymysql.install_as_MySQLdb()

import antipode
from antipode_shims import mysql

def database(place):
    host, _, port = place.rpartition(":")
    return {"ENGINE": "django.db.backends.mysql", "NAME": "app", "USER": "app", "PASSWORD": "app",
            "HOST": host, "PORT": port}

if sys.argv[3] == "antipode":
    where = database(sys.argv[1])
    early = pymysql.connect(host=where["HOST"], port=int(where["PORT"]), user="app", password="app")
    mysql.instrument_connection(early, datastore="early")
    mysql.uninstrument_connection(early)
    early.close()

import django
from django.conf import settings

class Router:
    def db_for_read(self, model, **hints):
        return "replica"

    def db_for_write(self, model, **hints):
        return "default"

settings.configure(
    DATABASES={"default": database(sys.argv[1]), "replica": database(sys.argv[2])},
    DATABASE_ROUTERS=[Router()],
    INSTALLED_APPS=["antipode_shims.mysql.django.AntipodeConfig"],
    ANTIPODE_DATABASES={
        "default": {"datastore": "notes"},
        "replica": {"datastore": "notes", "reads_from": "replica"},
    },
)
django.setup()
assert sys.modules["MySQLdb.err"] is not sys.modules["pymysql.err"]
from django.db import IntegrityError, models

class Note(models.Model):
    id = models.IntegerField(primary_key=True)
    body = models.TextField()

    class Meta:
        app_label = "notes"
        db_table = "notes"

with antipode.scope() as scope:
    Note.objects.create(id=1, body="a")
    antipode.barrier(timeout=15, at="read")
    # The replica has not shown it yet, and its user may not ask what it follows.
    assert Note.objects.get(id=1).body == "a"
    try:
        Note.objects.create(id=1, body="b")
    except IntegrityError:
        pass
    else:
        raise AssertionError
    assert not scope.lineage.incomplete, scope.lineage
    antipode.barrier(timeout=15)

print("restart", flush=True)
sys.stdin.readline()
with antipode.scope() as scope:
    Note.objects.create(id=2, body="b")
    antipode.barrier(timeout=30)
print("done", flush=True)
"""


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.parametrize("first", ["django", "antipode"])
def test_django_on_pymysql_meets_errors(sql: Sql, first: str) -> None:
    """A replica's refusal, a duplicate key and a restart are what they are with PyMySQL's own name.

    Whichever of Django, which loads PyMySQL's errors a second time, and the shim comes first.
    """
    sql.topology.set_lag(300)
    places = [str(sql.topology.primary), str(sql.topology.replica)]
    with subprocess.Popen(
        [sys.executable, "-c", ERRORS, *places, first],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        if running.stdout.readline() == "restart\n":
            sql.topology.restart_replica()
        found, errors = running.communicate("\n", timeout=60)
    assert found == "done\n", errors
