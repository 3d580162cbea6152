"""Lineages stored with rows by psycopg 3: what transactions, poolers and odd statements do to them.

A setting that is believed to be there and is not loses a dependency without a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import antipode
from antipode import Lineage
from antipode.shim import encode
from antipode.telemetry import Metric, metrics
from tests.integration.postgresql._beside import (
    BESIDE,
    CAUSE,
    INSERT,
    OTHER,
    READ,
    found,
    make_table,
    texts,
    unread,
    write,
)
from tests.integration.postgresql._clients import DATASTORE
from tests.integration.postgresql.test_pgbouncer import pooled

if TYPE_CHECKING:
    from tests.integration.postgresql._clients import Clients

pytestmark = [pytest.mark.store("postgresql"), pytest.mark.slow]
ONE, TWO = encode(Lineage([CAUSE])), encode(Lineage([OTHER]))


@pytest.fixture
def orders(clients: Clients, capsys: pytest.CaptureFixture[str]) -> Clients:
    """With a migrated table of orders."""
    make_table(clients, capsys, "id int PRIMARY KEY, body text")
    return clients


def by_text(writer: Any) -> None:
    """Roll back to a savepoint."""
    writer.execute("ROLLBACK TO SAVEPOINT a")


def by_commented_text(writer: Any) -> None:
    """The same, after a comment."""
    writer.execute("/* framework='x' */ ROLLBACK TO SAVEPOINT a")


def by_several(writer: Any) -> None:
    """The same, after another statement."""
    writer.execute("SELECT 1; ROLLBACK TO SAVEPOINT a")


def by_error(writer: Any) -> None:
    """The same, after an error."""
    with pytest.raises(psycopg.errors.DivisionByZero):
        writer.execute("SELECT 1 / 0")
    writer.execute("ROLLBACK TO SAVEPOINT a")


@pytest.mark.parametrize("later", [[CAUSE], [CAUSE, OTHER]])
@pytest.mark.parametrize("undo", [by_text, by_commented_text, by_several, by_error])
def test_what_a_savepoint_brings_back(orders: Clients, undo: Any, later: list[Any]) -> None:
    """The setting of before it, of another request, is not taken for that of the session."""
    writer, plain = orders.writer(autocommit=True, **BESIDE), orders.plain(autocommit=True)
    write(writer, INSERT, (1, "x"), CAUSE)
    with writer.transaction():
        with antipode.scope(Lineage([OTHER])):
            writer.execute(INSERT, (2, "x"))
            writer.execute("SAVEPOINT a")
        with antipode.scope(Lineage([CAUSE, OTHER])):
            writer.execute(INSERT, (3, "x"))
            undo(writer)
        with antipode.scope(Lineage(later)):
            writer.execute(INSERT, (4, "x"))
    assert (texts(plain, 2), texts(plain, 4)) == ([TWO], [encode(Lineage(later))])


@pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"])
def test_who_deletes_what_it_reads_in_one_snapshot(orders: Clients, level: str) -> None:
    """Has the lineage of the row that it is shown, and took away."""
    writer = orders.writer(**BESIDE)
    write(writer)
    writer.isolation_level = psycopg.IsolationLevel[level]
    with antipode.scope() as scope:
        taken = writer.execute("DELETE FROM orders RETURNING *").fetchall()
        assert taken == [(1, "x")]
        assert CAUSE in scope.lineage
        writer.commit()


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO orders VALUES (2, 'y'); UPDATE orders SET body = 'z' RETURNING *",
        "INSERT INTO orders VALUES (2, 'y'); DELETE FROM orders RETURNING *",
        "SELECT E'it\\'s' AS a, * FROM orders WHERE body <> 'y'",
        "SELECT 'a\\b' AS a, * FROM orders WHERE body <> 'y'",
    ],
)
def test_odd_texts_find_lineages(orders: Clients, statement: str) -> None:
    """Several statements in one; quotes within quotes."""
    write(orders.writer(**BESIDE))
    reader = orders.writer(**BESIDE)
    with antipode.scope() as scope:
        cursor = reader.execute(statement)
        while cursor.nextset():
            pass
        reader.commit()
        assert CAUSE in scope.lineage


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize(
    "statement",
    [
        b"INSERT INTO orders VALUES (1, '\xff')",
        "SELECT place_order()",
        "DO $$ BEGIN INSERT INTO orders VALUES (1, 'x'); END $$",
        "INSERT INTO carts VALUES (1)",
    ],
)
def test_what_does_not_name_its_table_stores(
    orders: Clients, statement: Any, *, autocommit: bool
) -> None:
    """Texts that nobody can read, functions; triggers of other tables within a transaction."""
    for ddl in (
        (
            "CREATE OR REPLACE FUNCTION place_order() RETURNS int LANGUAGE sql AS"
            " $$ INSERT INTO orders VALUES (1, 'x') RETURNING id $$"
        ),
        (
            "CREATE OR REPLACE FUNCTION cart() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM place_order(); RETURN NULL; END $$"
        ),
        "DROP TABLE IF EXISTS carts",
        "CREATE TABLE carts (id int)",
        f"GRANT ALL ON carts TO {orders.topology.user}",
        "CREATE TRIGGER cart AFTER INSERT ON carts FOR EACH ROW EXECUTE FUNCTION cart()",
    ):
        orders.topology.execute(ddl)
    writer, plain = orders.writer(autocommit=autocommit, **BESIDE), orders.plain(autocommit=True)
    writer.execute("SET client_encoding TO 'LATIN1'")
    writer.commit()
    write(writer, statement, None)
    stored = [] if autocommit and "carts" in str(statement) else [ONE]
    assert texts(plain) == stored


def test_sql_that_was_prepared_by_the_session(orders: Clients) -> None:
    """Neither its writes nor its reads name the table."""
    writer, plain = orders.writer(**BESIDE), orders.plain(autocommit=True)
    writer.execute("PREPARE put AS INSERT INTO orders VALUES (1, 'x')")
    writer.execute("PREPARE show AS SELECT * FROM orders")
    writer.commit()
    write(writer, "EXECUTE put", None)
    assert texts(plain) == [ONE]
    assert found(writer, "EXECUTE show") == Lineage([CAUSE])


def test_a_lock_is_waited_for_before_the_snapshot(orders: Clients) -> None:
    """In REPEATABLE READ: what the table is, is asked with the statement after it."""
    write(orders.writer(**BESIDE))
    reader = orders.writer(readonly_functions=["of_a_shim_that_has_asked_nothing"], **BESIDE)
    reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    reader.execute("SAVEPOINT a")
    reader.execute("LOCK TABLE orders IN ACCESS SHARE MODE")
    orders.plain(autocommit=True).execute("UPDATE orders SET body = 'later'")
    assert reader.execute(READ).fetchone() == (1, "later")
    reader.rollback()


def test_a_refused_question_does_not_lose_a_transaction_silently(orders: Clients) -> None:
    """It fails the transaction, whose COMMIT would then roll back without an error."""
    writer = orders.writer(**BESIDE)
    write(writer)
    found(writer)
    orders.topology.execute(f"REVOKE SELECT ON orders_ap FROM {orders.topology.user}")  # noqa: S608
    writer.execute(INSERT, (2, "x"))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        writer.execute(READ)
    writer.rollback()
    writer.autocommit = True
    with antipode.scope() as scope:
        assert writer.execute(READ).fetchone() == (1, "x")
        assert (DATASTORE, "unsampled") in scope.lineage.incomplete


@pytest.mark.parametrize("count", [1000, 1001])
def test_many_keys_that_are_sought(orders: Clients, count: int) -> None:
    """A deletion among 1,000 is found; of more keys it is counted that some are not asked for."""
    writer = orders.writer(**BESIDE)
    write(writer, INSERT, (count, "x"))
    write(writer, "DELETE FROM orders WHERE id = %s", (count,))
    before = unread()
    keys = ", ".join(str(key) for key in range(1, count + 1))
    lineage = found(writer, f"SELECT * FROM orders WHERE id IN ({keys})")  # noqa: S608
    assert (CAUSE in lineage, unread() - before) == ((True, 0) if count == 1000 else (False, 1))


@pytest.mark.parametrize("blocks", [False, True])
def test_many_at_once_behind_a_pooler(orders: Clients, *, blocks: bool) -> None:
    """What goes as a pipeline, such as `executemany`, begins its transaction with the lineage."""
    topology, plain = orders.topology, orders.plain(autocommit=True)
    with pooled(topology, topology.primary, "transaction") as address:
        writer = orders.writer(address, **BESIDE)
        for key, cause in ((1, CAUSE), (3, OTHER)):
            with antipode.scope(Lineage([cause])):
                if blocks:
                    with writer.pipeline():
                        writer.execute(INSERT, (key, "x"))
                        writer.execute(INSERT, (key + 1, "x"))
                else:
                    writer.cursor().executemany(INSERT, [(key, "x"), (key + 1, "x")])
                writer.commit()
        assert texts(plain, 1) == texts(plain, 2) == [ONE]
        assert texts(plain, 3) == texts(plain, 4) == [TWO]
        orders.close()


@pytest.mark.parametrize("autocommit", [False, True])
def test_transactions_in_one_pipeline(orders: Clients, *, autocommit: bool) -> None:
    """A setting that ended with its transaction is not believed in the next: it is counted."""
    writer, plain = orders.writer(autocommit=autocommit, **BESIDE), orders.plain(autocommit=True)
    counted = Metric("unstored_lineage", DATASTORE)
    before = metrics().get(counted, 0)
    with antipode.scope(Lineage([CAUSE])):
        with writer.pipeline():
            for key in (1, 2, 3):
                with writer.transaction():
                    writer.execute(INSERT, (key, "x"))
        writer.commit()
    stored = [key for key in (1, 2, 3) if CAUSE.key in str(texts(plain, key))]
    assert len(stored) + metrics().get(counted, 0) - before == 3
