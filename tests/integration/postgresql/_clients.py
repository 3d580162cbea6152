"""Connections to a primary and a standby for tests."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from antipode_shims import postgresql

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import LagProxy, PostgreSQLTopology

DATASTORE = "posts"
#: What a transaction may have sent and taken no snapshot, and what takes one.
TAKE_NONE = (
    "SHOW work_mem",
    "SET LOCAL work_mem = '4MB'",
    "SAVEPOINT s",
    "LOCK TABLE posts IN ACCESS SHARE MODE",
    "ROLLBACK TO SAVEPOINT s",
)
TAKES_ONE = ("SELECT 1", "DEALLOCATE ALL", "CLOSE ALL", "PREPARE q AS SELECT 1")
REPEATABLE = "BEGIN ISOLATION LEVEL REPEATABLE READ"


@contextmanager
def failing_pipeline(connection: Any) -> Iterator[Any]:
    """A pipeline whose last statement, or any, divides by zero."""
    with pytest.raises(psycopg.errors.DivisionByZero), connection.pipeline() as pipeline:
        yield pipeline


class Clients:
    """Instrumented connections; whoever makes one closes all of them with `close`."""

    def __init__(self, topology: PostgreSQLTopology) -> None:
        self.topology = topology
        self._made: list[Any] = []
        topology.execute("DROP TABLE IF EXISTS posts")
        topology.execute("CREATE TABLE posts (id int PRIMARY KEY, body text)")
        topology.execute("INSERT INTO posts VALUES (1, '')")
        topology.execute(f"ALTER TABLE posts OWNER TO {topology.user}")
        topology.wait_replicated()

    def plain(self, address: Any = None, **options: Any) -> Any:
        """A connection that nothing instruments, to the primary by default."""
        made = psycopg.connect(self.topology.url(address), **options)
        self._made.append(made)
        return made

    def writer(self, address: Any = None, *, autocommit: bool = False, **options: Any) -> Any:
        """A connection to the primary."""
        made = self.plain(address, autocommit=autocommit)
        return postgresql.instrument_connection(made, datastore=DATASTORE, **options)

    def reader(self, address: Any = None, *, autocommit: bool = False, **options: Any) -> Any:
        """A connection to the standby, or to another server that is read as one."""
        made = self.plain(address or self.topology.replica, autocommit=autocommit)
        options = {"datastore": DATASTORE, "reads_from": "replica", **options}
        return postgresql.instrument_connection(made, **options)

    def close(self) -> None:
        """Close all of them, and leave the user the table that others take for theirs."""
        for each in self._made:
            postgresql.uninstrument_connection(each)
            each.close()
        owner = self.topology.user
        self.topology.execute(f"ALTER TABLE IF EXISTS antipode_tombstone OWNER TO {owner}")


class Exchanges:
    """How many round trips a call takes through a proxy: the fewest of those that were counted.

    Packets that are sent one after the other, without a reply between them, are counted as two
    round trips where the server was quicker than their sender.
    """

    def __init__(self, proxy: LagProxy) -> None:
        self._proxy = proxy
        self._counted: list[int] = []

    @contextmanager
    def __call__(self) -> Iterator[None]:
        before = self._proxy.traffic()
        yield
        self._counted.append((self._proxy.traffic() - before).exchanges)

    @property
    def fewest(self) -> int:
        """Without the first call, which asks what the server is."""
        return min(self._counted[1:])


def body(connection: Any) -> Any:
    """What the connection reads."""
    return connection.execute("SELECT body FROM posts WHERE id = 1").fetchone()[0]
