"""Promises over every client of MySQL and MariaDB: asyncio's, mysqlclient, Django, Table 2."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from typing import Any

import aiomysql
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.pool import NullPool

import antipode
from antipode import ConfigurationError, Lineage, PromiseAbandoned, StaleSnapshot, Status
from antipode_shims import mysql
from antipode_shims.mysql.__main__ import main

from ._promises import (
    STORE,
    Branches,
    floor,
    is_open,
    outcome,
    promised,
)
from ._servers import prepare

LAG_MS = 200
COUNT = "SELECT COUNT(*) FROM refunds WHERE id = '{}'"
INSERT = "INSERT INTO refunds VALUES ('{}')"


async def _aiomysql(branches: Branches, where: Any = None, **options: Any) -> Any:
    topology = branches.topology
    address = where or topology.primary
    return await aiomysql.connect(
        host=address.host,
        port=address.port,
        user=topology.user,
        password=topology.password,
        db=topology.database,
        **options,
    )


async def test_aiomysql_fulfils(branches: Branches) -> None:
    """By a connection and by a cursor, in the transaction alone; autocommit is refused."""
    connection = await _aiomysql(branches)
    for handle in (connection, await connection.cursor(aiomysql.DictCursor)):
        promise = promised()
        await mysql.fulfil_async(handle, promise)
        assert is_open(promise)
        await connection.rollback()
        assert is_open(promise)
        for _ in range(2):
            await mysql.fulfil_async(handle, promise.token)
        await connection.commit()
        assert outcome(promise).status is Status.VISIBLE
    given_up = promised()
    assert await antipode.abandon_async(given_up)
    with pytest.raises(PromiseAbandoned):
        await mysql.fulfil_async(connection, given_up)
    await connection.rollback()
    await connection.autocommit(True)  # noqa: FBT003 - its own
    with pytest.raises(ConfigurationError, match="no transaction is open"):
        await mysql.fulfil_async(connection, promised())
    with pytest.raises(ConfigurationError, match="fulfil_async"):
        mysql.fulfil(connection, promised())
    connection.close()


async def test_aiomysql_reads_wait(branches: Branches) -> None:
    """Its reads wait on their own connection, too, in sessions with and without autocommit."""
    branches.topology.set_lag(LAG_MS)
    for autocommit in (True, False):
        where = branches.topology.replica
        connection = await _aiomysql(branches, where, autocommit=autocommit)
        mysql.instrument_connection(connection, datastore=STORE, reads_from="replica")
        for _ in range(3):
            promise = promised()
            branches.refund(promise)
            with antipode.scope(Lineage(promises=[promise])):
                await antipode.barrier_async(timeout=10, at="read")
                async with connection.cursor() as cursor:
                    await cursor.execute(COUNT.format(promise.id))
                    assert await cursor.fetchone() == (1,)
                    await connection.commit()
        mysql.uninstrument_connection(connection)
        connection.close()


async def test_sqlalchemy_over_asyncio(branches: Branches) -> None:
    """AsyncConnection and AsyncSession, with the data and rolled back with it."""
    url = branches.topology.url(driver="mysql+aiomysql")
    engine = create_async_engine(url, poolclass=NullPool)
    mysql.instrument_engine(engine, datastore=STORE)
    first, second = promised(), promised()
    async with engine.begin() as connection:
        await connection.execute(text(INSERT.format(first.id)))
        await mysql.fulfil_async(connection, first)
    async with AsyncSession(engine) as session:
        await mysql.fulfil_async(session, second)
        await session.rollback()
        assert is_open(second)
        await session.execute(text(INSERT.format(second.id)))
        await mysql.fulfil_async(session, second)
        await session.commit()
        with pytest.raises(ConfigurationError, match="fulfil_async"):
            mysql.fulfil(session, second)
    with antipode.scope(Lineage(promises=[first, second])):
        assert (await antipode.barrier_async(timeout=10)).ok
    assert {first.id, second.id} <= branches.refunds()
    mysql.uninstrument_engine(engine)
    await engine.dispose()


def test_mysqlclient_fulfils_and_waits(branches: Branches) -> None:
    """It shows no flags of the server: autocommit is asked about, and its reads wait as well."""
    mysqldb: Any = pytest.importorskip("MySQLdb")
    topology = branches.topology

    def connect(address: Any) -> Any:
        return mysqldb.connect(
            host=address.host,
            port=address.port,
            user=topology.user,
            password=topology.password,
            database=topology.database,
        )

    with (
        closing(connect(topology.primary)) as connection,
        closing(connect(topology.replica)) as reader,
    ):
        promise, late = promised(), promised()
        mysql.fulfil(connection, promise)
        connection.rollback()
        assert is_open(promise)
        mysql.fulfil(connection.cursor(), promise)
        connection.commit()
        mysql.instrument_connection(reader, datastore=STORE, reads_from="replica")
        with floor(promise):
            reader.query("SELECT 1 FROM refunds")
            reader.store_result()
        reader.query("SELECT 1 FROM refunds")
        reader.store_result()
        mysql.fulfil(connection, late)
        connection.commit()
        with floor(late), pytest.raises(StaleSnapshot):
            reader.query("SELECT 1 FROM refunds")
        mysql.uninstrument_connection(reader)
        connection.autocommit(True)  # noqa: FBT003 - its own
        with pytest.raises(ConfigurationError, match="no transaction is open"):
            mysql.fulfil(connection, promised())


def test_sqlalchemy_over_mysqlclient(branches: Branches) -> None:
    """An engine of mysqlclient fulfils, and its sessions wait for the record."""
    pytest.importorskip("MySQLdb")
    topology = branches.topology
    url = topology.url(driver="mysql+mysqldb")
    engine = create_engine(url, poolclass=NullPool)
    mysql.instrument_engine(engine, datastore=STORE)
    promise = promised()
    branches.refund(promise, engine)
    with floor(promise):
        assert promise.id in branches.refunds(engine)
    mysql.uninstrument_engine(engine)


DJANGO = """
import sys
import django
from django.conf import settings

def database(place):
    host, _, port = place.rpartition(":")
    return {"ENGINE": "django.db.backends.mysql", "NAME": "app", "USER": "app", "PASSWORD": "app",
            "HOST": host, "PORT": port}

settings.configure(DATABASES={"default": database(sys.argv[1]), "replica": database(sys.argv[2])})
django.setup()
from django.db import connection, connections, transaction

import antipode
from antipode import ConfigurationError, Lineage, PromiseAbandoned
from antipode_shims import mysql

mysql.instrument_django(datastore="posts")
mysql.instrument_django("replica", datastore="posts", reads_from="replica")

def refund(promise):
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO refunds VALUES (%s)", [promise.id])
        mysql.fulfil(connection, promise)

with antipode.scope() as scope:
    promise = antipode.promise("posts", expires_in_s=60)
    lost = antipode.promise("posts", expires_in_s=60)
try:
    mysql.fulfil(connection, promise)
except ConfigurationError:
    pass
else:
    raise AssertionError
refund(promise)
with antipode.scope(Lineage(promises=[promise])):
    antipode.barrier(timeout=15, at="read")
    with connections["replica"].cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM refunds WHERE id = %s", [promise.id])
        assert cursor.fetchone() == (1,)
assert antipode.abandon(lost)
try:
    refund(lost)
except PromiseAbandoned:
    pass
else:
    raise AssertionError
with connection.cursor() as cursor:
    cursor.execute("SELECT COUNT(*) FROM refunds WHERE id = %s", [lost.id])
    assert cursor.fetchone() == (0,)
mysql.uninstrument_django("replica")
mysql.uninstrument_django()
"""


def test_django_fulfils(branches: Branches) -> None:
    """Within ``atomic``, refused outside of it, rolled back with its block."""
    pytest.importorskip("django")
    pytest.importorskip("MySQLdb")
    topology = branches.topology
    done = subprocess.run(
        [sys.executable, "-c", DJANGO, str(topology.primary), str(topology.replica)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_table2_writes_fulfil(branches: Branches) -> None:
    """Value and record in one transaction: write, append and delete; abandoned, nothing is."""
    topology = branches.topology
    prepare(topology)
    topology.set_lag(LAG_MS)
    writer = mysql.shim(STORE, topology.url())
    reader = mysql.shim(STORE, topology.url(topology.replica), reads_from="replica")
    with closing(writer), closing(reader):
        first, second, third, lost = (promised() for _ in range(4))
        key = first.id
        with antipode.scope() as branch:
            writer.write(key, b"80", fulfils=first)
            assert len(branch.lineage) == 1
        reader.wait(Lineage(promises=[first]), timeout=10)
        assert reader.read(key)[0] == b"80"
        with floor(second):
            with antipode.scope():
                writer.append(key, b"0", fulfils=second.token)
            assert reader.read(key)[0] == b"800"
        assert antipode.abandon(lost)
        with antipode.scope(), pytest.raises(PromiseAbandoned):
            writer.write(key, b"never", fulfils=lost)
        with antipode.scope():
            assert writer.read(key)[0] == b"800"
            writer.delete(key, fulfils=third)
        reader.wait(Lineage(promises=[third]), timeout=10)
        assert reader.read(key)[0] is None


def test_table2_on_autocommit_is_refused(branches: Branches) -> None:
    """Where each statement commits alone, neither the value nor the record is written."""
    topology = branches.topology
    prepare(topology)
    engine = create_engine(topology.url(), isolation_level="AUTOCOMMIT")
    with closing(mysql.shim(STORE, engine)) as writer:
        promise = promised()
        with antipode.scope(), pytest.raises(ConfigurationError, match="no transaction"):
            writer.write(promise.id, b"80", fulfils=promise)
        with antipode.scope():
            assert writer.read(promise.id)[0] is None
    engine.dispose()


async def test_async_table2_writes_fulfil(branches: Branches) -> None:
    """The asyncio twin."""
    topology = branches.topology
    prepare(topology)
    writer = mysql.shim_async(STORE, topology.url(driver="mysql+aiomysql"))
    url = topology.url(topology.replica, driver="mysql+aiomysql")
    reader = mysql.shim_async(STORE, url, reads_from="replica")
    promise, lost = promised(), promised()
    with antipode.scope():
        await writer.write(promise.id, b"80", fulfils=promise)
    with antipode.scope(Lineage(promises=[promise])):
        await antipode.barrier_async(timeout=10, at="read")
        assert (await reader.read(promise.id))[0] == b"80"
    assert await antipode.abandon_async(lost)
    with antipode.scope(), pytest.raises(PromiseAbandoned):
        await writer.append(promise.id, b"0", fulfils=lost)
    with antipode.scope():
        assert (await writer.read(promise.id))[0] == b"80"
        await writer.delete(promise.id, fulfils=promise.token)
    await writer.aclose()
    await reader.aclose()


def test_a_table_in_another_schema(branches: Branches) -> None:
    """Clients of several databases name one table; where they disagree, fulfilling says so."""
    topology = branches.topology
    topology.execute("CREATE DATABASE IF NOT EXISTS shared")
    topology.execute("GRANT ALL ON shared.* TO app@'%'")
    for statement in mysql.promises_ddl("shared.kept"):
        topology.execute(statement)
    topology.wait_replicated()
    promise = promised()
    other = branches.engine(datastore=STORE, promise_table="shared.kept")
    with other.begin() as one, pytest.raises(ConfigurationError, match="same promise_table"):
        mysql.fulfil(one, promise)
    mysql.uninstrument_engine(branches.primary)
    mysql.uninstrument_engine(branches.replica)
    reader = branches.engine(
        topology.replica, datastore=STORE, reads_from="replica", promise_table="shared.kept"
    )
    with branches.engine().begin() as plain:  # Not instrumented: it knows from the others.
        mysql.fulfil(plain, promise)
    assert outcome(promise).status is Status.VISIBLE
    with floor(promise):
        branches.refunds(reader)
    with pytest.raises(ConfigurationError, match="promise_table"):
        mysql.shim(STORE, topology.url(), promise_table="a.b.c")


def test_a_client_without_a_database_cannot_look(branches: Branches) -> None:
    """Where no schema is known the promise is undecidable, not passed; with a name it is seen."""
    topology = branches.topology
    promise = promised()
    branches.refund(promise)
    mysql.uninstrument_engine(branches.primary)
    mysql.uninstrument_engine(branches.replica)
    url = topology.url().rpartition("/")[0]
    for name, expected in (
        ("antipode_promises", Status.UNDECIDABLE),
        ("app.antipode_promises", Status.VISIBLE),
    ):
        engine = create_engine(url, poolclass=NullPool)
        mysql.instrument_engine(engine, datastore=STORE, promise_table=name)
        assert outcome(promise, timeout=5).status is expected
        mysql.uninstrument_engine(engine)


def test_the_program_prints_and_checks(
    branches: Branches, capsys: pytest.CaptureFixture[str]
) -> None:
    """Printed without a server, checked at one; taken back it is missing. It changes nothing."""
    admin, url = branches.topology.execute, branches.topology.url()
    assert main(["undo", "--promises"]) == 0
    admin("USE app")
    admin(capsys.readouterr().out.strip().rstrip(";"))
    assert main(["check", "--promises", "--url", url]) == 1
    assert "antipode_promises: lacks" in capsys.readouterr().out
    assert main(["migration", "--promises"]) == 0
    printed = capsys.readouterr().out.strip()
    assert main(["check", "--promises", "--url", url]) == 1
    capsys.readouterr()
    admin(printed.rstrip(";"))
    admin(printed.rstrip(";"))  # Twice does no harm.
    assert main(["check", "--promises", "--url", url]) == 0
    assert capsys.readouterr().out == "antipode_promises: ready\n"
    assert main(["migration", "--promises", "--url", url, "refunds"]) == 0
    assert "ALTER TABLE `refunds`" in capsys.readouterr().out
    assert main(["check", "--url", url]) == 2
    assert "--promises" in capsys.readouterr().err
    branches.topology.wait_replicated()
