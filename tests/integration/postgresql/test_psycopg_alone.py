"""psycopg 3: writes that commit alone, whose position is asked for in the same flush."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import antipode
from antipode_shims import postgresql
from antipode_testing import wait_until
from tests.integration.postgresql._clients import DATASTORE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.integration.postgresql._clients import Clients

pytestmark = pytest.mark.store("postgresql")
#: A statement, its values, and the options of `execute`.
Step = tuple[str, "Sequence[Any]", dict[str, Any]]
INSERT, NOISY = "INSERT INTO posts VALUES (%s, %s)", "INSERT INTO noisy VALUES (%s)"
UPDATE = "UPDATE posts SET body = %s WHERE id = %s"
STEPS: tuple[Step, ...] = (
    *((INSERT + " RETURNING id, body", (number, "x"), {}) for number in range(2, 10)),
    (INSERT, (2, "again"), {}),
    (INSERT, (object(), "x"), {}),
    (INSERT, (20,), {}),
    ("INSERT INTO posts VALUES (%s, %s, 1)", (20, "x"), {}),
    ("INSERT INTO posts VALUES (%s, %s, 1)", (20, "x"), {"prepare": True}),
    ("UPDATE posts SET body = %s WHERE id < %s", ("y", 5), {"prepare": True}),
    ("UPDATE posts SET body = %s WHERE id < %s", ("y", 0), {"binary": True}),
    ("DELETE FROM posts WHERE id = %s", (9,), {}),
    ("DELETE FROM posts WHERE id = %s; SELECT 1", (8,), {}),
    ("INSERT INTO late VALUES (%s), (1)", (1,), {}),
    ("INSERT INTO late VALUES (%s), (1)", (1,), {"prepare": True}),
    ("INSERT INTO late VALUES (%s)", (1,), {}),
    (NOISY, (1,), {}),
    (NOISY, (0,), {}),
    ("UPDATE posts SET body = 'z' WHERE id = %s / 0", (1,), {}),
    ("INSERT INTO no_such_table VALUES (%s)", (1,), {}),
    ("INSERT INTO posts SELECT n, repeat('x', 9999) FROM generate_series(%s, 200) n", (100,), {}),
    ("UPDATE posts SET body = %s WHERE id = 1", ("x" * 300_000,), {}),
)
TABLES = """
DROP TABLE IF EXISTS late, noisy;
CREATE TABLE late (n int UNIQUE DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE noisy (n int);
CREATE OR REPLACE FUNCTION says() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
RAISE NOTICE 'said %', NEW.n; NOTIFY heard; PERFORM 1 / NEW.n; RETURN NEW; END $$;
CREATE TRIGGER noisy BEFORE INSERT ON noisy FOR EACH ROW EXECUTE FUNCTION says();
"""


@pytest.fixture
def connections(clients: Clients) -> Iterator[dict[str, Any]]:
    """One that is plain and one that is instrumented, both before an empty table each time."""
    made = {"plain": clients.plain(autocommit=True), "ours": clients.writer(autocommit=True)}
    for each in made.values():
        each.prepared_max = 2  # So that statements are forgotten, which sends something more.
        each.execute("LISTEN heard")
    yield made
    made["plain"].execute("DROP TABLE IF EXISTS late, noisy")


def played(connection: Any) -> list[Any]:
    """What a client sees of each step."""
    connection.execute("DELETE FROM posts WHERE id > 1")
    connection.execute(TABLES)
    seen: list[Any] = []
    connection.add_notice_handler(lambda notice: seen.append(notice.message_primary))
    connection.add_notify_handler(lambda notify: seen.append(notify.channel))
    for sql, values, options in STEPS:
        cursor = connection.cursor()
        try:
            cursor.execute(sql, values, **options)
        except psycopg.Error as error:
            seen.append((type(error), error.sqlstate, str(error)))
        else:
            seen.append(cursor.fetchall() if cursor.description else None)
        seen.append((cursor.rowcount, cursor.statusmessage, connection.info.transaction_status))
    seen.append(connection.execute("SELECT * FROM posts ORDER BY id").fetchall())
    seen.append(connection.execute("SELECT * FROM late").fetchall())
    return seen


def test_nothing_differs_from_the_plain_client(connections: dict[str, Any]) -> None:
    """Rows, counts, errors (of a commit, too), notices and notifications of writes are the same."""
    plain = played(connections["plain"])
    with antipode.scope():
        assert played(connections["ours"]) == plain


def test_each_write_has_its_position(connections: dict[str, Any]) -> None:
    """Also as the client prepares it, and forgets others; what fails enters nothing."""
    ours = connections["ours"]
    ours.execute(TABLES)
    for sql, values, options in STEPS:
        if ";" in sql:
            continue  # Nobody knows what of several statements has committed.
        with antipode.scope() as scope:
            try:
                cursor = ours.execute(sql, values, **options)
            except psycopg.Error:
                assert not list(scope.lineage)
            else:
                (write,) = scope.lineage
                assert write.covering == (cursor.rowcount == 0)
            assert not scope.lineage.incomplete


def test_asyncio(clients: Clients) -> None:
    """The same of asyncio: twenty writes, each with its position."""

    async def write() -> None:
        url = clients.topology.url()
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as plain:
            ours = postgresql.instrument_connection(plain, datastore=DATASTORE)
            for number in range(20):
                with antipode.scope() as scope:
                    await ours.execute(INSERT, (1000 + number, "x"))
                    assert len(scope.lineage) == 1
                    assert not scope.lineage.incomplete

    asyncio.run(write())


def test_the_answer_of_a_cancelled_write_is_no_other_ones(clients: Clients) -> None:
    """What came with a write that was cancelled says nothing of the next one."""
    other, sees = clients.writer(), clients.plain(autocommit=True)
    url = clients.topology.url()

    def waits() -> bool:
        sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        return bool(sees.execute(sql).fetchone() == (1,))

    async def cancelled_and_next() -> Any:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as plain:
            ours = postgresql.instrument_connection(plain, datastore=DATASTORE)
            other.execute("UPDATE posts SET body = 'locked' WHERE id = 1")
            with antipode.scope():
                task = asyncio.ensure_future(ours.execute(UPDATE, ("x", 1)))
                await asyncio.to_thread(wait_until, waits, what="its lock", timeout_s=30)
                task.cancel()
                await asyncio.wait({task})
            with antipode.scope() as before:
                other.commit()
            with antipode.scope() as after:
                await ours.execute("UPDATE posts SET body = 'y' WHERE id = 1")
            return before.lineage, after.lineage

    before, after = asyncio.run(cancelled_and_next())
    ((first,), (second,)) = (before, after)
    assert first.version < second.version
