"""Lineages stored with the application's own rows, by psycopg 3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row

import antipode
from antipode import ConfigurationError, Lineage
from antipode.shim import encode
from antipode_shims import postgresql
from antipode_testing import LagProxy
from tests.integration.postgresql._beside import (
    BESIDE,
    CAUSE,
    INSERT,
    OTHER,
    READ,
    found,
    grave,
    make_table,
    moving,
    texts,
    unread,
    write,
)
from tests.integration.postgresql._clients import DATASTORE, Exchanges, failing_pipeline

if TYPE_CHECKING:
    from tests.integration.postgresql._clients import Clients

pytestmark = pytest.mark.store("postgresql")


@pytest.fixture
def orders(clients: Clients, capsys: pytest.CaptureFixture[str]) -> Clients:
    """With a migrated table of orders."""
    make_table(clients, capsys, "id int PRIMARY KEY, body text")
    return clients


@pytest.mark.parametrize("autocommit", [False, True])
def test_a_reader_depends_on_what_its_writer_did(orders: Clients, *, autocommit: bool) -> None:
    """At the primary and at the standby; the position of the read covers it."""
    writer = orders.writer(autocommit=autocommit, **BESIDE)
    write(writer)
    assert found(writer) == Lineage([CAUSE])
    orders.topology.wait_replicated()
    reader = orders.reader(autocommit=autocommit, **BESIDE)
    assert found(reader) == Lineage([CAUSE])


@pytest.mark.parametrize("autocommit", [False, True])
def test_each_write_has_its_own_requests_lineage(orders: Clients, *, autocommit: bool) -> None:
    """Also after others of the same connection, and after transactions that were rolled back."""
    writer, plain = orders.writer(autocommit=autocommit, **BESIDE), orders.plain(autocommit=True)
    write(writer, INSERT, (1, "x"), CAUSE)
    write(writer, INSERT, (2, "x"), OTHER)
    assert texts(plain, 1) == [encode(Lineage([CAUSE]))]
    assert texts(plain, 2) == [encode(Lineage([OTHER]))]
    with antipode.scope(Lineage([CAUSE])):
        writer.execute(INSERT, (3, "x"))
        writer.rollback()
    write(writer, INSERT, (4, "x"), CAUSE)
    assert texts(plain, 4) == [encode(Lineage([CAUSE]))]
    write(writer, INSERT, (6, "x"), CAUSE)
    assert texts(plain, 6) == [encode(Lineage([CAUSE]))]
    writer.execute(INSERT, (5, "x"))
    writer.commit()
    assert texts(plain, 5) == [encode(Lineage())]


def by_statements(writer: Any) -> None:
    """Write, and roll back to before it."""
    writer.execute("SAVEPOINT a")
    writer.execute(INSERT, (1, "x"))
    writer.execute("ROLLBACK TO SAVEPOINT a")


def by_block(writer: Any) -> None:
    """The same by the client's own block."""
    with writer.transaction(force_rollback=True):
        writer.execute(INSERT, (1, "x"))


def by_error(writer: Any) -> None:
    """The same by an error in one."""
    with pytest.raises(psycopg.errors.UniqueViolation), writer.transaction():
        writer.cursor().executemany(INSERT, [(1, "x"), (1, "x")])


def by_chain(writer: Any) -> None:
    """A transaction after another, in one statement."""
    writer.execute(INSERT, (1, "x"))
    writer.execute("ROLLBACK AND CHAIN")


@pytest.mark.parametrize("undo", [by_statements, by_block, by_error, by_chain])
def test_a_rollback_takes_the_setting_back(orders: Clients, undo: Any) -> None:
    """What is written after it, in the same transaction, still has its lineage."""
    writer, plain = orders.writer(**BESIDE), orders.plain(autocommit=True)
    with antipode.scope(Lineage([CAUSE])):
        writer.execute("SELECT 1")
        undo(writer)
        writer.execute(INSERT, (2, "x"))
        writer.commit()
    assert plain.execute("SELECT id FROM orders").fetchall() == [(2,)]
    assert texts(plain, 2) == [encode(Lineage([CAUSE]))]


def test_updates_merge_and_deletions_are_found(orders: Clients) -> None:
    """Of plain clients too; a tombstone has what the row had."""
    writer, plain = orders.writer(**BESIDE), orders.plain(autocommit=True)
    write(writer)
    write(writer, "UPDATE orders SET body = %s WHERE id = %s", ("y", 1), OTHER)
    assert found(writer) == Lineage([CAUSE, OTHER])
    plain.execute("UPDATE orders SET body = 'z'")
    assert found(writer) == Lineage([CAUSE, OTHER])
    write(writer, "DELETE FROM orders WHERE id = %s", (1,), moving(9))
    assert grave(plain)


def text_alone(factory: Any, statement: str, *, binary: bool) -> bool:
    """Whether this cursor sends no such statement: it knows text alone."""
    return factory is psycopg.ClientCursor and (binary or "%b" in statement)


@pytest.mark.slow
@pytest.mark.pairwise(
    skips=lambda of: text_alone(of["factory"], of["statement"], binary=of["binary"])
)
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(
    ("statement", "values"),
    [
        (READ, None),
        ("SELECT body FROM orders WHERE orders.id = %s", (1,)),
        ('SELECT * FROM "orders" WHERE "orders"."id" IN (%s, %s)', (7, 1)),
        ("SELECT * FROM orders o WHERE body > 'a' AND o.id = %(key)s::int", {"key": 1}),
        ("SELECT count(*) FROM orders WHERE id = '01'", None),
        ("SELECT body FROM orders WHERE id = %b", (1,)),
    ],
)
@pytest.mark.parametrize("factory", [psycopg.Cursor, psycopg.ClientCursor])
def test_who_finds_nothing_depends_on_the_deletion(
    orders: Clients, factory: Any, statement: str, values: Any, *, binary: bool
) -> None:
    """A row that is sought by its whole key, with literals or parameters."""
    if text_alone(factory, statement, binary=binary):
        pytest.skip("it knows text alone")
    writer = orders.writer(**BESIDE)
    writer.cursor_factory = factory
    write(writer)
    write(writer, "DELETE FROM orders WHERE id = %s", (1,), OTHER)
    assert found(writer, statement, values, **({"binary": True} if binary else {})) == Lineage(
        [CAUSE, OTHER]
    )


def test_a_row_that_goes_between_the_read_and_the_question(orders: Clients) -> None:
    """Its lineage is found among the deletions, also where another row is there by then."""
    writer, reader = orders.writer(**BESIDE), orders.writer(autocommit=True, **BESIDE)
    write(writer)
    found(reader)
    asks = type(reader)._antipode_ask

    def late(text: str) -> Any:
        plain = orders.plain(autocommit=True)
        plain.execute("DELETE FROM orders")
        plain.execute("INSERT INTO orders VALUES (1, 'again')")
        return asks(reader, text)

    reader._antipode_ask = late
    assert found(reader) == Lineage([CAUSE])
    del reader._antipode_ask


def test_a_connection_that_is_lost_before_the_question(orders: Clients) -> None:
    """The read was answered, and its lineage is not: it is marked."""
    with LagProxy(orders.topology.primary) as link:
        reader = orders.writer(link.address, autocommit=True, **BESIDE)
        write(reader)
        found(reader)
        asks = type(reader)._antipode_ask

        def late(text: str) -> Any:
            link.cut()
            return asks(reader, text)

        reader._antipode_ask = late
        with antipode.scope() as scope:
            assert reader.execute(READ).fetchall() == [(1, "x")]
            assert (DATASTORE, "unsampled") in scope.lineage.incomplete
        orders.close()


@pytest.mark.slow
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(
    "statement",
    [
        READ,
        b"SELECT body, id FROM orders",
        sql.SQL("SELECT id AS other FROM public.orders o"),
        'SELECT "orders"."id", "orders"."body" FROM "orders" WHERE "orders"."id" = 1',
        "SELECT o.id, c.n FROM orders o JOIN (VALUES (1)) AS c (n) ON c.n = o.id",
        "SELECT id, count(*) FROM orders GROUP BY id",
        "SELECT s.id FROM (SELECT id FROM orders) AS s",
        "WITH s AS (SELECT * FROM orders) SELECT * FROM s",
        "UPDATE orders SET body = 'z' RETURNING id",
        "SELECT * FROM orders FOR UPDATE",
        "TABLE orders",
        "SELECT c.n, o.id FROM (VALUES (1), (2)) AS c (n) LEFT JOIN orders o ON o.id = c.n",
    ],
)
def test_what_shows_the_key_finds_the_lineage(
    orders: Clients, statement: Any, *, binary: bool
) -> None:
    """However it is written, and whatever its columns are called."""
    writer = orders.writer(**BESIDE)
    write(writer)
    before = unread()
    with antipode.scope() as scope:
        assert writer.execute(statement, binary=binary).fetchall()
        writer.rollback()
        assert CAUSE in scope.lineage
    assert unread() == before


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT body FROM orders",
        "SELECT count(*) FROM orders",
        "SELECT id FROM orders UNION SELECT 2",
        "SELECT id + 0 FROM orders",
        "SELECT 1 WHERE EXISTS (SELECT FROM orders)",
        "SELECT a.id, b.body FROM orders a JOIN orders b ON a.id = b.id",
    ],
)
def test_what_hides_the_rows_is_counted(orders: Clients, statement: str) -> None:
    """It has a position that covers it, and says that the lineages are not read."""
    writer = orders.writer(**BESIDE)
    write(writer)
    before = unread()
    assert set(found(writer, statement)) <= {CAUSE}
    assert unread() == before + 1
    writer.execute("UPDATE orders SET body = 'z' RETURNING body")
    assert unread() == before + 2


def test_what_is_read_through_a_view_is_counted(orders: Clients) -> None:
    """Over other views, too; and what is written through one has its lineage."""
    topology = orders.topology
    for name, rows in (("seen", "orders"), ("seen_twice", "seen")):
        topology.execute(f"CREATE VIEW {name} AS SELECT * FROM {rows}")  # noqa: S608 - above
        topology.execute(f"GRANT ALL ON {name} TO {topology.user}")
    try:
        writer, before = orders.writer(autocommit=True, **BESIDE), unread()
        for number, name in enumerate(("seen", "seen_twice")):
            writer.execute(f"SELECT * FROM {name}").fetchall()  # noqa: S608 - above
            assert unread() == before + number + 1
        with antipode.scope(Lineage([CAUSE])):
            writer.execute("INSERT INTO seen VALUES (1, 'x')")
        writer.execute("SELECT 1")
        assert unread() == before + 2
        assert texts(orders.plain(autocommit=True), 1) == [encode(Lineage([CAUSE]))]
    finally:
        topology.execute("DROP VIEW seen CASCADE")


def test_server_cursors_and_streams(orders: Clients) -> None:
    """Rows count when they are fetched; in the middle of a stream nobody can ask."""
    writer = orders.writer(**BESIDE)
    for key, cause in enumerate((CAUSE, OTHER)):
        write(writer, INSERT, (key, "x"), cause)
    with antipode.scope() as scope:
        with writer.cursor("named", row_factory=dict_row) as cursor:
            cursor.execute("SELECT * FROM orders ORDER BY id")
            assert CAUSE not in scope.lineage
            assert cursor.fetchone()["id"] == 0
            assert CAUSE in scope.lineage
            assert OTHER not in scope.lineage
            cursor.fetchall()
            assert OTHER in scope.lineage
        writer.commit()
    with antipode.scope() as scope:
        for _ in writer.cursor().stream("SELECT * FROM orders ORDER BY id"):
            pass
        assert {CAUSE, OTHER} <= set(scope.lineage)
        assert not scope.lineage.incomplete
        writer.commit()
    with antipode.scope() as scope:
        rows = writer.cursor().stream("SELECT * FROM orders ORDER BY id")
        next(rows)
        assert scope.lineage.incomplete == {(DATASTORE, "unsampled")}
        list(rows)
        writer.commit()
        assert {CAUSE, OTHER} <= set(scope.lineage)


def test_bulk_writes_and_reads(orders: Clients) -> None:
    """`executemany`, COPY, and thousands of rows."""
    writer = orders.writer(**BESIDE)
    with antipode.scope(Lineage([CAUSE])):
        writer.cursor().executemany(INSERT, [(key, "x") for key in range(3000)])
        writer.commit()
    with antipode.scope(Lineage([OTHER])):
        with writer.cursor().copy("COPY orders FROM STDIN") as copy:
            copy.write_row((3000, "x"))
        writer.commit()
    assert found(writer, "SELECT * FROM orders") == Lineage([CAUSE, OTHER])
    assert found(writer, "SELECT * FROM orders WHERE id > 2999") == Lineage([OTHER])


def test_what_leaves_no_result_is_counted(orders: Clients) -> None:
    """COPY, and rows that go into other tables: their reads are covered."""
    writer = orders.writer(**BESIDE)
    write(writer)
    for statement in (
        "CREATE TEMP TABLE other AS SELECT * FROM orders",
        "INSERT INTO other SELECT * FROM orders",
        "INSERT INTO other TABLE orders",
    ):
        before = unread()
        with antipode.scope() as scope:
            writer.execute(statement)
            assert [each.covering for each in scope.lineage] == [True], statement
        assert unread() == before + 1
    before = unread()
    with antipode.scope() as scope, writer.cursor().copy("COPY orders TO STDOUT") as copy:
        assert list(copy)
    assert [each.covering for each in scope.lineage] == [True]
    assert unread() == before + 1
    before = unread()
    writer.execute("INSERT INTO orders VALUES (5, 'x') RETURNING id")
    writer.execute("UPDATE orders SET body = 'y' WHERE id = 5")
    assert unread() == before


def test_prepared_statements(orders: Clients) -> None:
    """The server describes their results once; their rows count each time."""
    writer = orders.writer(**BESIDE)
    write(writer)
    for _ in range(3):
        assert found(writer, "SELECT * FROM orders WHERE id = %s", (1,), prepare=True) == Lineage(
            [CAUSE]
        )


def test_pipelines(orders: Clients) -> None:
    """What is read there is marked; what is written has its lineage where nothing is in flight."""
    writer, plain = orders.writer(**BESIDE), orders.plain(autocommit=True)
    with antipode.scope(Lineage([CAUSE])) as scope:
        with writer.pipeline():
            writer.execute(INSERT, (1, "x"))
            writer.execute(INSERT, (2, "x"))
            cursor = writer.execute(READ)
        assert cursor.fetchall() == [(1, "x")]
        writer.commit()
        assert (DATASTORE, "unsampled") in scope.lineage.incomplete
    assert texts(plain, 1) == texts(plain, 2) == [encode(Lineage([CAUSE]))]


def test_each_write_of_a_pipeline_has_its_own_requests_lineage(orders: Clients) -> None:
    """On a connection whose session still has what another request left."""
    writer, plain = orders.writer(autocommit=True, **BESIDE), orders.plain(autocommit=True)
    for key, cause in ((1, CAUSE), (3, OTHER), (5, CAUSE)):
        write(writer, INSERT, (key, "x"), OTHER if cause is CAUSE else CAUSE)
        with antipode.scope(Lineage([cause])), writer.pipeline():
            writer.execute("SELECT 1")
            writer.execute(INSERT, (key + 1, "x"))
        assert texts(plain, key + 1) == [encode(Lineage([cause]))]


def test_a_setting_of_a_pipeline_that_failed_is_not_believed(orders: Clients) -> None:
    """It was undone with the transaction that the pipeline was."""
    writer, plain = orders.writer(autocommit=True, **BESIDE), orders.plain(autocommit=True)
    write(writer, INSERT, (1, "x"), OTHER)
    with antipode.scope(Lineage([CAUSE])):
        with failing_pipeline(writer):
            writer.execute("SELECT 1")
            writer.execute(INSERT, (2, "x"))
            writer.execute("SELECT 1 / 0")
        writer.execute(INSERT, (3, "x"))
    assert texts(plain, 3) == [encode(Lineage([CAUSE]))]


@pytest.mark.parametrize("statement", ["SELECT body FROM orders WHERE id = %s", READ])
@pytest.mark.parametrize("autocommit", [False, True])
def test_who_reads_often_is_told_as_often(
    orders: Clients, statement: str, *, autocommit: bool
) -> None:
    """The client prepares from the sixth time on: the cause is found of what is deleted, too."""
    writer = orders.writer(autocommit=autocommit, **BESIDE)
    values = (1,) if "%s" in statement else None
    write(writer)
    assert [found(writer, statement, values) for _ in range(10)] == [Lineage([CAUSE])] * 10
    write(writer, "DELETE FROM orders WHERE id = %s", (1,), OTHER)
    expected = [Lineage([CAUSE, OTHER])] * 10
    assert [found(writer, statement, values) for _ in range(10)] == expected


def test_a_read_that_fails_depends_on_nothing(orders: Clients) -> None:
    """And the transaction fails as a plain client's does."""
    writer = orders.writer(**BESIDE)
    write(writer)
    with antipode.scope() as scope:
        with pytest.raises(psycopg.errors.DivisionByZero):
            writer.execute("SELECT id / 0 FROM orders")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            writer.execute(READ)
        writer.rollback()
        assert scope.lineage == Lineage()


def test_a_write_opens_its_transaction_in_one_packet(orders: Clients) -> None:
    """Its lineage goes with the BEGIN, and in REPEATABLE READ takes no snapshot."""
    with LagProxy(orders.topology.primary) as counted:
        plain, writer = orders.plain(counted.address), orders.writer(counted.address, **BESIDE)
        cost = []
        for each in (plain, writer):
            exchanges = Exchanges(counted)
            for key in range(5):
                with antipode.scope(Lineage([moving(key)])), exchanges():
                    each.execute("DELETE FROM orders")
                    each.execute(INSERT, (1, "x"))
                    each.commit()
            cost.append(exchanges.fewest)
        assert cost[0] == cost[1]
        writer.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with antipode.scope(Lineage([CAUSE])):
            writer.execute("UPDATE orders SET body = 'y'")
            writer.commit()
        assert texts(orders.plain(autocommit=True))[0] == encode(Lineage([CAUSE]))
        orders.close()


def test_one_question_for_a_read(orders: Clients) -> None:
    """For the lineages of its rows, and the position."""
    with LagProxy(orders.topology.primary) as counted:
        writer = orders.writer(counted.address, autocommit=True, **BESIDE)
        write(writer)
        # The first of other tables asks for views, once a minute.
        for read, cost in ((lambda: found(writer), 2), (lambda: writer.execute("SELECT 1"), 1)):
            exchanges = Exchanges(counted)
            for _ in range(4):
                with exchanges():
                    read()
            assert exchanges.fewest == cost
        orders.close()


def test_uninstrumented_it_is_plain_again(orders: Clients) -> None:
    """Its later writes store nothing."""
    writer, plain = orders.writer(autocommit=True, **BESIDE), orders.plain(autocommit=True)
    write(writer)
    postgresql.uninstrument_connection(writer)
    writer.execute(INSERT, (2, "x"))
    assert texts(plain, 2) == []
    assert type(writer) is psycopg.Connection


def test_reads_may_be_ignored(orders: Clients) -> None:
    """Nothing is asked, and nothing enters."""
    writer = orders.writer(on_read="ignore", **BESIDE)
    write(writer)
    with antipode.scope() as scope:
        writer.execute(READ).fetchall()
        writer.commit()
        assert scope.lineage == Lineage()


def test_what_was_not_migrated_is_an_error(orders: Clients) -> None:
    """Which names what to run, before the statement is sent; as are other clients."""
    orders.topology.execute("DROP TABLE IF EXISTS plain")
    orders.topology.execute("CREATE TABLE plain (id int PRIMARY KEY)")
    writer = orders.writer(lineage="beside", tables=["plain"])
    with pytest.raises(ConfigurationError, match=r"lacks the side table plain_ap.*migration plain"):
        writer.execute("INSERT INTO plain VALUES (1)")
    assert writer.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    with pytest.raises(ConfigurationError, match="tables="):
        orders.writer(lineage="beside")
    orders.topology.execute("DROP TABLE plain")
    psycopg2 = pytest.importorskip("psycopg2")
    made = postgresql.connection_factory(datastore=DATASTORE, **BESIDE)
    with pytest.raises(ConfigurationError, match="psycopg 3"):
        psycopg2.connect(orders.topology.url(), connection_factory=made)


@pytest.mark.slow
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("bigint", -(2**40)),
        ("smallint", 7),
        ("text", "Zoë 'x\\"),
        ("varchar(20)", ""),
        ("boolean", True),
        ("uuid", UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
    ],
)
def test_keys_of_any_kind(
    clients: Clients, capsys: pytest.CaptureFixture[str], kind: str, key: object, *, binary: bool
) -> None:
    """In text and in binary, in the client's own encoding, whatever backslashes mean to it."""
    make_table(clients, capsys, f"id {kind}, n int, PRIMARY KEY (n, id)")
    writer = clients.writer(**BESIDE)
    write(writer, "INSERT INTO orders VALUES (%s, 1)", (key,))
    statement = "SELECT id, n FROM orders"
    assert found(writer, statement, binary=binary) == Lineage([CAUSE])
    writer.execute("SET client_encoding TO 'LATIN1'")
    writer.execute("SET standard_conforming_strings TO off")
    writer.commit()
    assert found(writer, statement, binary=binary) == Lineage([CAUSE])


async def test_asyncio(orders: Clients) -> None:
    """The same: writes, reads, cursors, streams."""
    connection = await psycopg.AsyncConnection.connect(orders.topology.url())
    postgresql.instrument_connection(connection, datastore=DATASTORE, **BESIDE)
    async with connection:
        with antipode.scope(Lineage([CAUSE])):
            await connection.execute(INSERT, (1, "x"))
            await connection.commit()
        await connection.set_autocommit(True)
        with antipode.scope(Lineage([OTHER])):
            await connection.execute(INSERT, (2, "x"))
        await connection.set_autocommit(False)
        with antipode.scope() as scope:
            await (await connection.execute(READ)).fetchall()
            assert CAUSE in scope.lineage
            assert OTHER not in scope.lineage
            async with connection.cursor("named") as cursor:
                await cursor.execute("SELECT * FROM orders WHERE id = 2")
                assert await cursor.fetchall() == [(2, "x")]
            assert OTHER in scope.lineage
            assert not scope.lineage.incomplete
        with antipode.scope() as scope:
            async for _ in connection.cursor().stream("SELECT * FROM orders"):
                pass
            assert {CAUSE, OTHER} <= set(scope.lineage)
        await connection.commit()


def test_in_repeatable_read(orders: Clients) -> None:
    """What lies beside a row is of the snapshot that the row is of."""
    writer, reader = orders.writer(**BESIDE), orders.writer(**BESIDE)
    write(writer)
    reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    with antipode.scope() as scope:
        reader.execute(READ).fetchall()
        write(writer, "UPDATE orders SET body = %s WHERE id = %s", ("y", 1), OTHER)
        reader.execute(READ).fetchall()
        reader.commit()
        assert CAUSE in scope.lineage
        assert OTHER not in scope.lineage


def test_a_table_that_is_made_anew(orders: Clients, capsys: pytest.CaptureFixture[str]) -> None:
    """Is another to the server: until it is asked again, that is counted, never silent."""
    writer = orders.writer(**BESIDE)
    write(writer)
    found(writer)
    make_table(orders, capsys, "id int PRIMARY KEY, body text")
    write(writer)
    before = unread()
    missed = found(writer, "SELECT * FROM orders") == Lineage()
    assert unread() == before + missed
