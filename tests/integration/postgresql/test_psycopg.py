"""psycopg 3 on a primary and a standby: positions after commits, reads that wait."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import antipode
from antipode import BarrierTimeout, Lineage, StaleSnapshot
from antipode_shims import postgresql
from antipode_testing import LagProxy, wait_until
from tests.integration._stale import doubtful, served
from tests.integration.postgresql._clients import (
    DATASTORE,
    REPEATABLE,
    TAKE_NONE,
    TAKES_ONE,
    Exchanges,
    body,
    failing_pipeline,
)

if TYPE_CHECKING:
    from tests.integration.postgresql._clients import Clients

pytestmark = pytest.mark.store("postgresql")
UPDATE = "UPDATE posts SET body = %s WHERE id = 1"
INSERT = "INSERT INTO posts VALUES (%s, %s) RETURNING id"


def writes(scope: Any) -> list[Any]:
    """The entries of a scope, which is complete."""
    assert not scope.lineage.incomplete, scope.lineage
    return sorted(scope.lineage, key=str)


@pytest.mark.parametrize("autocommit", [False, True])
def test_a_read_at_the_standby_waits_for_the_write(clients: Clients, *, autocommit: bool) -> None:
    """After `at="read"` and after `at="now"` the standby shows what the primary committed."""
    writer, reader = clients.writer(autocommit=autocommit), clients.reader(autocommit=autocommit)
    clients.topology.set_lag(100)
    for number, at in enumerate(("read", "now", "read")):
        with antipode.scope() as scope:
            writer.execute(UPDATE, (str(number),))
            writer.commit()
            (write,) = writes(scope)
            assert not write.covering
            antipode.barrier(timeout=15, at=at)
            assert body(reader) == str(number)
            reader.commit()


def test_a_commit_costs_no_round_trip_more(clients: Clients) -> None:
    """Its questions go with it; after what is sent by the simple protocol, commits alone, one."""
    with LagProxy(clients.topology.primary) as counted:
        for autocommit, factory, values, more in (
            (False, psycopg.Cursor, ("x",), 0),
            (True, psycopg.Cursor, ("x",), 0),
            (True, psycopg.ClientCursor, ("x",), 1),
            (True, psycopg.Cursor, None, 1),
        ):
            cost = []
            for each in (
                clients.plain(counted.address, autocommit=autocommit),
                clients.writer(counted.address, autocommit=autocommit),
            ):
                each.cursor_factory = factory
                exchanges = Exchanges(counted)
                for _ in range(4):
                    with antipode.scope(), exchanges():
                        each.execute(UPDATE if values else UPDATE.replace("%s", "'x'"), values)
                        each.commit()
                cost.append(exchanges.fewest)
            assert cost[1] == cost[0] + more
        clients.close()


def test_what_was_not_committed_enters_nothing(clients: Clients) -> None:
    """A rollback, a failed transaction's COMMIT, a refused statement, a read, settings."""
    writer, alone = clients.writer(), clients.writer(autocommit=True)
    with antipode.scope() as scope:
        writer.execute(UPDATE, ("a",))
        writer.rollback()
        writer.execute(UPDATE, ("a",))
        with pytest.raises(psycopg.errors.DivisionByZero):
            writer.execute("SELECT 1 / 0")
        writer.commit()
        with pytest.raises(psycopg.errors.UniqueViolation):
            alone.execute("INSERT INTO posts VALUES (1, 'b')")
        alone.execute("SELECT count(*) FROM posts")
        alone.execute("SET application_name = 'x'")
        writer.execute("SELECT lower(body) FROM posts")
        writer.commit()
        assert not writes(scope)
        assert body(writer) == ""


def test_a_rollback_enters_nothing_where_statements_are_prepared(clients: Clients) -> None:
    """The client forgets these after it, which is no commit."""
    writer = clients.writer()
    writer.prepare_threshold = 0
    with antipode.scope() as scope:
        for _ in range(2):
            writer.execute("UPDATE posts SET body = %s WHERE id = 1", ("a",))
            writer.rollback()
        assert scope.lineage.empty


@pytest.mark.parametrize(
    "statements",
    [
        ["COMMIT"],
        ["COMMIT AND CHAIN", "ROLLBACK"],
        ["SELECT 1; COMMIT"],
        ["PREPARE TRANSACTION 'antipode'", "COMMIT PREPARED 'antipode'"],
    ],
    ids=["text", "chain", "several", "two phases"],
)
def test_a_transaction_that_ends_by_its_text_has_a_position(
    clients: Clients, statements: list[str]
) -> None:
    """Whatever text commits it; what two phases leave to others marks the lineage."""
    writer, reader = clients.writer(autocommit=True), clients.reader(autocommit=True)
    with antipode.scope() as scope:
        writer.execute("BEGIN")
        writer.execute(UPDATE, ("a",))
        for statement in statements:
            writer.execute(statement)
        assert len(scope.lineage) == 1
        assert bool(scope.lineage.incomplete) == ("PREPARE" in statements[0])
        antipode.barrier(Lineage(scope.lineage), timeout=15)
        assert body(reader) == "a"


HIDDEN = (
    """CREATE OR REPLACE FUNCTION secret() RETURNS int LANGUAGE sql AS
    $$ UPDATE posts SET body = 'hidden' WHERE id = 1 RETURNING 1 $$""",
    "CREATE OR REPLACE FUNCTION secret2(int, int) RETURNS int LANGUAGE sql AS 'SELECT secret()'",
    "CREATE OPERATOR ||| (FUNCTION = secret2, LEFTARG = int, RIGHTARG = int)",
    "CREATE OR REPLACE VIEW below AS SELECT secret() AS n",
    "CREATE OR REPLACE VIEW above AS SELECT n FROM below",
)
PROCEDURE = """
CREATE OR REPLACE PROCEDURE half() LANGUAGE plpgsql AS $$ BEGIN
UPDATE posts SET body = 'hidden' WHERE id = 1; COMMIT; PERFORM 1 / 0; END $$
"""


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT secret()",
        "WITH x AS (UPDATE posts SET body = 'hidden' RETURNING 1) SELECT * FROM x",
        "DO $$ BEGIN UPDATE posts SET body = 'hidden'; END $$",
        "SELECT * FROM above",
        "SELECT 1 ||| 2",
    ],
    ids=["function", "with", "do", "view", "operator"],
)
def test_writes_that_look_like_none_are_asked_for(
    clients: Clients, statement: str, *, autocommit: bool
) -> None:
    """Functions, those of views of views and of operators, too, and blocks write unseen."""
    writer, reader = clients.writer(autocommit=autocommit), clients.reader(autocommit=True)
    clients.topology.set_lag(50)
    with antipode.scope() as scope:
        for made in HIDDEN:
            writer.execute(made)
        writer.commit()
        before = scope.lineage
        writer.execute(statement)
        writer.commit()
        assert writes(scope) != sorted(before, key=str)
        antipode.barrier(timeout=15)
        assert body(reader) == "hidden"
        writer.execute("DROP FUNCTION secret, secret2 CASCADE")
        writer.commit()


def test_what_a_failed_procedure_committed_has_a_position(clients: Clients) -> None:
    """The client is shown an error, and the rows are there: a position covers them."""
    writer, reader = clients.writer(autocommit=True), clients.reader(autocommit=True)
    with antipode.scope() as scope:
        writer.execute(PROCEDURE)
        clients.topology.wait_replicated()
        clients.topology.set_lag(50)
        with pytest.raises(psycopg.errors.DivisionByZero):
            writer.execute("CALL half()")
        assert any(write.covering for write in writes(scope))
        antipode.barrier(timeout=15)
        assert body(reader) == "hidden"


def in_doubt(writer: Any, setting: str) -> bool:
    """Whether a commit is in doubt at once."""
    with antipode.scope() as scope:
        writer.execute(setting)
        writer.execute(UPDATE, ("a",))
        writer.commit()
        return ("posts", "in_doubt") in scope.lineage.incomplete


def test_a_commit_that_is_not_flushed_is_in_doubt_until_it_is(clients: Clients) -> None:
    """synchronous_commit=off, by the session or for one transaction: a crash would undo it."""
    clients.topology.config({"wal_writer_delay": "10s"})
    writer = clients.writer()
    for setting in ("SET LOCAL synchronous_commit = off", "SET synchronous_commit = off"):
        assert any(in_doubt(writer, setting) for _ in range(50))  # Until the delay is in force.
        with antipode.scope() as scope:
            writer.execute(setting)
            writer.execute(UPDATE, ("b",))
            writer.commit()
            clients.topology.execute("CREATE TABLE IF NOT EXISTS flushed ()")
            clients.topology.execute("DROP TABLE flushed")
            assert len(writes(scope)) == 1


def test_a_lost_reply_to_a_commit_leaves_a_mark(clients: Clients) -> None:
    """Nobody knows whether it was committed; a connection that is lost before leaves none."""
    with LagProxy(clients.topology.primary) as slow:
        for commits in (False, True):
            writer = clients.writer(slow.address)
            with antipode.scope() as scope:
                writer.execute(UPDATE, ("a",))
                if commits:
                    slow.set_lag(60_000)
                    cutting = threading.Thread(target=cut_after_commit, args=(clients, slow))
                    cutting.start()
                    with pytest.raises(psycopg.OperationalError):
                        writer.commit()
                    cutting.join()
                else:
                    slow.cut()
                    with pytest.raises(psycopg.OperationalError):
                        writer.execute("SELECT 1")
                    slow.heal()
                assert bool(scope.lineage.incomplete) is commits
        clients.close()


def cut_after_commit(clients: Clients, slow: LagProxy) -> None:
    """Cut the proxy once the server has committed, so that its reply is lost."""
    seen = "SELECT body FROM posts WHERE id = 1"
    wait_until(
        lambda: clients.topology.execute(seen)[0]["body"] == "a", what="commit", timeout_s=30
    )
    slow.cut()


def test_snapshots(clients: Clients) -> None:
    """READ COMMITTED waits within its transaction; REPEATABLE READ waits before it, or raises."""
    writer, reader = clients.writer(autocommit=True), clients.reader()
    clients.topology.set_lag(50)
    for number, level in enumerate(("READ_COMMITTED", "REPEATABLE_READ")):
        reader.isolation_level = psycopg.IsolationLevel[level]
        with antipode.scope():
            writer.execute(UPDATE, (f"{number}a",))
            antipode.barrier(timeout=15, at="read")
            assert body(reader) == f"{number}a"
            writer.execute(UPDATE, (f"{number}b",))
            antipode.barrier(timeout=15, at="read")
            if level == "READ_COMMITTED":
                assert body(reader) == f"{number}b"
            else:
                with pytest.raises(StaleSnapshot):
                    body(reader)
                assert body_of(reader) == f"{number}a"
            reader.rollback()
            assert body(reader) == f"{number}b"
            reader.rollback()


def test_a_transaction_that_has_no_snapshot_yet_waits(clients: Clients) -> None:
    """What takes none may come before; its first read sees the write, and so does its next one."""
    writer, reader = clients.writer(autocommit=True), clients.reader(autocommit=True)
    clients.topology.set_lag(50)
    for number, before in enumerate(((), TAKE_NONE)):
        reader.execute(REPEATABLE)
        for statement in before:
            reader.execute(statement)
        with antipode.scope():
            writer.execute(UPDATE, (str(number),))
            antipode.barrier(timeout=15, at="read")
            assert body(reader) == str(number)
            assert body(reader) == str(number)
            writer.execute(UPDATE, ("later",))
            antipode.barrier(timeout=15, at="read")
            with pytest.raises(StaleSnapshot):
                body(reader)
        reader.rollback()


@pytest.mark.parametrize("statement", TAKES_ONE)
def test_what_takes_a_snapshot_without_a_read_of_data(clients: Clients, statement: str) -> None:
    """The server says that it has one, whatever the text of the statement looks like."""
    writer, reader = clients.writer(autocommit=True), clients.reader(autocommit=True)
    reader.execute(REPEATABLE)
    reader.execute(statement)
    with antipode.scope():
        writer.execute(UPDATE, ("a",))
        antipode.barrier(timeout=15, at="read")
        with pytest.raises(StaleSnapshot):
            body(reader)
    assert body_of(reader) == ""


def test_nothing_is_proved_where_another_server_may_answer(clients: Clients) -> None:
    """Through a proxy, or where the application says so, a transaction is refused as before."""
    writer = clients.writer(autocommit=True)
    with LagProxy(clients.topology.replica) as between:
        for reader in (
            clients.reader(between.address, autocommit=True),
            clients.reader(autocommit=True, one_server=False),
        ):
            reader.execute(REPEATABLE)
            with antipode.scope():
                writer.execute(UPDATE, ("a",))
                antipode.barrier(timeout=15, at="read")
                with pytest.raises(StaleSnapshot):
                    body(reader)


def test_the_barriers_time_ends_a_wait_outside_of_the_transaction(clients: Clients) -> None:
    """A standby that replays nothing: the transaction is as usable afterwards as before."""
    writer, reader = clients.writer(autocommit=True), clients.reader(autocommit=True)
    reader.execute(REPEATABLE)
    clients.topology.pause_applier()
    with antipode.scope():
        writer.execute(UPDATE, ("a",))
        antipode.barrier(timeout=0.3, at="read")
        with pytest.raises(BarrierTimeout):
            body(reader)
    clients.topology.resume_applier()
    assert body_of(reader) in ("", "a")


def body_of(reader: Any) -> Any:
    """What a snapshot shows outside of the request."""
    with antipode.scope():
        return body(reader)


def test_cursors_of_the_server_read_from_where_they_were_declared(clients: Clients) -> None:
    """A cursor that is declared under a floor waits; one from before raises."""
    writer, reader = clients.writer(autocommit=True), clients.reader()
    clients.topology.set_lag(50)
    with antipode.scope():
        writer.execute(UPDATE, ("a",))
        antipode.barrier(timeout=15, at="read")
        with reader.cursor("named") as cursor:
            cursor.execute("SELECT body FROM posts WHERE id = 1")
            writer.execute(UPDATE, ("b",))
            antipode.barrier(timeout=15, at="read")
            with pytest.raises(StaleSnapshot):
                cursor.fetchone()
        reader.rollback()
        with reader.cursor("named") as cursor:
            cursor.execute("SELECT body FROM posts WHERE id = 1")
            assert cursor.fetchone() == ("b",)


def test_pipelines_copies_and_many(clients: Clients) -> None:
    """What is sent together has a position at its end, and waits at its beginning."""
    writer, reader = clients.writer(autocommit=True), clients.reader(autocommit=True)
    clients.topology.set_lag(50)
    with antipode.scope() as scope:
        with writer.pipeline():
            writer.execute(UPDATE, ("a",))
            writer.execute("INSERT INTO posts VALUES (2, 'a')")
        assert len(writes(scope)) == 1
        antipode.barrier(timeout=15, at="read")
        with reader.pipeline():
            found = reader.execute("SELECT body FROM posts ORDER BY id")
        assert found.fetchall() == [("a",), ("a",)]
    with antipode.scope() as scope:
        with writer.cursor() as cursor:
            cursor.executemany("INSERT INTO posts VALUES (%s, 'm')", [(3,), (4,)])
        before = writes(scope)
        assert len(before) == 1
        with writer.cursor() as cursor, cursor.copy("COPY posts FROM STDIN") as copy:
            copy.write_row((5, "copied"))
        assert writes(scope) != before
        antipode.barrier(timeout=15, at="read")
        with reader.cursor() as cursor, cursor.copy("COPY posts TO STDOUT") as copy:
            assert len(list(copy.rows())) == 5
        assert len(list(reader.cursor().stream("SELECT id FROM posts"))) == 5


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("scoped", [True, False])
@pytest.mark.parametrize("many", [True, False])
def test_a_pipeline_that_fails_leaves_nothing(
    clients: Clients, *, plain: bool, scoped: bool, many: bool
) -> None:
    """Also what was fetched from before: nothing is asked inside the transaction that it is."""
    connect = clients.plain if plain else clients.writer
    writer = connect(autocommit=True)
    with antipode.scope() if scoped else contextlib.nullcontext() as scope:
        with failing_pipeline(writer):
            cursor = writer.cursor()
            if many:
                cursor.executemany(INSERT, [(2, "a"), (3, "a")], returning=True)
            else:
                cursor.execute(INSERT, (2, "a"))
                assert cursor.fetchone() == (2,)
            writer.execute("SELECT 1 / 0")
        if scope is not None:
            assert writes(scope) == []
    assert clients.plain().execute("SELECT count(*) FROM posts").fetchone() == (1,)


def piped(writer: Any, key: int) -> None:
    """A pipeline that is fetched from."""
    with writer.pipeline():
        assert writer.execute(INSERT, (key, "a")).fetchone() == (key,)


def piped_on(writer: Any, key: int) -> None:
    """One that goes on after it was fetched from."""
    with writer.pipeline():
        assert writer.execute(INSERT, (-key, "a")).fetchone() == (-key,)
        writer.execute(INSERT, (key, "a"))


def piped_in_a_transaction(writer: Any, key: int) -> None:
    """One round a transaction."""
    with writer.pipeline(), writer.transaction():
        assert writer.execute(INSERT, (key, "a")).fetchone() == (key,)


def piped_and_failed(writer: Any, key: int) -> None:
    """One that fails after a Sync of the application's."""
    with failing_pipeline(writer) as pipeline:
        writer.execute(INSERT, (key, "a"))
        pipeline.sync()
        writer.execute("SELECT 1 / 0")


def piped_and_failed_after_a_commit(writer: Any, key: int) -> None:
    """One that fails after a COMMIT of the application's."""
    with failing_pipeline(writer):
        writer.execute("BEGIN")
        writer.execute(INSERT, (key, "a"))
        writer.execute("COMMIT")
        writer.execute("SELECT 1 / 0")


def many_returning(writer: Any, key: int) -> None:
    """What the client makes a pipeline of."""
    rows = [(key, "a"), (-key, "a")]
    writer.cursor().executemany(INSERT, rows, returning=True)


@pytest.mark.parametrize(
    "write",
    [
        piped,
        piped_on,
        piped_in_a_transaction,
        piped_and_failed,
        piped_and_failed_after_a_commit,
        many_returning,
    ],
)
def test_a_pipeline_is_recorded_once_it_has_committed(clients: Clients, write: Any) -> None:
    """Its position covers all of it: the standby shows it after a barrier."""
    writer, reader = clients.writer(autocommit=True), clients.reader(autocommit=True)
    clients.topology.set_lag(50)
    for key in range(2, 7):
        with antipode.scope() as scope:
            write(writer, key)
            assert len(writes(scope)) == 1
            antipode.barrier(timeout=15)
        assert reader.execute("SELECT body FROM posts WHERE id = %s", (key,)).fetchone() == ("a",)


def test_a_read_after_others_of_its_pipeline_is_refused(clients: Clients) -> None:
    """What was fetched is still of the same transaction, in which nothing may be asked."""
    writer, reader = clients.writer(autocommit=True), clients.reader(autocommit=True)
    with antipode.scope():
        writer.execute(UPDATE, ("a",))
        with reader.pipeline() as pipeline:
            assert reader.execute("SELECT 1").fetchone() == (1,)
            antipode.barrier(timeout=15, at="read")
            with pytest.raises(StaleSnapshot, match="pipeline"):
                reader.execute("SELECT body FROM posts WHERE id = 1")
            pipeline.sync()
            assert body(reader) == "a"


def test_a_read_is_given_up_where_the_standby_does_not_answer(clients: Clients) -> None:
    """Frozen while the read waits: the barrier's time ends it, not the client's patience."""
    writer, reader = clients.writer(autocommit=True), clients.reader(autocommit=True)
    body(reader)
    with antipode.scope():
        writer.execute(UPDATE, ("a",))
        clients.topology.suspend_replica()
        antipode.barrier(timeout=0.5, at="read")
        with pytest.raises(BarrierTimeout):
            body(reader)
        clients.topology.resume_replica()


async def test_the_asynchronous_api(clients: Clients) -> None:
    """Its commits have positions, its reads wait, its failures enter nothing."""
    writer = await psycopg.AsyncConnection.connect(clients.topology.url())
    reader = await psycopg.AsyncConnection.connect(
        clients.topology.url(clients.topology.replica), autocommit=True
    )
    postgresql.instrument_connection(writer, datastore=DATASTORE)
    postgresql.instrument_connection(reader, datastore=DATASTORE, reads_from="replica")
    clients.topology.set_lag(50)
    try:
        with antipode.scope() as scope:
            for number in range(3):
                async with writer.transaction():
                    await writer.execute(UPDATE, (str(number),))
                assert len(writes(scope)) == 1
                await antipode.barrier_async(timeout=15, at="read")
                found = await reader.execute("SELECT body FROM posts WHERE id = 1")
                assert await found.fetchone() == (str(number),)
            before = scope.lineage
            await writer.execute(UPDATE, ("lost",))
            await writer.rollback()
            assert scope.lineage == before
    finally:
        for each in (writer, reader):
            postgresql.uninstrument_connection(each)
            await each.close()


def test_a_pool_waits_and_records(clients: Clients) -> None:
    """psycopg_pool's connections are instrumented as it opens them."""
    pools = pytest.importorskip("psycopg_pool")

    def configure(connection: Any) -> None:
        postgresql.instrument_connection(connection, datastore=DATASTORE, reads_from="replica")

    writer = clients.writer()
    clients.topology.set_lag(50)
    url = clients.topology.url(clients.topology.replica)
    with pools.ConnectionPool(url, min_size=1, max_size=2, configure=configure) as pool:
        for number in range(3):
            with antipode.scope():
                writer.execute(UPDATE, (str(number),))
                writer.commit()
                antipode.barrier(timeout=15, at="read")
                with pool.connection() as reader:
                    assert body(reader) == str(number)


def test_undone_a_connection_is_as_before(clients: Clients) -> None:
    """It has the class it had, and records nothing."""
    plain = clients.plain()
    kind = type(plain)
    postgresql.instrument_connection(plain, datastore=DATASTORE)
    postgresql.instrument_connection(plain, datastore=DATASTORE)
    with pytest.raises(antipode.ConfigurationError):
        postgresql.instrument_connection(plain, datastore="other")
    postgresql.uninstrument_connection(plain)
    assert type(plain) is kind
    with antipode.scope() as scope:
        plain.execute(UPDATE, ("a",))
        plain.commit()
        assert not scope.lineage


def test_a_read_that_is_refused_is_not_counted_as_stale(clients: Clients) -> None:
    """A read that raises is served to nobody, also one whose rows come one by one."""
    antipode.configure(barriers="auto")
    reader = clients.reader(autocommit=True)
    for lineage in doubtful(DATASTORE):
        with served(DATASTORE, 0), antipode.scope(lineage):
            with pytest.raises(psycopg.errors.DivisionByZero):
                reader.execute("SELECT 1 / (id - id) FROM posts")
            with pytest.raises(psycopg.errors.DivisionByZero):
                list(reader.cursor().stream("SELECT 1 / (id - id) FROM posts"))
        with served(DATASTORE, 2), antipode.scope(lineage):
            assert body(reader) == ""
            assert list(reader.cursor().stream("SELECT id FROM posts")) == [(1,)]
