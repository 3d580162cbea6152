"""Writes through a pool in Java that no text and no count of rows shows.

Functions, sequences, and what stays in a table without transactions, with both drivers in a pool of
HikariCP, where positions come with replies and where they do not.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from antipode import ConfigurationError
from tests.agent.client import StoreError
from tests.integration.mysql._clients import Sql, run
from tests.integration.mysql.test_jdbc import TIMEOUT_S, application
from tests.integration.mysql.test_jdbc_pool import no_such_pool, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.mysql.test_jdbc import Application, Client

__all__ = ["application"]
pytestmark = [pytest.mark.slow, pytest.mark.pairwise(skips=no_such_pool)]

pools = pytest.mark.parametrize("pool", ["tracked", "plain", "server", "cursors"])


@pytest.fixture
def hidden(application: Application) -> Application:
    """A function that writes, one that reads, and a table without transactions."""
    topology = application.topology
    engine = "Aria" if application.store == "mariadb" else "MyISAM"
    for statement in (
        "CREATE TABLE IF NOT EXISTS app.notes (id INT PRIMARY KEY, body TEXT)",
        "DROP FUNCTION IF EXISTS app.noting",
        """CREATE FUNCTION app.noting(i INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA
        BEGIN INSERT INTO app.notes VALUES (i, 'f'); RETURN i; END""",
        "CREATE OR REPLACE VIEW app.noted AS SELECT app.noting(1) AS id",
        "CREATE OR REPLACE VIEW app.above AS SELECT id FROM app.noted",
        "DROP FUNCTION IF EXISTS app.reading",
        "CREATE FUNCTION app.reading(i INT) RETURNS INT NO SQL RETURN i",
        "DROP TABLE IF EXISTS app.loose, app.kept",
        "CREATE TABLE app.kept (id INT PRIMARY KEY)",
        "INSERT INTO app.kept VALUES (9)",
        f"CREATE TABLE app.loose (id INT PRIMARY KEY) ENGINE={engine}",
        "DROP FUNCTION IF EXISTS app.loosely",
        """CREATE FUNCTION app.loosely(i INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA
        BEGIN INSERT INTO app.loose VALUES (i); RETURN i; END""",
    ):
        topology.execute(statement)
    return application


def shown(application: Application, statement: str) -> list[Any]:
    """What the replica shows once a barrier passed."""
    topology = application.topology
    with application.client(topology.replica, reads_from="replica"):
        application.remote.barrier(timeout=TIMEOUT_S)
        with contextlib.closing(Sql(topology)) as sql:
            return run(sql.plain(topology.replica), statement)


def functions(application: Application) -> int:
    """How many statements with functions that may write were counted."""
    counts = application.remote.metrics()
    return sum(count for each, count in counts.items() if each.name == "unknown_function")


@contextlib.contextmanager
def fresh(application: Application, pool: str, **more: str) -> Iterator[tuple[Client, Any]]:
    """A client and a scope, over empty tables and a replica that is late."""
    topology = application.topology
    topology.set_lag(0)
    topology.execute("DELETE FROM app.notes")
    topology.execute("DELETE FROM app.loose")
    topology.execute("DELETE FROM app.kept WHERE id < 9")
    topology.wait_replicated()
    with opened(application, pool, **more) as client:
        with application.remote.scope():
            client.call("update", "INSERT INTO kept VALUES (8)")
        topology.set_lag(100)
        with application.remote.scope() as scope:
            yield client, scope
        with contextlib.suppress(StoreError):
            client.call("autocommit")


@pools
@pytest.mark.parametrize("ends", ["", "commit"])
def test_what_a_function_writes_is_waited_for(hidden: Application, pool: str, ends: str) -> None:
    """A function that is not built in may write; it is counted, and the barrier waits."""
    for call, statement in (
        ("query", "SELECT noting(1)"),
        ("prepared", "SELECT app.`noting`(1) FROM (SELECT 1 AS a) d WHERE a IN (1)"),
        ("update", "DELETE FROM kept WHERE id = 9 AND noting(id - 8) = 2"),
    ):
        with fresh(hidden, pool) as (client, scope):
            if ends:
                client.call("begin")
            client.call(call, statement)
            if ends:
                client.call(ends)
            assert len(scope.lineage), statement
            assert not scope.lineage.incomplete
            assert shown(hidden, "SELECT id FROM notes") == [(1,)]


@pools
@pytest.mark.parametrize("ends", ["", "commit"])
def test_what_a_view_writes_is_waited_for(hidden: Application, pool: str, ends: str) -> None:
    """A view calls a function that writes: neither the statement nor the reply says so."""
    for call, statement in (
        ("query", "SELECT id FROM noted"),
        ("prepared", "SELECT * FROM (SELECT 1 AS a) d JOIN `app`.`above`"),
    ):
        with fresh(hidden, pool) as (client, scope):
            client.call("query", "SELECT id FROM kept")
            assert scope.lineage.empty
            if ends:
                client.call("begin")
            client.call(call, statement)
            if ends:
                client.call(ends)
            assert len(scope.lineage), statement
            assert not scope.lineage.incomplete
            assert shown(hidden, "SELECT id FROM notes") == [(1,)]


@pytest.mark.parametrize("pool", ["tracked", "plain"])
@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("INSERT INTO kept VALUES (1); SELECT noting(1)", "notes"),
        ("INSERT INTO kept VALUES (1); SELECT noting(1); SELECT 1", "notes"),
        ("INSERT INTO kept VALUES (1); EXECUTE calling", "notes"),
        ("INSERT INTO kept VALUES (1); INSERT INTO loose VALUES (1), (1)", "loose"),
    ],
    ids=["function", "more", "prepared", "failed"],
)
def test_a_statement_after_one_whose_position_came_is_waited_for(
    hidden: Application, pool: str, statement: str, table: str
) -> None:
    """The position of the first of several statements says nothing of what a later one wrote."""
    with fresh(hidden, pool, extra="&allowMultiQueries=true") as (client, scope):
        client.call("execute", "PREPARE calling FROM 'SELECT noting(1)'")
        with contextlib.suppress(StoreError):  # The second row fails.
            client.call("execute", statement)
        assert hidden.position() in {(each.key, each.version) for each in scope.lineage}
        assert not scope.lineage.incomplete
        assert shown(hidden, f"SELECT id FROM {table}") == [(1,)]  # noqa: S608 - a name


@pools
def test_rows_that_an_error_leaves_are_waited_for(hidden: Application, pool: str) -> None:
    """The second row fails, and the first stays in a table without transactions."""
    for begins, ends in (("", ""), ("begin", "commit"), ("begin", "rollback")):
        with fresh(hidden, pool) as (client, scope):
            if begins:
                client.call(begins)
            with pytest.raises(StoreError):
                client.call("update", "INSERT INTO loose VALUES (1), (1)")
            if ends:
                client.call(ends)
            assert len(scope.lineage), ends
            assert not scope.lineage.incomplete
            assert shown(hidden, "SELECT id FROM loose") == [(1,)]


@pools
def test_rows_that_a_rollback_leaves_are_waited_for(hidden: Application, pool: str) -> None:
    """A warning of the rollback says that there are some, or the reply to the write."""
    for calls in (["rollback"], ["update", "ROLLBACK"]):
        with fresh(hidden, pool) as (client, scope):
            client.call("begin")
            client.call("update", "INSERT INTO loose VALUES (1)")
            client.call(*calls)
            assert len(scope.lineage), calls
            assert not scope.lineage.incomplete
            assert shown(hidden, "SELECT id FROM loose") == [(1,)]


@pools
def test_what_no_rollback_undoes_is_waited_for_within_its_transaction(
    hidden: Application, pool: str
) -> None:
    """A table without transactions has it before the end, where a lineage may be used already."""
    for call, statement in (
        ("prepared_update", "INSERT INTO loose VALUES (1)"),
        ("update", "INSERT INTO loose VALUES (1), (1)"),
        ("query", "SELECT loosely(1)"),
    ):
        with fresh(hidden, pool) as (client, scope):
            client.call("begin")
            with contextlib.suppress(StoreError):  # The second row fails.
                client.call(call, statement)
            assert len(scope.lineage), statement
            assert not scope.lineage.incomplete
            assert shown(hidden, "SELECT id FROM loose") == [(1,)]
            client.call("rollback")


@pools
def test_what_wrote_nothing_has_no_position(hidden: Application, pool: str) -> None:
    """A duplicate key, a function that reads and a rollback leave no write, and no mark."""
    with fresh(hidden, pool) as (client, scope):
        with pytest.raises(StoreError):
            client.call("update", "INSERT INTO kept VALUES (9)")
        client.call("query", "SELECT reading(1)")
        client.call("begin")
        client.call("update", "INSERT INTO notes VALUES (2, 'a')")
        client.call("rollback")
        assert not scope.lineage.incomplete
        # Where replies tell nothing, what the server is at covers it.
        told = pool == "tracked" or hidden.store == "mariadb"
        assert not told or not len(scope.lineage)


def test_a_declared_function_costs_nothing(hidden: Application) -> None:
    """``readonlyFunctions`` names it: no count, and no position; nor for what is built in."""
    before = functions(hidden)
    with (
        hidden.client(hidden.topology.primary, readonly_functions=["Reading"]) as client,
        hidden.remote.scope() as scope,
    ):
        client.call("query", "SELECT reading(1), COUNT(*), NOW() FROM notes")
        assert functions(hidden) == before
        client.call("query", "SELECT noting(7)")
        assert functions(hidden) == before + 1
        assert len(scope.lineage)


def test_what_is_no_name_is_refused(hidden: Application) -> None:
    """Quotes and calls are no names."""
    for wrong in ("reading()", "`reading`"):
        with (
            pytest.raises(ConfigurationError, match="readonlyFunctions"),
            hidden.client(hidden.topology.primary, readonly_functions=[wrong]),
        ):
            pass


@pytest.mark.store("mariadb")
@pytest.mark.pairwise(skips=lambda of: of["application"] == "mysql")
@pytest.mark.parametrize("statement", ["SELECT NEXTVAL(app.s)", "SELECT NEXT VALUE FOR app.s"])
def test_numbers_of_a_sequence_are_writes(application: Application, statement: str) -> None:
    """They stay taken after a rollback, too."""
    if application.store != "mariadb":
        pytest.skip("MySQL has no sequences")
    application.topology.execute("CREATE OR REPLACE SEQUENCE app.s NOCACHE")
    for ends in ("", "commit", "rollback"):
        with opened(application, "plain") as client, application.remote.scope() as scope:
            if ends:
                client.call("begin")
            client.call("query", statement)
            if ends:
                client.call(ends)
            assert application.position() in {(each.key, each.version) for each in scope.lineage}
            assert not scope.lineage.incomplete
