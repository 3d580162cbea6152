"""A process whose rules name a datastore, and whose first client of it a request makes."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Status
from antipode.shim import shims_of, unregister
from tests.integration._processes import environment

if TYPE_CHECKING:
    from antipode_testing import PostgreSQLTopology, RedisTopology

pytest.importorskip("psycopg")
pytest.importorskip("redis")
pytest.importorskip("sqlalchemy")
pytestmark = pytest.mark.slow


def with_table(topology: PostgreSQLTopology) -> None:
    """An empty table on both servers, and rules that name them."""
    import psycopg

    with psycopg.connect(topology.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS cold (id serial PRIMARY KEY)")
        connection.execute("DELETE FROM cold")
    topology.wait_replicated()
    near = f"{topology.url(topology.replica)}?reads_from=replica"
    antipode.configure(datastores={"shop": [topology.url(), near]})


def order(topology: PostgreSQLTopology) -> str:
    """Another service writes a row, and this is the lineage of its message."""
    import psycopg

    from antipode_shims import postgresql

    with antipode.scope(), psycopg.connect(topology.url()) as connection:
        postgresql.instrument_connection(connection, datastore="shop")
        connection.execute("INSERT INTO cold DEFAULT VALUES")
        connection.commit()
        text = antipode.serialize()
    unregister("shop")
    return text


def rows(topology: PostgreSQLTopology) -> int:
    import psycopg

    with psycopg.connect(topology.url(topology.replica)) as connection:
        row = connection.execute("SELECT count(*) FROM cold").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.store("postgresql")
@pytest.mark.parametrize("asked", [{}, {"only": ["shop"]}, {"at": "read"}], ids=str)
def test_the_first_connection_of_a_process_waits(
    antipode_postgresql: PostgreSQLTopology, covered: None, asked: dict[str, Any]
) -> None:
    """A barrier before it passes, and the connection is held to it: it shows nothing stale."""
    del covered
    topology = antipode_postgresql
    with_table(topology)
    topology.pause()
    try:
        text = order(topology)
        antipode.setup()
        with antipode.scope(text):
            status = {each.status for each in antipode.barrier(timeout=0.2, **asked).outcomes}
            assert status == {Status.DEFERRED if "at" in asked else Status.UNKNOWN_STORE}
            with pytest.raises(antipode.BarrierTimeout):
                rows(topology)
            topology.resume()
            topology.wait_replicated()
            assert rows(topology) == 1
    finally:
        topology.resume()


#: A process of Django's on a standby, which takes one request with the lineage that is given.
DJANGO = """
import sys
import antipode

antipode.setup()
host, port, placed, text = sys.argv[1:]

import django
from django.conf import settings
from django.db import connection

database = {"ENGINE": "django.db.backends.postgresql", "NAME": "app", "HOST": host, "PORT": port}
settings.configure(DATABASES={"default": {**database, "USER": "app", "PASSWORD": "app"}})
django.setup()
with antipode.scope(text):
    if placed == "placed":
        antipode.barrier(timeout=0.2, only="shop")
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM cold")
            print(cursor.fetchone())
    except antipode.BarrierTimeout:
        print("held")
"""


@pytest.mark.store("postgresql")
@pytest.mark.parametrize("how", ["placed", "automatic"])
def test_the_first_connection_of_django_waits(
    antipode_postgresql: PostgreSQLTopology, covered: None, how: str
) -> None:
    """The same where the framework makes it, and no setting of ours but the rules is there."""
    del covered
    pytest.importorskip("django")
    topology = antipode_postgresql
    with_table(topology)
    near = topology.replica
    settings = {
        "ANTIPODE_DATASTORES": f"shop=postgresql://{topology.primary}/app, "
        f"shop=postgresql://{near}/app?reads_from=replica",
        "ANTIPODE_BARRIERS": "auto" if how == "automatic" else "explicit",
        "ANTIPODE_AUTO_TIMEOUT": "0.2",
        "ANTIPODE_ON_STALE": "raise",
    }
    topology.pause()
    try:
        command = [sys.executable, "-c", DJANGO, near.host, str(near.port), how, order(topology)]
        assert said(command, settings) == "held"
    finally:
        topology.resume()
    topology.wait_replicated()
    assert said(command, settings) == "(1,)"


def said(command: list[str], settings: dict[str, str]) -> str:
    """What a program prints."""
    ran = subprocess.run(
        command,
        env=environment(settings),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


@pytest.mark.store("postgresql")
def test_a_connection_for_each_request(
    antipode_postgresql: PostgreSQLTopology, covered: None
) -> None:
    """Barriers of later requests wait, although the connection of the first is closed and gone."""
    del covered
    topology = antipode_postgresql
    with_table(topology)
    topology.pause()
    try:
        texts = [order(topology) for _ in range(3)]
        antipode.setup()
        with antipode.scope(texts[0]):
            antipode.barrier(timeout=0.2)
            with pytest.raises(antipode.BarrierTimeout):
                rows(topology)
        gc.collect()
        with antipode.scope(texts[1]), pytest.raises(antipode.BarrierTimeout):
            antipode.barrier(timeout=0.2)
    finally:
        topology.resume()
    with antipode.scope(texts[2]):
        assert antipode.barrier(timeout=20).ok
        assert rows(topology) == 3


@pytest.mark.ci
@pytest.mark.store("redis")
@pytest.mark.parametrize("how", ["placed", "automatic"])
def test_the_first_client_of_a_process_waits(
    antipode_redis: RedisTopology, covered: None, how: str
) -> None:
    """The same for a client of Redis; an automatic barrier needs nothing before it."""
    del covered
    import redis

    topology = antipode_redis
    urls = [f"redis://{topology.primary}/0", f"redis://{topology.replica}/0?reads_from=replica"]
    antipode.configure(datastores={"cache": urls}, auto_timeout=0.2, on_stale="raise")
    antipode.setup()
    topology.cut()
    try:
        with redis.Redis.from_url(urls[0]) as writer, antipode.scope():
            writer.set("cold", how)
            text = antipode.serialize()
        if how == "placed":
            unregister("cache")
            assert not shims_of("cache")
        else:
            antipode.configure(barriers="auto")
        with antipode.scope(text):
            if how == "placed":
                antipode.barrier(timeout=0.2)
            with redis.Redis.from_url(f"redis://{topology.replica}/0") as reader:
                with pytest.raises(antipode.BarrierTimeout):
                    reader.get("cold")
                topology.heal()
                topology.wait_replicated()
                assert reader.get("cold") == how.encode()
    finally:
        topology.heal()


@pytest.mark.store("postgresql")
@pytest.mark.parametrize(
    ("driver", "pings"), [("psycopg", False), ("psycopg", True), ("psycopg2", True)]
)
def test_what_sqlalchemy_asks_on_its_own_is_no_read(
    antipode_postgresql: PostgreSQLTopology, covered: None, driver: str, *, pings: bool
) -> None:
    """An engine asks for versions at first, and whether a pooled one lives: one stale read."""
    del covered
    pytest.importorskip(driver)
    import psycopg
    from sqlalchemy import create_engine, text

    topology = antipode_postgresql
    far = topology.url(topology.replica)
    datastores = {"shop": [topology.url(), f"{far}?reads_from=replica"]}
    antipode.configure(datastores=datastores, barriers="auto", auto_timeout=0.05)
    antipode.setup()
    engine = create_engine(far.replace("postgresql:", f"postgresql+{driver}:"), pool_pre_ping=pings)
    stale = antipode.telemetry.Metric("served_stale", "shop")
    before = antipode.telemetry.metrics().get(stale, 0)
    if pings:
        engine.connect().close()
    topology.pause()
    try:
        with psycopg.connect(topology.url(), autocommit=True) as writer, antipode.scope():
            writer.execute("CREATE TABLE IF NOT EXISTS cold (id serial PRIMARY KEY)")
            writer.execute("INSERT INTO cold DEFAULT VALUES")
            with engine.connect() as connection:
                connection.execute(text("SELECT count(*) FROM pg_class"))
    finally:
        topology.resume()
        engine.dispose()
    assert antipode.telemetry.metrics().get(stale, 0) == before + 1
    topology.wait_replicated()
