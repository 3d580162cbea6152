"""Transactions that change temporary tables alone, of which a standby has nothing to show."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import antipode
from tests.integration.postgresql._sessions import CLIENTS, Connection
from tests.integration.postgresql._temporary import LASTING, OWN, SESSION, TEMPORARY, changing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import PostgreSQLTopology
    from tests.integration.postgresql._clients import Clients

pytestmark = pytest.mark.store("postgresql")


@pytest.fixture
def topology(clients: Clients) -> Iterator[PostgreSQLTopology]:
    """With what a temporary table's rows may change besides."""
    with changing(clients.topology) as topology:
        yield topology


def entered(one: Connection, *statements: str) -> bool:
    """Whether a transaction leaves something in the lineage."""
    with antipode.scope() as scope:
        for statement in ("BEGIN", *statements, "COMMIT"):
            one.run(statement, reads=False)
        return bool(scope.lineage) or bool(scope.lineage.incomplete)


def prepared(one: Connection) -> None:
    """Make the session's temporary tables; what the server lets it see is known afterwards."""
    for statement in SESSION:
        one.run(statement, reads=False)
    assert entered(one, OWN)


@pytest.mark.parametrize("client", CLIENTS)
def test_they_enter_nothing(topology: PostgreSQLTopology, client: str) -> None:
    """Made before, in the transaction, and dropped with it; with a savepoint, and with reads."""
    with closing(Connection(topology, client, autocommit=True)) as one:
        prepared(one)
        assert [each for each in TEMPORARY if entered(one, *each)] == []


@pytest.mark.parametrize("client", CLIENTS)
def test_what_they_change_besides_enters(topology: PostgreSQLTopology, client: str) -> None:
    """By a function, a view, a trigger, a default, a sequence, a large object, a table beside."""
    topology.execute("CREATE TABLE own (a int)")
    topology.execute(f"GRANT ALL ON own TO {topology.user}")
    with closing(Connection(topology, client, autocommit=True)) as one:
        prepared(one)
        assert [each for each in LASTING if not entered(one, *each)] == []


@pytest.mark.parametrize("client", ["psycopg", "psycopg2"])
def test_so_by_the_clients_own_commit(topology: PostgreSQLTopology, client: str) -> None:
    """Whose packet has the question, the commit and the position."""
    with closing(Connection(topology, client, autocommit=False)) as one:
        connection = one.connection
        one.run("CREATE TEMPORARY TABLE own (a int)", reads=False)
        connection.commit()
        found = []
        for statement in (OWN, "SELECT kept(1)", OWN):
            with antipode.scope() as scope:
                one.run(OWN, reads=False)
                one.run(statement, reads=False)
                connection.commit()
                found.append(bool(scope.lineage))
        assert found == [False, True, False]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_user_who_may_not_see_locks_commits(topology: PostgreSQLTopology, client: str) -> None:
    """As before, and what it changed enters."""
    topology.execute("REVOKE SELECT ON pg_locks FROM public")
    try:
        with closing(Connection(topology, client, autocommit=True)) as one:
            prepared(one)
            assert entered(one, OWN)
            assert one.run("SELECT count(*) FROM own", reads=True)[0][0] == 2
    finally:
        topology.execute("GRANT SELECT ON pg_locks TO public")
