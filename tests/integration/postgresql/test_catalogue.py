"""What a name in a statement means is what the server makes of it, for each client."""

from __future__ import annotations

import contextlib
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import sqlalchemy as sa

import antipode
from antipode_shims import postgresql
from antipode_testing import LagProxy
from tests.integration.postgresql._clients import DATASTORE
from tests.integration.postgresql._named import (
    CALLING,
    READING,
    RELATIONS,
    USING,
    having_functions,
)
from tests.integration.postgresql._sessions import CLIENTS, Connection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import PostgreSQLTopology
    from tests.integration.postgresql._clients import Clients

pytestmark = pytest.mark.store("postgresql")


@pytest.fixture
def named(clients: Clients) -> Iterator[PostgreSQLTopology]:
    """Servers with the application's functions, which its search path finds before the server's."""
    with having_functions(clients.topology) as topology:
        yield topology


@pytest.fixture(params=CLIENTS)
def one(named: PostgreSQLTopology, request: pytest.FixtureRequest) -> Iterator[Connection]:
    """An instrumented connection of each client, where each statement commits on its own."""
    with closing(Connection(named, request.param, autocommit=True)) as opened:
        yield opened


@pytest.fixture
def used(one: Connection, named: PostgreSQLTopology) -> Connection:
    """The same, with relations and types that use these functions."""
    for statement in RELATIONS:
        named.execute(statement.format(user=named.user))
    return one


def entered(one: Connection, statement: str) -> bool:
    """Whether a statement leaves something in the lineage."""
    with antipode.scope() as scope:
        one.run(statement, reads=False)
        return bool(scope.lineage) or bool(scope.lineage.incomplete)


@pytest.mark.parametrize("statement", CALLING)
def test_what_a_function_of_the_applications_writes_enters(one: Connection, statement: str) -> None:
    """Whatever PostgreSQL has of that name, and also once it is known."""
    for _ in range(3):
        assert entered(one, statement)


@pytest.mark.parametrize("statement", USING)
def test_what_uses_a_function_may_write(used: Connection, statement: str) -> None:
    """A view, a policy and a condition of a domain, by their own names and through each other."""
    for _ in range(2):
        assert entered(used, statement)


def test_what_the_server_has_itself_enters_nothing(used: Connection) -> None:
    """Names that no table of the library's has, names of columns, and parts of names."""
    assert [statement for statement in READING if entered(used, statement)] == []


def test_a_name_that_the_schema_gets_later_is_asked_for_again(one: Connection) -> None:
    """What a connection defines is known to it at once."""
    made = (
        "CREATE FUNCTION named.lower(posts) RETURNS text LANGUAGE sql AS 'SELECT named.log($$l$$)'"
    )
    assert not entered(one, "SELECT lower(body) FROM posts")
    one.run(made, reads=False)
    assert entered(one, "SELECT lower(p) FROM posts p")


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_schema_that_changes_in_a_transaction(named: PostgreSQLTopology, end: str) -> None:
    """What others learn of it before its commit is forgotten with that."""
    made = (
        "CREATE FUNCTION named.upper(posts) RETURNS text LANGUAGE sql AS 'SELECT named.log($$u$$)'"
    )
    with (
        closing(Connection(named, "psycopg", autocommit=False)) as maker,
        closing(Connection(named, "psycopg", autocommit=True)) as other,
    ):
        maker.run(made, reads=False)
        assert not entered(other, "SELECT upper(body) FROM posts")
        getattr(maker.connection, end)()
        if end == "commit":
            assert entered(other, "SELECT upper(p) FROM posts p")


def test_a_transaction_whose_commit_is_in_a_pipeline(named: PostgreSQLTopology) -> None:
    """Nothing can be asked with its COMMIT: the catalogue is asked after it."""
    with closing(Connection(named, "psycopg", autocommit=True)) as one, antipode.scope() as scope:
        one.connection.execute("BEGIN")
        one.connection.execute("SELECT log('x')")
        with one.connection.pipeline():
            one.connection.execute("COMMIT")
        assert len(scope.lineage) == 1


def test_a_read_only_transaction_in_a_pipeline_enters_nothing(named: PostgreSQLTopology) -> None:
    """The same, of reads that are the server's own."""
    with closing(Connection(named, "psycopg", autocommit=True)) as one, antipode.scope() as scope:
        one.connection.execute("BEGIN")
        one.connection.execute("SELECT max(id) FROM posts")
        with one.connection.pipeline():
            one.connection.execute("COMMIT")
        assert not scope.lineage
        assert not scope.lineage.incomplete


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_an_engine_of_sqlalchemys(named: PostgreSQLTopology, driver: str) -> None:
    """The name decides there as little."""
    url = named.url(driver=f"postgresql+{driver}")
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    postgresql.instrument_engine(engine, datastore=DATASTORE)
    with antipode.scope() as scope, engine.connect() as connection:
        connection.execute(sa.text("SELECT log('x')"))
        assert len(scope.lineage) == 1
    postgresql.uninstrument_engine(engine)
    engine.dispose()


def test_a_question_a_name(named: PostgreSQLTopology) -> None:
    """The catalogue is asked once; afterwards what only reads costs no round trip."""
    statements = (
        "SELECT body FROM posts",
        "SELECT int4range(1, 5)",
        "SELECT isempty('[1,2)'::int4range)",
    )
    with contextlib.ExitStack() as opened:
        counted = opened.enter_context(LagProxy(named.primary))
        one = opened.enter_context(
            closing(psycopg.connect(named.url(counted.address), autocommit=True))
        )
        postgresql.instrument_connection(one, datastore=DATASTORE)
        opened.callback(postgresql.uninstrument_connection, one)
        opened.enter_context(antipode.scope())
        spent = []
        for _ in range(3):
            for statement in statements:
                before = counted.traffic().exchanges
                one.execute(statement)
                spent.append(counted.traffic().exchanges - before)
    assert spent == [2, 2, 2, 1, 1, 1, 1, 1, 1]


def test_a_failed_transaction_is_not_asked(one: Connection) -> None:
    """Nothing is sent in it but what the application sends: its own error is what it sees."""
    one.run("BEGIN", reads=False)
    with pytest.raises(Exception, match="division by zero"):
        one.run("SELECT 1 / 0", reads=False)
    with pytest.raises(Exception, match="aborted"):
        one.run("SELECT log('x')", reads=False)
    assert not entered(one, "ROLLBACK")


def lost(one: Any) -> Any:
    """The connection ends while a statement runs that the application's function is in."""
    with antipode.scope() as scope:
        with pytest.raises(psycopg.OperationalError):
            one.execute("SELECT log(pg_terminate_backend(pg_backend_pid())::text)")
        return scope.lineage.incomplete


def test_a_connection_lost_in_a_call_is_in_doubt(named: PostgreSQLTopology) -> None:
    """As soon as the catalogue says that it may have written."""
    with closing(Connection(named, "psycopg", autocommit=True)) as one:
        assert entered(one, "SELECT log('x')")
        assert (DATASTORE, "in_doubt") in lost(one.connection)
