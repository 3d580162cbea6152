"""Instrumented SQLAlchemy engines on real servers: pools, sessions, AsyncEngine, two replicas."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pymysql
import pytest
from sqlalchemy import Column, Integer, MetaData, Table, Text, create_engine, event, insert, select
from sqlalchemy import text as sql_text
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import NullPool

import antipode
from antipode import ConfigurationError, Lineage, StaleSnapshot
from antipode_shims import mysql

from ._clients import (
    IN_DOUBT,
    NOTES,
    TIMEOUT_S,
    TRACK,
    exchanges,
    minted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import LagProxy

    from ._clients import Sql

LAG_MS = 150
TIMES = 100
notes = Table("notes", MetaData(), Column("id", Integer, primary_key=True), Column("body", Text))


class Base(DeclarativeBase):
    """Of the mapped classes here."""


class Note(Base):
    """One note."""

    __tablename__ = "notes"
    id: Mapped[int] = mapped_column(primary_key=True)
    body: Mapped[str]


@pytest.fixture
def engine(sql: Sql) -> Iterator[Callable[..., Any]]:
    """Make instrumented engines, to the primary by default; they are disposed of in the end."""
    made: list[Any] = []

    def build(
        address: Any = None,
        *,
        driver: str = "mysql+pymysql",
        reads_from: str = "primary",
        one_server: bool | None = None,
        **options: Any,
    ) -> Any:
        url = sql.topology.url(address, driver=driver)
        one = create_engine(url, **options)
        made.append(one)
        return mysql.instrument_engine(
            one,
            datastore=NOTES,
            reads_from=reads_from,  # type: ignore[arg-type]
            one_server=one_server,
        )

    yield build
    for one in made:
        mysql.uninstrument_engine(one)
        one.dispose()


@contextmanager
def alternating(sql: Sql) -> Iterator[Callable[[], Any]]:
    """Open PyMySQL connections to the primary and the replica in turn, as a proxy would."""
    places = itertools.cycle([sql.topology.replica, sql.topology.primary])

    def open_one() -> Any:
        place = next(places)
        return pymysql.connect(
            host=place.host,
            port=place.port,
            user=sql.topology.user,
            password=sql.topology.password,
            database=sql.topology.database,
            client_flag=TRACK,
        )

    yield open_one


def write(engine: Any, number: int) -> None:
    """Insert one note and commit."""
    with engine.begin() as connection:
        connection.execute(insert(notes).values(id=number, body="a"))


def ids(engine: Any) -> list[int]:
    """All notes that a new transaction sees."""
    with engine.connect() as connection:
        return list(connection.execute(select(notes.c.id)).scalars())


def test_a_block_is_one_entry(sql: Sql, engine: Callable[..., Any]) -> None:
    """``begin()`` commits at its end, once; rolled back, nothing enters."""
    one = engine()
    with antipode.scope() as scope:
        with one.begin() as connection:
            connection.execute(insert(notes), [{"id": 1, "body": "a"}, {"id": 2, "body": "b"}])
            with connection.begin_nested():
                connection.execute(insert(notes).values(id=3, body="c"))
            assert not len(scope.lineage)
        assert minted(scope) == [sql.position()]
        antipode.stop()
        antipode.root()
        with pytest.raises(IntegrityError):
            write(one, 1)
        with one.connect() as connection:
            connection.execute(insert(notes).values(id=4, body="d"))
            connection.rollback()
        assert not len(antipode.current())


def test_an_orm_session_commits(sql: Sql, engine: Callable[..., Any]) -> None:
    """Flushes enter nothing, the commit does."""
    with antipode.scope() as scope, Session(engine()) as session:
        session.add(Note(id=1, body="a"))
        session.flush()
        assert not len(scope.lineage)
        session.commit()
        assert minted(scope) == [sql.position()]
        note = session.get(Note, 1)
        assert note is not None
        note.body = "b"
        session.commit()
        assert minted(scope) == [sql.position()]


@pytest.mark.parametrize("level", ["AUTOCOMMIT", "READ COMMITTED", "SERIALIZABLE"])
def test_isolation_levels(sql: Sql, engine: Callable[..., Any], level: str) -> None:
    """Whatever the level, an entry for what was committed, and none for the reset."""
    one = engine()
    with antipode.scope() as scope:
        with one.connect().execution_options(isolation_level=level) as connection:
            connection.execute(insert(notes).values(id=1, body="a"))
            connection.commit()
        assert minted(scope) == [sql.position()]
        assert ids(one) == [1]


def test_no_more_round_trips(sql: Sql, engine: Callable[..., Any], to_primary: LagProxy) -> None:
    """A pooled connection makes as many as a plain engine's."""
    plain = create_engine(sql.topology.url(to_primary.address))
    counts = []
    for one in (plain, engine(to_primary.address)):
        with antipode.scope():
            write(one, 1)
            with one.begin() as connection:
                connection.execute(notes.delete())
            with exchanges(to_primary) as made:
                write(one, 1)
                ids(one)
        counts.append(made)
        with one.begin() as connection:
            connection.execute(notes.delete())
    plain.dispose()
    assert counts[0] == counts[1]


def test_at_now_looks_at_the_engines_server(sql: Sql, engine: Callable[..., Any]) -> None:
    """A barrier needs no pooled connection; then the pool's reads ask nothing."""
    writer, reader = engine(), engine(sql.topology.replica, reads_from="replica")
    sql.topology.set_lag(LAG_MS)
    with antipode.scope():
        write(writer, 1)
        assert antipode.barrier(timeout=TIMEOUT_S)
        assert ids(reader) == [1]


def test_every_pooled_connection_is_judged(sql: Sql, engine: Callable[..., Any]) -> None:
    """Connections of two servers behind one creator: the one that reads is the one that waits."""
    writer = engine()
    sql.topology.set_lag(20)
    with alternating(sql) as creator:
        reader = engine(creator=creator, poolclass=NullPool, reads_from="replica", one_server=False)
        for number in range(TIMES):
            with antipode.scope():
                write(writer, number)
                antipode.barrier(timeout=TIMEOUT_S, at="read")
                assert number in ids(reader)


def test_a_stalled_replica_never_answers(sql: Sql, engine: Callable[..., Any]) -> None:
    """Of two pooled connections, the one to a stalled replica raises; the other reads."""
    writer = engine()
    with alternating(sql) as creator:
        reader = engine(creator=creator, reads_from="replica", one_server=False, pool_size=2)
        with reader.connect() as first, reader.connect() as second:
            sql.topology.pause_applier()
            with antipode.scope():
                write(writer, 1)
                antipode.barrier(timeout=0.5, at="read")
                with pytest.raises(antipode.BarrierTimeout):
                    first.execute(select(notes.c.id))
            with antipode.scope():
                write(writer, 2)
                antipode.barrier(timeout=TIMEOUT_S, at="read")
                assert second.execute(select(notes.c.id)).scalars().all() == [1, 2]


def test_a_checked_out_snapshot_is_judged(sql: Sql, engine: Callable[..., Any]) -> None:
    """A transaction that read before the barrier raises; the next checkout reads anew."""
    writer, reader = engine(), engine(sql.topology.replica, reads_from="replica")
    with antipode.scope():
        with reader.connect() as connection:
            assert connection.execute(select(notes.c.id)).all() == []
            write(writer, 1)
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            with pytest.raises(StaleSnapshot):
                connection.execute(select(notes.c.id))
        assert ids(reader) == [1]


def in_two_phases(connection: Any, scope: Any, number: int) -> None:
    """Insert one note so: prepared, it marks the lineage of *scope*; committed, it enters."""
    phases = connection.begin_twophase()
    connection.execute(insert(notes).values(id=number, body="a"))
    assert not scope.lineage.incomplete
    phases.prepare()
    assert scope.lineage.incomplete == {IN_DOUBT}
    phases.commit()


def ids_in_two_phases(connection: Any) -> list[int]:
    """All notes that a new transaction sees, which begins so."""
    phases = connection.begin_twophase()
    found = list(connection.execute(select(notes.c.id)).scalars())
    phases.rollback()
    return found


@pytest.mark.parametrize("driver", ["pymysql", "mysqldb"])
def test_two_phases(sql: Sql, engine: Callable[..., Any], driver: str) -> None:
    """A commit of what is prepared has a position, and reads of such transactions wait for it."""
    if driver == "mysqldb":
        pytest.importorskip("MySQLdb")
    writer = engine(driver=f"mysql+{driver}")
    reader = engine(sql.topology.replica, driver=f"mysql+{driver}", reads_from="replica")
    sql.topology.set_lag(LAG_MS)
    with antipode.scope() as scope:
        with writer.connect() as connection:
            in_two_phases(connection, scope, 1)
        assert sql.position() in [(w.key, w.version) for w in scope.lineage]
        antipode.barrier(Lineage(scope.lineage), timeout=TIMEOUT_S, at="read")
        with reader.connect() as connection:
            assert ids_in_two_phases(connection) == [1]


def test_two_phases_that_are_rolled_back(engine: Callable[..., Any]) -> None:
    """Before they are prepared they leave nothing, and afterwards the mark."""
    with antipode.scope() as scope, engine().connect() as connection:
        phases = connection.begin_twophase()
        connection.execute(insert(notes).values(id=1, body="a"))
        phases.rollback()
        assert not len(scope.lineage)
        phases = connection.begin_twophase()
        connection.execute(insert(notes).values(id=1, body="a"))
        with pytest.raises(IntegrityError):
            connection.execute(insert(notes).values(id=1, body="a"))
        phases.rollback()
        assert not minted(scope)
        assert not scope.lineage.incomplete
        phases = connection.begin_twophase()
        connection.execute(insert(notes).values(id=1, body="a"))
        phases.prepare()
        phases.rollback()
        assert scope.lineage.incomplete == {IN_DOUBT}


def test_pools_that_reconnect(sql: Sql, engine: Callable[..., Any], to_primary: LagProxy) -> None:
    """Pre-ping, invalidation, recycling and disposal open connections that mint as well."""
    one = engine(to_primary.address, pool_pre_ping=True)
    with antipode.scope() as scope:
        write(one, 1)
        to_primary.cut()
        to_primary.heal()
        write(one, 2)
        assert minted(scope) == [sql.position()]
        with one.connect() as connection:
            connection.invalidate()
        write(one, 3)
        assert minted(scope) == [sql.position()]
        one.dispose()
        write(one, 4)
        assert minted(scope) == [sql.position()]
        assert not scope.lineage.incomplete


def test_a_connection_lost_in_the_pool(engine: Callable[..., Any], to_primary: LagProxy) -> None:
    """Lost before a statement was sent: the client's error, and nothing in doubt."""
    one = engine(to_primary.address)
    with antipode.scope() as scope:
        write(one, 1)
        to_primary.cut()
        to_primary.heal()
        with pytest.raises(OperationalError):
            write(one, 2)
        write(one, 3)
        assert not scope.lineage.incomplete


def test_what_the_pool_had_opened_is_opened_again(sql: Sql) -> None:
    """Connections from before are not left out."""
    one = create_engine(sql.topology.url())
    with one.connect() as connection:
        connection.execute(sql_text("SELECT 1"))
    mysql.instrument_engine(one, datastore=NOTES)
    with antipode.scope() as scope:
        write(one, 1)
        assert minted(scope) == [sql.position()]
    mysql.uninstrument_engine(one)
    with antipode.scope() as scope:
        write(one, 2)
        assert not len(scope.lineage)
    one.dispose()


def test_what_was_unregistered_can_be_instrumented_again(
    sql: Sql, engine: Callable[..., Any]
) -> None:
    """Its shim was closed: the engine gets another one, and so do its pool's connections."""
    one = engine()
    with antipode.scope():
        write(one, 1)
    antipode.shim.unregister(NOTES)
    assert mysql.instrument_engine(one, datastore=NOTES) is one
    with antipode.scope() as scope:
        write(one, 2)
        assert len(scope.lineage) == 1
        assert antipode.barrier(timeout=TIMEOUT_S, only=NOTES).outcomes
    del sql


def test_instrumenting_is_idempotent(sql: Sql, engine: Callable[..., Any]) -> None:
    """Twice is once; other names, drivers and objects are refused."""
    one = engine()
    assert mysql.instrument_engine(one, datastore=NOTES) is one
    with pytest.raises(ConfigurationError, match="instrumented as"):
        mysql.instrument_engine(one, datastore="other")
    with pytest.raises(ConfigurationError, match="beside"):
        mysql.instrument_engine(one, datastore=NOTES, lineage="beside")
    with pytest.raises(ConfigurationError, match="not supported"):
        mysql.instrument_engine(create_engine("sqlite://"), datastore=NOTES)
    with pytest.raises(ConfigurationError, match="no SQLAlchemy"):
        mysql.instrument_engine(object(), datastore=NOTES)
    del sql


async def test_an_async_engine(sql: Sql) -> None:
    """AsyncEngine over aiomysql: positions, floors and snapshots alike."""
    url = sql.topology.url(driver="mysql+aiomysql")
    there = sql.topology.url(sql.topology.replica, driver="mysql+aiomysql")
    writer = mysql.instrument_engine(create_async_engine(url), datastore=NOTES)
    reader = mysql.instrument_engine(
        create_async_engine(there), datastore=NOTES, reads_from="replica"
    )
    sql.topology.set_lag(LAG_MS)
    try:
        with antipode.scope() as scope:
            async with reader.connect() as old:
                assert (await old.execute(select(notes.c.id))).all() == []
                async with writer.begin() as connection:
                    await connection.execute(insert(notes).values(id=1, body="a"))
                assert minted(scope) == [sql.position()]
                await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
                with pytest.raises(StaleSnapshot):
                    await old.execute(select(notes.c.id))
            async with reader.connect() as new:
                assert (await new.execute(select(notes.c.id))).all() == [(1,)]
            async with writer.connect() as connection:
                await connection.run_sync(in_two_phases, scope, 2)
            assert minted(scope)[-1:] == [sql.position()]
            await antipode.barrier_async(Lineage(scope.lineage), timeout=TIMEOUT_S, at="read")
            async with reader.connect() as new:
                assert await new.run_sync(ids_in_two_phases) == [1, 2]
    finally:
        for one in (writer, reader):
            mysql.uninstrument_engine(one)
            await one.dispose()


async def test_every_connection_of_an_async_pool_is_judged(sql: Sql) -> None:
    """The asyncio twin: a pool whose connections go to two servers in turn is never stale."""
    places = itertools.cycle([sql.topology.replica, sql.topology.primary])
    writer = create_async_engine(sql.topology.url(driver="mysql+aiomysql"))
    reader = create_async_engine(sql.topology.url(driver="mysql+aiomysql"), poolclass=NullPool)

    def elsewhere(_dialect: Any, _record: Any, _args: Any, options: dict[str, Any]) -> None:
        place = next(places)
        options["host"], options["port"] = place.host, place.port

    event.listen(reader.sync_engine, "do_connect", elsewhere)
    mysql.instrument_engine(writer, datastore=NOTES)
    mysql.instrument_engine(reader, datastore=NOTES, reads_from="replica", one_server=False)
    sql.topology.set_lag(20)
    try:
        for number in range(TIMES):
            with antipode.scope():
                async with writer.begin() as connection:
                    await connection.execute(insert(notes).values(id=number, body="a"))
                await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
                async with reader.connect() as connection:
                    seen = (await connection.execute(select(notes.c.id))).scalars().all()
                assert number in seen
    finally:
        for one in (writer, reader):
            mysql.uninstrument_engine(one)
            await one.dispose()


def test_mysqlclient_engines(sql: Sql, engine: Callable[..., Any]) -> None:
    """mysql+mysqldb: a position behind each commit, floors on the connection that reads."""
    pytest.importorskip("MySQLdb")
    writer = engine(driver="mysql+mysqldb")
    reader = engine(sql.topology.replica, driver="mysql+mysqldb", reads_from="replica")
    sql.topology.set_lag(LAG_MS)
    with antipode.scope() as scope:
        write(writer, 1)
        assert [(w.key, w.version) for w in scope.lineage] == [sql.position()]
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        assert ids(reader) == [1]
