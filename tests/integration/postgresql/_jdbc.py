"""A process in Java with pools of its own over a primary and a standby."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from tests.agent.client import RemoteShim
from tests.contract._servers import described

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import PostgreSQLTopology
    from tests.agent.client import RemoteAntipode
    from tests.agent.lending import Lend

DATASTORE = "posts"
INSERT = "INSERT INTO jdbc_notes (body) VALUES ('a')"
REPEATABLE = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ"
TABLES = (
    "CREATE TABLE IF NOT EXISTS jdbc_notes (id serial PRIMARY KEY, body text)",
    "CREATE TABLE IF NOT EXISTS jdbc_late (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)",
    (
        "CREATE OR REPLACE FUNCTION jdbc_add() RETURNS int LANGUAGE sql AS"
        " $$ INSERT INTO jdbc_notes (body) VALUES ('f') RETURNING id $$"
    ),
    (
        "CREATE OR REPLACE PROCEDURE jdbc_twice() LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO jdbc_notes (body) VALUES ('p'); COMMIT; RAISE 'after'; END $$"
    ),
    "CREATE OR REPLACE VIEW jdbc_hiding AS SELECT jdbc_add() AS id",
    "TRUNCATE jdbc_late",
)


class Client(RemoteShim):
    """A connection of an instrumented pool, which the agent keeps until it is closed."""

    def call(self, name: str, statement: str = "") -> Any:
        """One call of JDBC."""
        return self._ask("jdbc", call=name, sql=statement)


class Application:
    """The process, and what its servers say."""

    def __init__(self, topology: PostgreSQLTopology, remote: RemoteAntipode) -> None:
        self.topology = topology
        self.remote = remote

    @contextmanager
    def client(self, address: Any, **options: Any) -> Iterator[Client]:
        """One of a server."""
        server = described("postgresql", self.topology, address)
        client = Client(self.remote, "postgresql", DATASTORE, server, client=True, **options)
        with closing(client):
            yield client

    def flushed(self) -> int:
        """Where the primary's log stands."""
        sql = "SELECT pg_current_wal_flush_lsn() - '0/0' AS flushed"
        return int(self.topology.execute(sql)[0]["flushed"])


def application(topology: PostgreSQLTopology, lend: Lend) -> Application:
    """The process, with its tables made."""
    for statement in TABLES:
        topology.execute(statement)
    for name in ("TABLE jdbc_notes", "TABLE jdbc_late", "VIEW jdbc_hiding"):
        topology.execute(f"ALTER {name} OWNER TO {topology.user}")
    topology.wait_replicated()
    return Application(topology, lend("java"))
