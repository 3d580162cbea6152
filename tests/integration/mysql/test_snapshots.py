"""Snapshots of transactions on real servers: what takes one, what keeps it, what waits first."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import antipode
from antipode import StaleSnapshot
from antipode_shims import mysql

from ._clients import (
    MULTI,
    NOTES,
    TELLS,
    TIMEOUT_S,
    TRACK,
    counted,
    drop_triggers,
    exchanges,
    run,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import LagProxy

    from ._clients import Sql

INSERT = "INSERT INTO notes VALUES (%s, 'a')"
pytestmark = pytest.mark.pairwise
IDS = "SELECT id FROM notes WHERE id < 100"
SHOWS = ("TABLES", "COLUMNS FROM notes", "INDEX FROM notes", "TABLE STATUS", "TRIGGERS", "EVENTS")


@pytest.fixture(autouse=True)
def untriggered(sql: Sql) -> None:
    """No trigger is there but the test's own."""
    drop_triggers(sql.topology)


@pytest.fixture
def writer(sql: Sql) -> Any:
    """Another client's connection."""
    return sql.connect()


@pytest.fixture(params=["pymysql", "MySQLdb"])
def session(sql: Sql, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The application's connection to the primary: of a client that shows flags, or none."""
    if request.param == "pymysql":
        yield sql.connect(client_flag=TRACK | MULTI)
        return
    place, client = sql.topology.primary, pytest.importorskip("MySQLdb")
    options = {"user": sql.topology.user, "password": sql.topology.password, "autocommit": True}
    options |= {"host": place.host, "port": place.port, "database": sql.topology.database}
    with contextlib.closing(client.connect(**options)) as one:
        mysql.instrument_connection(one, datastore=NOTES)
        yield one
        mysql.uninstrument_connection(one)


def written(writer: Any, number: int) -> None:
    """Another client writes a row; the session's next read has to see it."""
    run(writer, INSERT, number)
    antipode.barrier(timeout=TIMEOUT_S, at="read")


@pytest.mark.parametrize("show", SHOWS)
def test_what_shows_the_schema_takes_the_snapshot(
    sql: Sql, session: Any, writer: Any, show: str
) -> None:
    """MySQL's does; MariaDB's reads no table, and leaves the transaction free to wait."""
    with antipode.scope():
        run(session, "BEGIN")
        run(session, f"SHOW {show}")
        written(writer, 1)
        if sql.mariadb:
            assert run(session, IDS) == [(1,)]
            return
        with pytest.raises(StaleSnapshot):
            run(session, IDS)


@pytest.mark.parametrize("statement", ["SELECT NOW(), CURRENT_TIMESTAMP(6)", "DO 1", "SELECT @a"])
def test_what_reads_no_table_takes_no_snapshot(session: Any, writer: Any, statement: str) -> None:
    """The clock and the session's variables: the transaction waits afterwards, and reads."""
    with antipode.scope():
        run(session, "BEGIN")
        run(session, statement)
        written(writer, 1)
        assert run(session, IDS) == [(1,)]


#: What locks what it reads, or is refused before it reads anything.
LOCKING = (
    "SELECT id FROM mine FOR UPDATE",
    "SELECT id FROM mine LOCK IN SHARE MODE",
    "INSERT INTO others SELECT id FROM mine",
    "UPDATE others SET id = (SELECT MAX(id) FROM mine)",
    "SET @x = (SELECT MAX(id) FROM mine)",
    "SELECT no_such_column FROM mine",
)
#: What looks like it and reads without locks; the last on MySQL alone.
UNLOCKED = (
    "SELECT id FROM mine WHERE id IN (SELECT id FROM others) FOR UPDATE",
    "SELECT id FROM through FOR UPDATE",
    "INSERT INTO others SELECT COUNT(*) FROM information_schema.TABLES",
)


@pytest.fixture
def mine(sql: Sql) -> Iterator[None]:
    """Tables of the session's own, and a view of them where the test makes it."""
    for statement in (
        "DROP VIEW IF EXISTS app.through",
        "DROP TABLE IF EXISTS app.mine, app.others",
        "CREATE TABLE app.mine (id INT PRIMARY KEY)",
        "CREATE TABLE app.others (id INT PRIMARY KEY)",
        "INSERT INTO app.mine VALUES (1)",
    ):
        sql.topology.execute(statement)
    yield
    sql.topology.execute("DROP VIEW IF EXISTS app.through")


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize("statement", LOCKING)
def test_what_locks_takes_no_snapshot(session: Any, writer: Any, statement: str) -> None:
    """A read after it waits and sees the row: no alarm without need."""
    with antipode.scope():
        run(session, "BEGIN")
        refused = "no_such_column" in statement
        with (
            pytest.raises(Exception, match="no_such_column")
            if refused
            else contextlib.nullcontext()
        ):
            run(session, statement)
        written(writer, 1)
        assert run(session, IDS) == [(1,)]
        run(session, "ROLLBACK")


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize("statement", UNLOCKED)
def test_what_reads_without_a_lock_takes_the_snapshot(
    sql: Sql, session: Any, writer: Any, statement: str
) -> None:
    """A subquery, a view with one, and the server's own tables: no read is answered early."""
    if "through" in statement:
        inner = "SELECT id FROM app.others"
        sql.topology.execute(
            f"CREATE VIEW app.through AS SELECT id FROM app.mine WHERE id IN ({inner})"  # noqa: S608
        )
    with antipode.scope():
        run(session, "BEGIN")
        run(session, statement)
        written(writer, 1)
        with pytest.raises(StaleSnapshot):
            run(session, IDS)
        run(session, "ROLLBACK")


def test_snapshot_that_shows_what_the_barrier_waited_for(session: Any, writer: Any) -> None:
    """An automatic barrier adds to it, and never raises for what is missing of its own."""
    antipode.configure(barriers="auto")
    with antipode.scope():
        written(writer, 1)
        run(session, "BEGIN")
        assert run(session, IDS) == [(1,)]
        run(writer, INSERT, 2)
        before = counted("served_stale")
        assert run(session, IDS) == [(1,)]
        assert counted("served_stale") == before + 1
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        with pytest.raises(StaleSnapshot):
            run(session, IDS)


def test_unlocking_what_was_not_locked_keeps_the_snapshot(session: Any, writer: Any) -> None:
    """It commits nothing."""
    with antipode.scope():
        run(session, "BEGIN")
        run(session, IDS)
        run(session, "UNLOCK TABLES")
        written(writer, 1)
        with pytest.raises(StaleSnapshot):
            run(session, IDS)


def test_an_error_behind_several_statements_keeps_the_snapshot(session: Any, writer: Any) -> None:
    """A transaction that was begun and read in one command is open still."""
    with antipode.scope():
        run(session, "BEGIN; SELECT id FROM notes")
        with pytest.raises(Exception, match="no_such_column"):
            run(session, "SELECT no_such_column FROM notes")
        written(writer, 1)
        with pytest.raises(StaleSnapshot):
            run(session, IDS)


def test_isolation_is_handed_on_by_begin(session: Any, writer: Any) -> None:
    """BEGIN within a transaction begins one of the same isolation, whatever the session's is."""
    with antipode.scope():
        run(session, "BEGIN")
        run(session, IDS)
        run(session, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        run(session, "BEGIN")
        run(session, IDS)
        written(writer, 1)
        with contextlib.suppress(StaleSnapshot):
            assert run(session, IDS) == [(1,)]
        run(session, "COMMIT")
        assert run(session, IDS) == [(1,)]


@pytest.mark.parametrize("where", ["before", "within"])
def test_a_transaction_that_wrote_reads_what_was_waited_for(
    session: Any, writer: Any, where: str
) -> None:
    """A plain write takes no snapshot: before the transaction or within it, the barrier holds."""
    with antipode.scope():
        for number in (1, 2):
            if where == "before":
                written(writer, number)
            run(session, "BEGIN")
            run(session, INSERT, 100 + number)
            if where == "within":
                written(writer, number)
            assert len(run(session, IDS)) == number
            assert len(run(session, IDS)) == number
            run(session, "COMMIT")


def test_a_transaction_that_wrote_is_held_once(sql: Sql, to_primary: LagProxy, writer: Any) -> None:
    """Its first write asks for what its first read would have."""
    session = sql.connect(to_primary.address)
    with antipode.scope():
        written(writer, 1)
        with exchanges(to_primary) as made:
            session.begin()
            run(session, INSERT, 101)
            assert run(session, IDS) == [(1,)]
            session.commit()
    assert made == [5]


@pytest.fixture
def counting(sql: Sql) -> Iterator[None]:
    """A table whose trigger reads."""
    for statement in (
        "CREATE TABLE app.triggered (id INT)",
        """CREATE TRIGGER app.counts BEFORE INSERT ON app.triggered FOR EACH ROW
        SELECT COUNT(*) INTO @n FROM notes""",
    ):
        sql.topology.execute(statement)
    yield
    sql.close()  # What a transaction holds, no statement drops.
    sql.topology.execute("DROP TABLE app.triggered")


def test_a_trigger_takes_the_snapshot(session: Any, writer: Any, counting: None) -> None:
    """What it reads has waited; a barrier behind it raises, for nobody knows what it read."""
    with antipode.scope():
        written(writer, 1)
        run(session, "BEGIN")
        run(session, "INSERT INTO triggered VALUES (1)")
        assert run(session, IDS) == [(1,)]
        run(session, "COMMIT")
        run(session, "BEGIN")
        run(session, "INSERT INTO triggered VALUES (1)")
        written(writer, 2)
        with pytest.raises(StaleSnapshot):
            run(session, IDS)
        run(session, "ROLLBACK")


def test_a_server_says_what_a_transaction_did(
    sql: Sql, to_primary: LagProxy, writer: Any, counting: None
) -> None:
    """Where it is configured so, only what took a snapshot is refused, and nothing is asked."""
    session = sql.connect(to_primary.address, init_command=TELLS)
    with antipode.scope():
        run(session, "BEGIN")
        run(session, INSERT, 101)
        written(writer, 1)
        with exchanges(to_primary) as made:
            assert run(session, IDS) == [(1,)]
        assert made == [2]  # Where the server is, and the read.
        run(session, "COMMIT")
        run(session, "BEGIN")
        run(session, INSERT, 102)
        run(session, "INSERT INTO triggered VALUES (1)")
        written(writer, 2)
        with pytest.raises(StaleSnapshot):
            run(session, IDS)


def test_a_temporary_table_takes_no_snapshot(session: Any, writer: Any) -> None:
    """CREATE TEMPORARY TABLE, filled and read in a transaction behind a barrier."""
    with antipode.scope():
        run(session, "SET autocommit = 0")
        run(session, "CREATE TEMPORARY TABLE own (id INT)")
        written(writer, 1)
        run(session, "INSERT INTO own SELECT id FROM notes")
        assert run(session, "SELECT id FROM own") == [(1,)]
        assert run(session, IDS) == [(1,)]
        run(session, "DROP TEMPORARY TABLE own")


class _Base(DeclarativeBase):
    pass


class _Note(_Base):
    __tablename__ = "notes"
    id: Mapped[int] = mapped_column(primary_key=True)
    body: Mapped[str]


@pytest.mark.parametrize("driver", ["pymysql", "mysqldb"])
def test_an_orm_adds_flushes_and_gets(sql: Sql, writer: Any, driver: str) -> None:
    """The commonest transaction behind a barrier, again and again on one connection."""
    engine = create_engine(sql.topology.url(driver=f"mysql+{driver}"))
    mysql.instrument_engine(engine, datastore=NOTES)
    with antipode.scope():
        for number in (1, 2, 3):
            written(writer, number)
            with Session(engine) as session:
                session.add(_Note(id=100 + number, body="b"))
                session.flush()
                assert session.get(_Note, number) is not None
                session.commit()
    mysql.uninstrument_engine(engine)
    engine.dispose()


def test_what_the_snapshot_shows_may_be_waited_for_again(session: Any, writer: Any) -> None:
    """A second barrier for it leaves the transaction's reads alone."""
    with antipode.scope():
        written(writer, 1)
        run(session, "BEGIN")
        assert run(session, IDS) == [(1,)]
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        assert run(session, IDS) == [(1,)]
        run(session, "ROLLBACK")
