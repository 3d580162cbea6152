"""Transactions that change temporary tables alone, of which a standby has nothing to show."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import antipode
from tests.integration.postgresql._sessions import CLIENTS, Connection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import PostgreSQLTopology
    from tests.integration.postgresql._clients import Clients

pytestmark = pytest.mark.store("postgresql")

MADE = (
    "CREATE TABLE lasting (a int)",
    "CREATE SEQUENCE numbers",
    """CREATE FUNCTION kept(int) RETURNS int LANGUAGE sql AS
    'INSERT INTO lasting VALUES ($1) RETURNING a'""",
    """CREATE FUNCTION copied() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO lasting VALUES (NEW.a); RETURN NEW; END'""",
    "CREATE VIEW keeping AS SELECT kept(2) AS a",
    "GRANT ALL ON lasting, numbers, keeping TO {user}",
    "GRANT CREATE ON SCHEMA public TO {user}",
)
DROPPED = (
    "DROP SCHEMA IF EXISTS made",
    "DROP VIEW IF EXISTS keeping",
    "DROP FUNCTION IF EXISTS copied, copied_late, kept",
    "DROP TABLE IF EXISTS lasting, own",
    "DROP SEQUENCE IF EXISTS numbers",
)
OWN = "INSERT INTO own VALUES (1)"
#: What changes temporary tables, one transaction each.
TEMPORARY: tuple[tuple[str, ...], ...] = (
    (OWN,),
    ("UPDATE own SET a = 2", "SELECT count(*) FROM lasting", "DELETE FROM own WHERE a = 2"),
    (OWN, "SAVEPOINT s", OWN, "ROLLBACK TO SAVEPOINT s"),
    ("INSERT INTO own SELECT a FROM lasting", "TRUNCATE own", OWN),
    ("CREATE TEMP TABLE more (a serial PRIMARY KEY, b text)", "INSERT INTO more (b) VALUES ('b')"),
    ("CREATE TEMP TABLE brief ON COMMIT DROP AS SELECT 1 AS a", "INSERT INTO brief VALUES (2)"),
)
#: What changes something else besides, although its texts name temporary tables alone.
LASTING: tuple[tuple[str, ...], ...] = (
    (OWN, "INSERT INTO lasting VALUES (1)"),
    (OWN, "SELECT kept(1)"),
    (OWN, "SELECT a FROM keeping"),
    ("INSERT INTO own SELECT a FROM keeping",),
    ("INSERT INTO own VALUES (nextval('numbers'))",),
    (OWN, "SELECT lo_create(0)"),
    (OWN, "SELECT lo_from_bytea(0, 'a')"),
    (OWN, "TRUNCATE lasting"),
    ("INSERT INTO triggered VALUES (1)",),
    ("INSERT INTO defaulting DEFAULT VALUES",),
    ("INSERT INTO public.own VALUES (1)",),
)


@pytest.fixture
def topology(clients: Clients) -> Iterator[PostgreSQLTopology]:
    """With what a temporary table's rows may change besides."""
    topology = clients.topology
    for statement in (*DROPPED, *MADE):
        topology.execute(statement.format(user=topology.user))
    yield topology
    for statement in DROPPED:
        topology.execute(statement)


def entered(one: Connection, *statements: str) -> bool:
    """Whether a transaction leaves something in the lineage."""
    with antipode.scope() as scope:
        for statement in ("BEGIN", *statements, "COMMIT"):
            one.run(statement, reads=False)
        return bool(scope.lineage) or bool(scope.lineage.incomplete)


def prepared(one: Connection) -> None:
    """Make the session's temporary tables; what the server lets it see is known afterwards."""
    for statement in (
        "CREATE TEMPORARY TABLE own (a int)",
        "CREATE TEMPORARY TABLE triggered (a int)",
        "CREATE TRIGGER t AFTER INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION copied()",
        "CREATE TEMPORARY TABLE defaulting (a int DEFAULT kept(3))",
    ):
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
