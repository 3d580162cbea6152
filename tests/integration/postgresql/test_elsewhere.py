"""What is written without an id: by dblink, and through foreign tables."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode_testing import LagProxy

pytest.importorskip("psycopg2")
pytest.importorskip("asyncpg")
pytestmark = pytest.mark.store("postgresql")

from ._clients import DATASTORE, Clients  # noqa: E402 - its clients are there
from ._sessions import CLIENTS, ERRORS, Connection  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Iterator

DOUBT = {(DATASTORE, "in_doubt")}
WRAPPER, OF_POSTS = "FOREIGN DATA WRAPPER postgres_fdw", "OPTIONS (table_name 'posts')"
INSERT = "INSERT INTO {table} VALUES ({id}, '')"
#: Through dblink, from within a function: the usual way to write what no rollback undoes.
AUTONOMOUS = """CREATE OR REPLACE FUNCTION noted(id int) RETURNS text LANGUAGE sql AS
    $$ SELECT dblink_exec('{here}', format('INSERT INTO posts VALUES (%s)', id)) $$"""


@pytest.fixture
def linked(clients: Clients) -> Iterator[Clients]:
    """A primary with tables of its own as foreign ones, and one that says it is another's."""
    topology = clients.topology
    known = topology.execute("SELECT name FROM pg_available_extensions")
    if not {"dblink", "postgres_fdw"} <= {row["name"] for row in known}:
        pytest.skip("this PostgreSQL has no dblink or no postgres_fdw")
    host, port = topology.primary.host, topology.primary.port
    other = LagProxy(topology.primary)
    here = f"host={host} port={port} dbname=app user=app password=app"
    for sql in (
        "CREATE EXTENSION dblink",
        "CREATE EXTENSION postgres_fdw",
        AUTONOMOUS.format(here=here),
        *server("here", host, port),
        *server("away", host, other.address.port),
        "CREATE TABLE parts (id int, body text) PARTITION BY LIST (body)",
        f"CREATE FOREIGN TABLE part PARTITION OF parts FOR VALUES IN ('') SERVER away {OF_POSTS}",
        f"ALTER TABLE parts OWNER TO {topology.user}",
    ):
        topology.execute(sql)
    yield clients
    other.close()
    topology.execute("DROP TABLE parts")
    topology.execute("DROP EXTENSION dblink CASCADE")
    topology.execute("DROP EXTENSION postgres_fdw CASCADE")


def server(name: str, host: str, port: int) -> tuple[str, ...]:
    """A server of that name, with the table of posts as `posts_NAME`."""
    return (
        f"CREATE SERVER {name} {WRAPPER} OPTIONS (host '{host}', port '{port}', dbname 'app')",
        f"CREATE USER MAPPING FOR app SERVER {name} OPTIONS (user 'app', password 'app')",
        f"CREATE FOREIGN TABLE posts_{name} (id int, body text) SERVER {name} {OF_POSTS}",
        f"GRANT ALL ON posts_{name} TO app",
    )


@pytest.fixture(params=CLIENTS)
def writer(request: pytest.FixtureRequest, linked: Clients) -> Iterator[Connection]:
    """A client whose statements commit on their own."""
    with closing(Connection(linked.topology, request.param, autocommit=True)) as one:
        yield one


def run(writer: Connection, *texts: str) -> Any:
    """Send *texts*, in a scope of their own; its lineage."""
    with antipode.scope() as scope:
        for text in texts:
            writer.run(text, reads=False)
        return scope.lineage


def test_a_foreign_table_of_this_server_is_covered(writer: Connection) -> None:
    """Its writer is another session, so that its transaction has no id here."""
    for number, around in enumerate(((), ("BEGIN", "COMMIT"))):
        insert = INSERT.format(table="posts_here", id=10 + number)
        found = run(writer, *around[:1], insert, *around[1:])
        assert (around, len(found), found.incomplete) == (around, 1, frozenset())


def test_a_foreign_table_that_somebody_has_just_made_is_found(
    linked: Clients, writer: Connection
) -> None:
    """Rows were changed and there is no id: what was known of the catalogue is too old."""
    run(writer, "BEGIN", "UPDATE posts SET body = '' WHERE false", "COMMIT")
    linked.topology.execute(
        f"CREATE FOREIGN TABLE posts_new (id int, body text) SERVER here {OF_POSTS}"
    )
    linked.topology.execute("GRANT ALL ON posts_new TO app")
    found = run(writer, "BEGIN", INSERT.format(table="posts_new", id=50), "COMMIT")
    assert len(found) == 1
    assert not found.incomplete


def test_a_foreign_table_of_another_server_is_in_doubt(linked: Clients, writer: Connection) -> None:
    """Where it was written no position of this server says: by its parents' names, too."""
    del linked
    for number, table in enumerate(("posts_away", "parts")):
        for around in ((), ("BEGIN", INSERT.format(table="posts", id=30 + number), "COMMIT")):
            insert = INSERT.format(table=table, id=20 + number)
            with antipode.scope() as scope:
                for text in (*around[:2], insert, *around[2:]):
                    writer.run(text, reads=False)
                assert scope.lineage.incomplete == DOUBT
            writer.run(f"DELETE FROM posts WHERE id = {20 + number}", reads=False)  # noqa: S608


def test_what_a_function_wrote_by_dblink_is_covered(writer: Connection) -> None:
    """It is committed at once, whatever becomes of the transaction that called it."""
    for number, end in enumerate(("COMMIT", "ROLLBACK")):
        found = run(writer, "BEGIN", f"SELECT noted({40 + number})", end)
        assert (end, len(found), found.incomplete) == (end, 1, frozenset())


def test_what_a_function_wrote_by_dblink_is_covered_before_the_transaction_ends(
    writer: Connection,
) -> None:
    """A message that leaves before it has the write, or the doubt where its flush is not seen."""
    with antipode.scope() as scope:
        writer.run("BEGIN", reads=False)
        writer.run("SELECT noted(60)", reads=False)
        inside = scope.lineage
        writer.run("ROLLBACK", reads=False)
    assert len(inside) == 1 or inside.incomplete == DOUBT
    with antipode.scope() as scope:
        writer.run("BEGIN", reads=False)
        with pytest.raises(ERRORS):
            writer.run("SELECT 1 / length(left(noted(61), 0))", reads=False)
        assert scope.lineage.incomplete == DOUBT
        writer.run("ROLLBACK", reads=False)


def test_what_a_function_wrote_by_dblink_before_its_connection_is_lost_is_in_doubt(
    writer: Connection,
) -> None:
    """The transaction is rolled back, and nobody knows what the call has committed elsewhere."""
    run(writer, "BEGIN", "SELECT noted(70)", "ROLLBACK")  # What the database has is known by then.
    with antipode.scope() as scope:
        writer.run("BEGIN", reads=False)
        with pytest.raises(ERRORS):
            writer.run("SELECT noted(71), pg_terminate_backend(pg_backend_pid())", reads=False)
        assert scope.lineage.incomplete == DOUBT


def test_what_a_text_sends_by_dblink_is_in_doubt(linked: Clients, writer: Connection) -> None:
    """Which server it goes to nobody reads; one that fails may have written before."""
    del linked
    for text in ("SELECT dblink_exec('a', 'DELETE FROM b')", "SELECT dblink('a', 'CALL b()')"):
        with antipode.scope() as scope:
            with pytest.raises(ERRORS):
                writer.run(text, reads=False)
            assert scope.lineage.incomplete == DOUBT


def test_who_reads_through_foreign_servers_is_in_no_doubt(writer: Connection) -> None:
    """Nor who changes rows here by what was read there."""
    copied = "INSERT INTO posts SELECT id + 100, '' FROM posts_away WHERE id < 0"
    found = run(writer, "SELECT * FROM posts_away", "BEGIN", copied, "COMMIT")
    assert not found.incomplete
