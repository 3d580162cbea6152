"""Transactions of two phases, by the calls that psycopg and psycopg2 have for them."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode.shim import Incomplete
from antipode_shims import postgresql
from antipode_testing import LagProxy
from tests.integration.postgresql._clients import DATASTORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.integration.postgresql._clients import Clients

pytestmark = pytest.mark.store("postgresql")
UPDATE, READ = "UPDATE posts SET body = %s WHERE id = 1", "SELECT body FROM posts WHERE id = 1"
XID = "1_two_phases"
IN_DOUBT = Incomplete(DATASTORE, "in_doubt")


@pytest.fixture(params=["psycopg", "psycopg2"])
def driver(request: pytest.FixtureRequest) -> Any:
    """Either client."""
    return pytest.importorskip(request.param)


@pytest.fixture
def connect(clients: Clients, driver: Any) -> Iterator[Callable[..., Any]]:
    """Open instrumented connections, to the primary by default."""
    with ExitStack() as opened:

        def one(address: Any = None, *, reads_from: Any = "primary", options: str = "") -> Any:
            url, given = clients.topology.url(address), {"options": options}
            if driver.__name__ == "psycopg2":
                given["connection_factory"] = postgresql.connection_factory(
                    datastore=DATASTORE, reads_from=reads_from
                )
            made = opened.enter_context(closing(driver.connect(url, **given)))
            if driver.__name__ == "psycopg":
                postgresql.instrument_connection(made, datastore=DATASTORE, reads_from=reads_from)
            opened.callback(postgresql.uninstrument_connection, made)
            return made

        yield one


def execute(connection: Any, statement: str, *values: Any) -> Any:
    """Run a statement; its rows, if it has some."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else None


def test_another_connection_commits(clients: Clients, connect: Callable[..., Any]) -> None:
    """What is prepared marks the lineage of its request; who commits it has its position."""
    writer, other = connect(), connect()
    reader = connect(clients.topology.replica, reads_from="replica")
    clients.topology.set_lag(50)
    with antipode.scope() as scope:
        writer.tpc_begin(XID)
        execute(writer, UPDATE, "a")
        assert not scope.lineage.incomplete
        writer.tpc_prepare()
        assert not len(scope.lineage)
        assert scope.lineage.incomplete == {IN_DOUBT}
    with antipode.scope() as scope:
        assert XID in map(str, other.tpc_recover())
        other.tpc_commit(XID)
        (write,) = scope.lineage
        assert not write.covering
        antipode.barrier(timeout=15, at="read")
        assert execute(reader, READ) == [("a",)]


def test_one_phase(clients: Clients, connect: Callable[..., Any]) -> None:
    """What was never prepared is committed as any other transaction is."""
    del clients
    writer = connect()
    with antipode.scope() as scope:
        writer.tpc_begin(XID)
        execute(writer, UPDATE, "a")
        writer.tpc_commit()
        (write,) = scope.lineage
        assert not write.covering
        assert not scope.lineage.incomplete


def test_what_is_never_committed(connect: Callable[..., Any], driver: Any) -> None:
    """It enters nothing, and leaves the mark where it could have been."""
    writer = connect()
    with antipode.scope() as scope:
        writer.tpc_begin(XID)
        execute(writer, UPDATE, "a")
        writer.tpc_rollback()
        writer.tpc_begin(XID)
        execute(writer, READ)
        writer.tpc_prepare()
        writer.tpc_rollback()
        assert not scope.lineage.incomplete
        writer.tpc_begin(XID)
        execute(writer, UPDATE, "a")
        writer.tpc_prepare()
        writer.tpc_rollback()
        assert scope.lineage.incomplete == {IN_DOUBT}
        assert not len(scope.lineage)
    with antipode.scope() as scope:
        writer.tpc_begin(XID)
        execute(writer, UPDATE, "a")
        with pytest.raises(driver.errors.DivisionByZero):
            execute(writer, "SELECT 1 / 0")
        writer.tpc_prepare()  # The server rolls it back instead, and says so in its tag alone.
        with pytest.raises(driver.errors.UndefinedObject):
            writer.tpc_commit()
        assert not scope.lineage.incomplete
        assert not len(scope.lineage)


def test_they_begin_after_the_wait(clients: Clients, connect: Callable[..., Any]) -> None:
    """The snapshot of REPEATABLE READ is taken once it shows what was waited for.

    Through a proxy: nobody else could find out whether it was taken already.
    """
    writer = connect()
    clients.topology.set_lag(50)
    with LagProxy(clients.topology.replica) as proxy, antipode.scope():
        reader = connect(
            proxy.address,
            reads_from="replica",
            options="-c default_transaction_isolation=repeatable\\ read",
        )
        execute(writer, UPDATE, "a")
        writer.commit()
        antipode.barrier(timeout=15, at="read")
        reader.tpc_begin(XID)
        assert execute(reader, READ) == [("a",)]
        reader.tpc_rollback()
