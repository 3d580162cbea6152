"""Transactions that only read, whose commits ask nothing: what may write is still told apart."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import antipode
from tests.integration.postgresql._named import (
    CALLING,
    READING,
    RELATIONS,
    having_functions,
)
from tests.integration.postgresql._sessions import CLIENTS, Connection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import PostgreSQLTopology
    from tests.integration.postgresql._clients import Clients

pytestmark = pytest.mark.store("postgresql")

#: What writes, and is one statement; a sequence gives no transaction an id.
WRITING = (
    *(each for each in CALLING if ";" not in each and "nextval" not in each),
    "SELECT body FROM post",
)
READS = "SELECT max(id) FROM posts"


@pytest.fixture
def named(clients: Clients) -> Iterator[PostgreSQLTopology]:
    """Servers with the application's functions, and what uses these."""
    with having_functions(clients.topology) as topology:
        for statement in RELATIONS:
            topology.execute(statement.format(user=topology.user))
        yield topology


def entered(one: Connection, *statements: str, method: bool = False) -> bool:
    """Whether a transaction leaves something in the lineage."""
    with antipode.scope() as scope:
        for statement in statements:
            one.run(statement, reads=False)
        if method:
            one.connection.commit()
        else:
            one.run("COMMIT", reads=False)
        return bool(scope.lineage) or bool(scope.lineage.incomplete)


@pytest.mark.parametrize("client", CLIENTS)
def test_what_may_write_enters_once_the_catalogue_is_known(
    named: PostgreSQLTopology, client: str
) -> None:
    """After a transaction that read, and before one; what reads enters nothing."""
    with closing(Connection(named, client, autocommit=True)) as one:
        for _ in range(2):
            assert not entered(one, "BEGIN", READS)
        for statement in WRITING:
            assert entered(one, "BEGIN", READS, statement), statement
            assert entered(one, "BEGIN", statement, READS), statement
        wrote = "INSERT INTO notes (body) VALUES ('n')"
        assert entered(one, "BEGIN", READS, wrote)
        assert entered(one, "BEGIN", "SAVEPOINT s", wrote, "RELEASE SAVEPOINT s", READS)
        assert [
            each for each in READING if entered(one, "BEGIN ISOLATION LEVEL SERIALIZABLE", each)
        ] == []


@pytest.mark.parametrize("client", ["psycopg", "psycopg2"])
def test_so_by_the_clients_own_commit(named: PostgreSQLTopology, client: str) -> None:
    """Where the client begins the transaction, too."""
    with closing(Connection(named, client, autocommit=False)) as one:
        for _ in range(2):
            assert not entered(one, READS, method=True)
        for statement in WRITING:
            assert entered(one, READS, statement, method=True), statement


@pytest.mark.parametrize("client", CLIENTS)
def test_a_definition_of_another_client_here_is_known_at_once(
    named: PostgreSQLTopology, client: str
) -> None:
    """What a read was known to mean ends with a schema that changes."""
    with (
        closing(Connection(named, client, autocommit=True)) as one,
        closing(Connection(named, "psycopg", autocommit=True)) as maker,
    ):
        maker.run("DROP VIEW IF EXISTS named.later", reads=False)
        maker.run("CREATE VIEW named.later AS SELECT 1 AS one", reads=False)
        for _ in range(2):
            assert not entered(one, "BEGIN", "SELECT * FROM named.later")
        maker.run("DROP VIEW named.later", reads=False)
        maker.run("CREATE VIEW named.later AS SELECT named.log('v') AS one", reads=False)
        assert entered(one, "BEGIN", "SELECT * FROM named.later")
        maker.run("DROP VIEW named.later", reads=False)
