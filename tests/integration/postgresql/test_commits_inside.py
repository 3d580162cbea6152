"""What commits within a call, or before another transaction that its text begins: never early.

Whether such a commit waited for its flush nobody can know: it enters by a position that covers it.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import antipode
from antipode import IncompleteLineage

pytest.importorskip("psycopg2")
pytest.importorskip("asyncpg")
pytestmark = pytest.mark.store("postgresql")

from ._clients import DATASTORE, Clients, body  # noqa: E402 - its clients are there
from ._sessions import CLIENTS, Connection  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Iterator

MADE = (
    """CREATE OR REPLACE PROCEDURE quick(to_be text) LANGUAGE plpgsql AS $$ BEGIN
    SET LOCAL synchronous_commit = off; UPDATE posts SET body = to_be; COMMIT; END $$""",
    """CREATE OR REPLACE FUNCTION quickly(to_be text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
    SET LOCAL synchronous_commit = off; UPDATE posts SET body = to_be; RETURN 1; END $$""",
    "CREATE OR REPLACE VIEW quickest AS SELECT quickly('view')",
    "GRANT SELECT ON quickest TO PUBLIC",
)
#: Such commits are flushed after three of these delays at most.
FLUSHED_SOON = {"wal_writer_delay": "30ms"}
UNWAITING = "SET LOCAL synchronous_commit = off"
#: Texts that commit without a wait for the flush, and what the row says after them.
UNWAITED = {
    "CALL quick('procedure')": "procedure",
    "SELECT quickly('function')": "function",
    "DO $$ BEGIN PERFORM quickly('block'); END $$": "block",
    "SELECT * FROM quickest": "view",
    "SELECT 1; SELECT * FROM quickest": "view",
    "SET LOCAL synchronous_commit = off; UPDATE posts SET body = 'text'": "text",
    "BEGIN; SET LOCAL synchronous_commit = off; UPDATE posts SET body = 'all'; COMMIT": "all",
}
INSERT = "INSERT INTO posts VALUES (2, '')"
#: Texts that commit, and leave a transaction open: each of them inserts the row 2.
LEFT_OPEN = (
    f"{INSERT}; COMMIT; BEGIN",
    f"BEGIN; {INSERT}; COMMIT; BEGIN",
    f"BEGIN; {INSERT}; COMMIT AND CHAIN",
    f"BEGIN; {INSERT}; COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ",
    f"{INSERT}; COMMIT; BEGIN; SELECT 'a\\b'",
)


@pytest.fixture(params=CLIENTS)
def writer(request: pytest.FixtureRequest, clients: Clients) -> Iterator[Connection]:
    """A client whose statements commit on their own, and the functions."""
    for made in MADE:
        clients.topology.execute(made)
    with closing(Connection(clients.topology, request.param, autocommit=True)) as one:
        yield one
    clients.topology.execute("DROP VIEW quickest")


def test_a_barrier_waits_for_what_committed_inside(clients: Clients, writer: Connection) -> None:
    """Also where the commit did not wait for its flush, which the session's setting hides."""
    clients.topology.config(FLUSHED_SOON)
    reader = clients.reader(autocommit=True)
    for text, said in UNWAITED.items():
        with antipode.scope() as scope:
            writer.run(text, reads=False)
            antipode.barrier(timeout=15)
            assert (text, body(reader)) == (text, said)
            assert len(scope.lineage) == 1, text


def test_what_committed_inside_and_is_not_flushed_is_in_doubt(
    clients: Clients, writer: Connection
) -> None:
    """A mark stands only where the flush does not come in time."""
    clients.topology.config({"wal_writer_delay": "10s"})

    def doubtful() -> bool:
        with antipode.scope() as scope:
            writer.run("CALL quick('late')", reads=False)
            return (DATASTORE, "in_doubt") in scope.lineage.incomplete

    assert any(doubtful() for _ in range(50))  # Until the delay is in force.


@pytest.mark.parametrize("end", ["ROLLBACK", "SELECT 1; COMMIT"])
def test_what_a_text_committed_before_it_left_a_transaction_open(
    clients: Clients, writer: Connection, end: str
) -> None:
    """It has a position once that transaction is over, however it ends."""
    for text in LEFT_OPEN:
        clients.topology.execute("DELETE FROM posts WHERE id = 2")
        with antipode.scope() as scope:
            writer.run(text, reads=False)
            writer.run(end, reads=False)
            assert (text, len(scope.lineage)) == (text, 1)
            assert not scope.lineage.incomplete
        assert clients.topology.execute("SELECT 1 FROM posts WHERE id = 2")


def test_the_transaction_that_a_text_left_open_is_not_asked(
    clients: Clients, writer: Connection
) -> None:
    """Its snapshot is the application's to take; a lineage that is used meanwhile is in doubt."""
    plain = clients.plain(autocommit=True)
    with antipode.scope() as scope:
        writer.run(f"{INSERT}; COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ", reads=False)
        plain.execute("UPDATE posts SET body = 'later'")
        writer.run("SET TRANSACTION READ ONLY", reads=False)
        rows = writer.run("SELECT body FROM posts WHERE id = 1", reads=True)
        assert rows == [("later",)]
        assert scope.lineage.incomplete == {(DATASTORE, "in_doubt")}
        with pytest.raises(IncompleteLineage):
            antipode.barrier(timeout=1)
        writer.run("ROLLBACK", reads=False)


def test_what_follows_the_rollback_of_a_failed_transaction_enters(
    clients: Clients, writer: Connection
) -> None:
    """In one text: what it inserts is committed."""
    with antipode.scope() as scope:
        writer.run("BEGIN", reads=False)
        with pytest.raises(Exception, match="no_such_table"):
            writer.run("SELECT * FROM no_such_table", reads=False)
        writer.run(f"ROLLBACK; {INSERT}", reads=False)
        assert len(scope.lineage) == 1
    assert clients.topology.execute("SELECT 1 FROM posts WHERE id = 2")


def test_a_read_that_follows_such_a_rollback_is_not_early(
    clients: Clients, writer: Connection
) -> None:
    """Nothing can be asked in a failed transaction, so that its text is refused."""
    other = clients.writer(autocommit=True)
    with antipode.scope():
        writer.run("BEGIN", reads=False)
        with pytest.raises(Exception, match="no_such_table"):
            writer.run("SELECT * FROM no_such_table", reads=False)
        other.execute("UPDATE posts SET body = 'new'")
        antipode.barrier(timeout=15, at="read")
        with pytest.raises(antipode.StaleSnapshot):
            writer.run("ROLLBACK; SELECT body FROM posts", reads=False)
        writer.run("ROLLBACK", reads=False)
        assert writer.run("SELECT body FROM posts", reads=True) == [("new",)]


def piped(connection: Any, *texts: str) -> None:
    """Send *texts* in one pipeline."""
    with connection.pipeline():
        for text in texts:
            connection.execute(text)


@pytest.mark.parametrize("around", [(), ("BEGIN", "COMMIT")])
def test_a_pipelines_commit_that_did_not_wait_is_covered(
    clients: Clients, around: tuple[str, ...]
) -> None:
    """Its setting is the transaction's alone, and shows nowhere after it."""
    clients.topology.config(FLUSHED_SOON)
    writer, reader = clients.writer(autocommit=True), clients.reader(autocommit=True)
    for said in ("first", "later"):  # The first is asked for longer.
        texts = (UNWAITING, f"UPDATE posts SET body = '{said}'")  # noqa: S608 - said above
        with antipode.scope():
            piped(writer, *around[:1], *texts, *around[1:])
            antipode.barrier(timeout=15)
            assert body(reader) == said


def test_a_statement_that_commits_waits_as_its_transaction_had_set(clients: Clients) -> None:
    """COMMIT as the application's own statement, after SET LOCAL."""
    clients.topology.config(FLUSHED_SOON)
    writer, reader = clients.writer(autocommit=True), clients.reader(autocommit=True)
    for said in ("first", "later"):  # As above.
        with antipode.scope():
            for text in ("BEGIN", UNWAITING):
                writer.execute(text)
            writer.execute("UPDATE posts SET body = %s", (said,))
            writer.execute("COMMIT")
            antipode.barrier(timeout=15)
            assert body(reader) == said


def test_a_pipeline_leaves_a_transaction_open(clients: Clients) -> None:
    """What it committed before is asked for after that transaction."""
    writer = clients.writer(autocommit=True)
    with antipode.scope() as scope:
        piped(writer, "BEGIN", INSERT, "COMMIT", "BEGIN")
        assert writer.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        writer.rollback()
        assert len(scope.lineage) == 1
        assert not scope.lineage.incomplete
