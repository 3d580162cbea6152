"""Lineages stored with rows through JDBC: what Java stores Python reads, and the reverse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from antipode import ConfigurationError, Lineage
from antipode.shim import encode
from antipode.telemetry import Metric
from tests.agent.client import StoreError
from tests.integration.postgresql._beside import (
    BESIDE,
    CAUSE,
    OTHER,
    READ,
    found,
    make_table,
    texts,
    write,
)
from tests.integration.postgresql._clients import DATASTORE
from tests.integration.postgresql._jdbc import REPEATABLE, Application, Client, application
from tests.integration.postgresql.test_pgbouncer import pooled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import PostgreSQLTopology
    from tests.agent.lending import Lend
    from tests.integration.postgresql._clients import Clients

pytestmark = [pytest.mark.store("postgresql"), pytest.mark.slow]

INSERT = "INSERT INTO orders VALUES (1, 'x')"
UNREAD = Metric("unread_lineage", DATASTORE)
UNSAMPLED = (DATASTORE, "unsampled")
#: PgBouncer of this release knows no statements that are prepared, in mode transaction.
PLAIN = "?prepareThreshold=0"
#: Results of pgjdbc in binary from their first execution on.
BINARY = "?prepareThreshold=-1"


class Java:
    """A pool in Java that stores lineages with the rows of `orders`, by one of its connections."""

    def __init__(self, clients: Clients, app: Application, client: Client) -> None:
        self.clients = clients
        self.remote = app.remote
        self._client = client

    def run(self, call: str, statement: str = "", *parameters: str) -> Any:
        """One call of JDBC."""
        return self._client._ask("jdbc", call=call, sql=statement, parameters=list(parameters))

    def writes(self, statement: str, *causes: Any) -> None:
        """Write what depends on *causes*."""
        with self.remote.scope(Lineage(causes)):
            self.run("update", statement)

    def learned(self, statement: str, *parameters: str, call: str = "query") -> Lineage:
        """What a request knows that saw this, without the position of the read."""
        with self.remote.scope() as scope:
            self.run(call, statement, *parameters)
            self.run("close")
            seen = scope.lineage
        covering = [each for each in seen if each.datastore == DATASTORE]
        assert [each.covering for each in covering] == [True], seen
        return Lineage([each for each in seen if each not in covering], incomplete=seen.incomplete)

    def unread(self) -> int:
        """How many statements did not show their rows' lineages."""
        return self.remote.metrics().get(UNREAD, 0)

    def stored(self, key: object) -> list[str]:
        """What lies with a row."""
        return texts(self.clients.plain(autocommit=True), key)


@pytest.fixture
def app(antipode_postgresql: PostgreSQLTopology, lend: Lend) -> Application:
    """A process in Java."""
    return application(antipode_postgresql, lend)


@pytest.fixture
def java(app: Application, clients: Clients, capsys: pytest.CaptureFixture[str]) -> Iterator[Java]:
    """With a migrated table of orders."""
    make_table(clients, capsys, "id int PRIMARY KEY DEFAULT 100, body text")
    with app.client(app.topology.primary, tables=["orders"]) as client:
        yield Java(clients, app, client)


def text_of(*causes: Any) -> list[str]:
    """What lies with a row that was written with *causes*."""
    return [encode(Lineage(causes))]


def test_what_one_language_stores_the_other_reads(java: Java) -> None:
    """Writes that commit alone, and those of a transaction."""
    python = java.clients.writer(**BESIDE)
    java.writes(INSERT, CAUSE)
    assert found(python) == Lineage([CAUSE])
    write(python, "INSERT INTO orders VALUES (%s, %s)", (2, "x"), OTHER)
    assert java.learned("SELECT * FROM orders WHERE id = 2") == Lineage([OTHER])
    java.run("begin")
    java.writes("UPDATE orders SET body = 'y' WHERE id = 2", CAUSE)
    java.run("commit")
    assert java.learned("SELECT * FROM orders WHERE id = 2") == Lineage([CAUSE, OTHER])


@pytest.mark.parametrize("begins", [False, True], ids=["alone", "transaction"])
def test_a_connection_keeps_no_lineage_of_a_write(java: Java, *, begins: bool) -> None:
    """What is written past the library afterwards, as by `CopyManager`, has none of it."""
    if begins:
        java.run("begin")
    java.writes(INSERT, CAUSE)
    if begins:
        java.run("commit")
        java.run("autocommit")
    java.run("copy", "COPY orders (body) FROM STDIN")
    assert (java.stored(1), java.stored(100)) == (text_of(CAUSE), [])


def test_a_statement_that_fails_leaves_no_lineage_either(java: Java) -> None:
    """What it was to write depends on nobody's later write."""
    java.writes(INSERT, CAUSE)
    with pytest.raises(StoreError, match="duplicate key"):
        java.writes(INSERT, OTHER)
    java.run("copy", "COPY orders (body) FROM STDIN")
    assert java.stored(100) == []


def test_who_finds_nothing_depends_on_the_deletion(java: Java) -> None:
    """By a literal, and by a parameter, also after a question mark that is none."""
    java.writes(INSERT, CAUSE)
    java.writes("DELETE FROM orders WHERE id = 1", OTHER)
    assert java.learned(READ) == Lineage([CAUSE, OTHER])
    sought = "SELECT $$?$$, E'\\'?', body FROM orders /* ? */ WHERE id = ?::int"
    assert java.learned(sought, "1", call="prepared") == Lineage([CAUSE, OTHER])
    assert java.learned(sought, "2", call="prepared") == Lineage()


@pytest.mark.parametrize(
    "statement",
    [
        READ,
        "SELECT o1_0.id, o1_0.body FROM orders o1_0 WHERE o1_0.id IN (1, 2)",
        'SELECT "orders"."id" AS other FROM public."orders"',
        "SELECT id, count(*) FROM orders GROUP BY id",
        "WITH s AS (SELECT * FROM orders) SELECT * FROM s",
        "UPDATE orders SET body = 'z' RETURNING id",
        "SELECT * FROM orders FOR UPDATE",
        "SELECT c.n, o.id FROM (VALUES (1), (2)) AS c (n) LEFT JOIN orders o ON o.id = c.n",
    ],
)
def test_what_shows_the_key_finds_the_lineage(java: Java, statement: str) -> None:
    """However it is written, and whatever its columns are called."""
    java.writes(INSERT, CAUSE)
    before = java.unread()
    java.run("begin")
    with java.remote.scope() as scope:
        assert java.run("query", statement)
        java.run("rollback")
        assert CAUSE in scope.lineage
    assert java.unread() == before


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT body FROM orders",
        "SELECT count(*) FROM orders",
        "SELECT id FROM orders UNION SELECT 2",
        "SELECT a.id, b.body FROM orders a JOIN orders b ON a.id = b.id",
        "SELECT id FROM orders WHERE id IN ((SELECT 7), 1 + 1)",
    ],
)
def test_what_hides_rows_is_counted(java: Java, statement: str) -> None:
    """It has a position that covers it, and says that lineages are not read."""
    java.writes(INSERT, CAUSE)
    before = java.unread()
    assert set(java.learned(statement)) <= {CAUSE}
    assert java.unread() == before + 1


def test_what_is_read_through_a_view_is_counted(java: Java) -> None:
    """And what is written through one has its lineage."""
    topology = java.clients.topology
    topology.execute("CREATE VIEW seen AS SELECT * FROM orders")
    topology.execute(f"GRANT ALL ON seen TO {topology.user}")
    try:
        before = java.unread()
        with java.remote.scope():
            java.run("query", "SELECT * FROM seen")
        assert java.unread() == before + 1
        java.writes("INSERT INTO seen VALUES (1, 'x')", CAUSE)
        assert java.stored(1) == text_of(CAUSE)
    finally:
        topology.execute("DROP VIEW seen")


@pytest.mark.parametrize(
    "undo",
    ["ROLLBACK TO SAVEPOINT a", "SELECT 1; ROLLBACK TO SAVEPOINT a", "/* x */ ROLLBACK TO a", ""],
)
def test_a_rollback_takes_the_setting_back(java: Java, undo: str) -> None:
    """What is written after it, in the same transaction, still has its lineage."""
    java.writes(INSERT, CAUSE)
    java.run("begin")
    java.writes("INSERT INTO orders VALUES (2, 'x')", OTHER)
    java.run("execute", "SAVEPOINT a")
    java.writes("INSERT INTO orders VALUES (3, 'x')", CAUSE, OTHER)
    if not undo:
        with pytest.raises(StoreError, match="division by zero"):
            java.run("query", "SELECT 1 / 0")
    java.run("execute", undo or "ROLLBACK TO SAVEPOINT a")
    java.writes("INSERT INTO orders VALUES (4, 'x')", CAUSE, OTHER)
    java.run("commit")
    assert java.stored(2) == text_of(OTHER)
    assert java.stored(4) == text_of(CAUSE, OTHER)


def test_a_batch_stores_with_each_row(java: Java) -> None:
    """Outside of a transaction, too."""
    with java.remote.scope(Lineage([CAUSE])):
        java.run("batch", "INSERT INTO orders VALUES (1, 'x');INSERT INTO orders VALUES (2, 'x')")
    assert java.stored(1) == java.stored(2) == text_of(CAUSE)


def test_who_deletes_what_it_reads_in_one_snapshot(java: Java) -> None:
    """Has the lineage of the row that it is shown, and took away."""
    java.writes(INSERT, CAUSE)
    java.run("execute", REPEATABLE)
    java.run("begin")
    with java.remote.scope() as scope:
        java.run("query", "DELETE FROM orders RETURNING *")
        assert CAUSE in scope.lineage
        java.run("commit")


@pytest.mark.parametrize("later", ["DELETE FROM orders", "INSERT INTO orders VALUES (2, 'x')"])
@pytest.mark.parametrize("begins", [False, True], ids=["alone", "transaction"])
def test_rows_that_are_taken_after_another_statement(
    java: Java, later: str, *, begins: bool
) -> None:
    """In one snapshot, and piece by piece: what is done meanwhile hides no lineage."""
    java.writes(INSERT, CAUSE)
    java.run("execute", REPEATABLE)
    if begins:
        java.run("begin")
    with java.remote.scope() as scope:
        java.run("stream", "SELECT * FROM orders")
        java.run("update", later)
        java.run("read_on")
        assert CAUSE in scope.lineage
    if begins:
        java.run("rollback")


def test_a_cursor_shows_lineages_as_rows_are_fetched(java: Java) -> None:
    """Of each row at its fetch."""
    java.writes(INSERT, CAUSE)
    java.writes("INSERT INTO orders VALUES (2, 'x')", OTHER)
    java.run("begin")
    with java.remote.scope() as scope:
        java.run("execute", "DECLARE c CURSOR FOR SELECT * FROM orders ORDER BY id")
        java.run("query", "FETCH 1 FROM c")
        assert CAUSE in scope.lineage
        assert OTHER not in scope.lineage
        java.run("query", "FETCH ALL FROM c")
        assert OTHER in scope.lineage
        java.run("rollback")


@pytest.mark.parametrize("begins", [False, True], ids=["alone", "transaction"])
def test_what_the_driver_returns_of_written_rows(java: Java, *, begins: bool) -> None:
    """Of rows that were there it shows the lineage, of inserted ones nobody's."""
    java.writes(INSERT, CAUSE)
    if begins:
        java.run("begin")
    with java.remote.scope() as scope:
        assert java.run("generated", "INSERT INTO orders VALUES (2, 'x')") == ["2"]
        assert CAUSE not in scope.lineage
        assert java.run("generated", "UPDATE orders SET body = 'y' WHERE id = 1") == ["1"]
        assert CAUSE in scope.lineage


def test_a_refused_question_leaves_the_transaction(java: Java) -> None:
    """What was written before it commits; what was read is marked."""
    java.writes(INSERT, CAUSE)
    java.learned(READ)
    topology = java.clients.topology
    topology.execute(f"REVOKE SELECT ON orders_ap FROM {topology.user}")  # noqa: S608
    java.run("begin")
    java.writes("INSERT INTO orders VALUES (2, 'x')", OTHER)
    with java.remote.scope() as scope:
        java.run("query", READ)
        assert UNSAMPLED in scope.lineage.incomplete
    java.run("commit")
    topology.execute(f"GRANT SELECT ON orders_ap TO {topology.user}")
    assert java.stored(2) == text_of(OTHER)


def test_without_a_migration_nothing_is_written(java: Java) -> None:
    """The error says what to run."""
    java.clients.topology.execute('DROP TRIGGER "0_orders_ap" ON orders')
    with pytest.raises(ConfigurationError, match=r"orders\(id\)"):
        java.run("update", INSERT)
    assert not java.clients.plain(autocommit=True).execute("TABLE orders").fetchall()


def test_a_pool_may_make_its_tables(app: Application, clients: Clients) -> None:
    """As tools that migrate schemas do; what is written to it then says what it lacks."""
    clients.topology.execute("DROP TABLE IF EXISTS made")
    clients.topology.execute(f"GRANT CREATE ON SCHEMA public TO {clients.topology.user}")
    with app.client(app.topology.primary, tables=["made"]) as client:
        client.call("update", "CREATE TABLE made (id int PRIMARY KEY)")
        client.call("query", "SELECT jdbc_add()")
        with pytest.raises(ConfigurationError, match=r"made\(id\)"):
            client.call("update", "INSERT INTO made VALUES (1)")
        client.call("update", "DROP TABLE made")


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize(
    "statement",
    ["SELECT place_order()", "DO $$ BEGIN INSERT INTO orders VALUES (1, 'x'); END $$"],
)
def test_what_does_not_name_its_table_stores(
    java: Java, statement: str, *, autocommit: bool
) -> None:
    """Functions and blocks."""
    java.clients.topology.execute(
        "CREATE OR REPLACE FUNCTION place_order() RETURNS int LANGUAGE sql AS"
        " $$ INSERT INTO orders VALUES (1, 'x') RETURNING id $$"
    )
    if not autocommit:
        java.run("begin")
    with java.remote.scope(Lineage([CAUSE])):
        java.run("execute", statement)
        if not autocommit:
            java.run("commit")
    assert java.stored(1) == text_of(CAUSE)


def test_sql_that_was_prepared_by_the_session(java: Java) -> None:
    """Neither its writes nor its reads name the table, which nobody asked about before."""
    java.run("begin")
    java.run("query", "SELECT 1")
    java.run("execute", "PREPARE put AS INSERT INTO orders VALUES (1, 'x')")
    java.run("execute", "PREPARE show AS SELECT * FROM orders")
    with java.remote.scope(Lineage([CAUSE])):
        java.run("execute", "EXECUTE put")
    with java.remote.scope() as scope:
        java.run("query", "EXECUTE show")
        assert CAUSE in scope.lineage


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO orders VALUES (2, 'y'); UPDATE orders SET body = 'z' RETURNING *",
        "INSERT INTO orders VALUES (2, 'y'); DELETE FROM orders RETURNING *",
        "SELECT E'it\\'s' AS a, * FROM orders WHERE body <> 'y'",
        "SELECT 'a\\b' AS a, * FROM orders WHERE body <> 'y'",
    ],
)
def test_odd_texts_find_lineages(java: Java, statement: str) -> None:
    """Several statements in one; quotes within quotes."""
    java.writes(INSERT, CAUSE)
    java.run("begin")
    with java.remote.scope() as scope:
        java.run("execute", statement)
        java.run("rollback")
        assert CAUSE in scope.lineage


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("bigint", str(-(2**40))),
        ("smallint", "7"),
        ("text", "Zoë 'x\\"),
        ("varchar(20)", ""),
        ("boolean", "true"),
        ("uuid", "{A0EEBC99-9C0B4EF8BB6D-6BB9BD380A11}"),
    ],
)
def test_keys_of_any_kind(
    app: Application, clients: Clients, capsys: pytest.CaptureFixture[str], kind: str, key: str
) -> None:
    """In text and in binary: of rows that are shown, and of those that are gone."""
    make_table(clients, capsys, f"id {kind}, n int, PRIMARY KEY (n, id)")
    one = f"SELECT n, id FROM orders WHERE n = 1 AND id = ?::{kind}"  # noqa: S608
    for options in ("", BINARY):
        with app.client(app.topology.primary, tables=["orders"], url_options=options) as client:
            java = Java(clients, app, client)
            with app.remote.scope(Lineage([CAUSE])):
                insert = f"INSERT INTO orders VALUES (?::{kind}, 1) RETURNING n"  # noqa: S608
                java.run("prepared", insert, key)
            assert java.learned("SELECT n, id FROM orders") == Lineage([CAUSE])
            java.writes("DELETE FROM orders", OTHER)
            assert java.learned(one, key, call="prepared") == Lineage([CAUSE, OTHER])
        clients.topology.execute("TRUNCATE antipode_tombstone")


def test_behind_a_pooler_a_write_needs_a_transaction(app: Application, java: Java) -> None:
    """Elsewhere the setting would be another client's: it is refused before it is sent."""
    topology = app.topology
    with (
        pooled(topology, topology.primary, "transaction") as address,
        app.client(address, tables=["orders"], url_options=PLAIN) as client,
    ):
        behind = Java(java.clients, app, client)
        with pytest.raises(ConfigurationError, match="in a transaction"):
            behind.writes(INSERT, CAUSE)
        behind.run("begin")
        behind.writes(INSERT, CAUSE)
        behind.run("commit")
        assert behind.stored(1) == text_of(CAUSE)
        assert behind.learned(READ) == Lineage([CAUSE])
