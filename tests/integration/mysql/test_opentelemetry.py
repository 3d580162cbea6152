"""Instrumented connections beside OpenTelemetry's own instrumentations of the clients."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy
from opentelemetry.instrumentation.mysqlclient import MySQLClientInstrumentor
from opentelemetry.instrumentation.pymysql import PyMySQLInstrumentor
from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor

import antipode
from antipode_shims import mysql
from tests.integration._tracing import ORDERS, PROVIDER, Tracing

from ._clients import NOTES, TIMEOUT_S, run

if TYPE_CHECKING:
    from ._clients import Sql

pymysql: Any = pytest.importorskip("pymysql")
MySQLdb: Any = pytest.importorskip("MySQLdb")

CLIENTS = {
    "pymysql": (PyMySQLInstrumentor, pymysql),
    "mysqlclient": (MySQLClientInstrumentor, MySQLdb),
}
INSERT = "INSERT INTO notes VALUES (%s, 'a')"
SELECT = "SELECT body FROM notes WHERE id = %s"


def url(sql: Sql, server: str, driver: str) -> str:
    """The URL of a server for an engine."""
    topology = sql.topology
    place = getattr(topology, server)
    login = f"{topology.user}:{topology.password}"
    return f"mysql+{driver}://{login}@{place}/{topology.database}"


@pytest.mark.pairwise
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("client", CLIENTS)
def test_connections(sql: Sql, client: str, order: str) -> None:
    """A write enters, a read is held, spans are made; undone, nothing enters."""
    instrumentor, library = CLIENTS[client]
    opened: list[Any] = []

    def connected(server: str) -> Any:
        place = getattr(sql.topology, server)
        login = {"user": sql.topology.user, "password": sql.topology.password}
        one = library.connect(
            host=place.host, port=place.port, database="app", autocommit=True, **login
        )
        found = mysql.instrument_connection(one, datastore=NOTES, reads_from=server)  # type: ignore[arg-type]
        assert found is one
        opened.append(one)
        return one

    with Tracing(instrumentor(), order) as tracing:
        primary, replica = connected("primary"), connected("replica")
        tracing.ours_is_on(lambda: None)
        if order == "after":
            traced = tracing.instrumentor.instrument_connection
            primary = traced(primary, tracer_provider=PROVIDER)
            replica = traced(replica, tracer_provider=PROVIDER)
        with antipode.scope() as scope:
            run(primary, INSERT, 1)
            assert len(scope.lineage) == 1
            assert not scope.lineage.incomplete
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            assert [row[0] for row in run(replica, SELECT, 1)] == ["a"]
        if order != "off":  # It stays with the connections that were opened while it was on.
            assert len(tracing.spans) == 2
        for one in opened:
            assert mysql.instrument_connection(one, datastore=NOTES) is one
            mysql.uninstrument_connection(one)
        with antipode.scope() as scope:
            run(primary, INSERT, 2)
            assert not scope.lineage
        for one in opened:
            one.close()


@pytest.mark.pairwise
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("driver", ["pymysql", "mysqldb"])
@pytest.mark.parametrize("traced", ["engine", "connections"])
def test_engines(sql: Sql, driver: str, order: str, traced: str) -> None:
    """An engine's writes enter and its reads are held, whichever of its parts is traced."""
    of_driver = PyMySQLInstrumentor if driver == "pymysql" else MySQLClientInstrumentor
    instrumentor = SQLAlchemyInstrumentor if traced == "engine" else of_driver
    with Tracing(instrumentor(), order) as tracing:
        primary, replica = (
            sqlalchemy.create_engine(url(sql, server, driver)) for server in ("primary", "replica")
        )
        try:
            for engine, reads_from in ((primary, "primary"), (replica, "replica")):
                found = mysql.instrument_engine(engine, datastore=NOTES, reads_from=reads_from)  # type: ignore[arg-type]
                assert found is engine
            of_engines = {"engines": [primary, replica]} if traced == "engine" else {}
            tracing.ours_is_on(partial(tracing.switch_on, **of_engines))
            with antipode.scope() as scope:
                with primary.begin() as connection:
                    connection.exec_driver_sql("INSERT INTO notes VALUES (1, 'a')")
                assert len(scope.lineage) == 1
                antipode.barrier(timeout=TIMEOUT_S, at="read")
                with replica.connect() as connection:
                    read = connection.exec_driver_sql("SELECT body FROM notes WHERE id = 1")
                    assert read.scalar_one() == "a"
            assert bool(tracing.spans) is tracing.on
        finally:
            for engine in (primary, replica):
                mysql.uninstrument_engine(engine)
                engine.dispose()
