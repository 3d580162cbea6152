"""Events of PostgreSQL: a NOTIFY of a trigger, and commits that are decoded from the log."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import antipode
from antipode import Lineage, Status, WriteId
from antipode_shims import postgresql
from antipode_shims.postgresql._position import flushed_end
from antipode_testing import PostgreSQLTopology
from tests.integration.postgresql._clients import DATASTORE, Clients

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.store("postgresql")

TRIGGER = (
    (
        "CREATE OR REPLACE FUNCTION told() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN PERFORM pg_notify('changes', NEW.body); RETURN NEW; END$$"
    ),
    "CREATE TRIGGER told AFTER UPDATE ON posts FOR EACH ROW EXECUTE FUNCTION told()",
)
GUIDE = (Path(__file__).resolve().parents[3] / "docs/guides/store-events.md").read_text("utf-8")
READ = "SELECT body FROM posts WHERE id = 1"
UPDATE = "UPDATE posts SET body = %s WHERE id = 1"
WHERE = "SELECT pg_current_wal_insert_lsn() - '0/0'"


def body(connection: Any) -> str:
    """What the post says, read over *connection*."""
    return str(connection.execute(READ).fetchone()[0])


@pytest.fixture
def held(clients: Clients) -> Iterator[Clients]:
    """The same, with the trigger, and a standby that replays nothing."""
    for statement in TRIGGER:
        clients.topology.execute(statement)
    clients.topology.wait_replicated()
    clients.topology.pause_applier()
    yield clients
    clients.topology.resume_applier()
    clients.topology.execute("DROP FUNCTION told CASCADE")


def test_a_listener_reads_at_a_standby_what_it_was_told_of(held: Clients) -> None:
    """NOTIFY names no position: as of now, it is waited for; without, the old row is read."""
    listener, reader = held.writer(autocommit=True), held.reader(autocommit=True)
    listener.execute("LISTEN changes")
    writer = held.plain(autocommit=True)
    writer.execute(UPDATE, ("new",))
    (event,) = listener.notifies(timeout=10, stop_after=1)
    assert event.payload == "new"
    with antipode.scope():
        assert antipode.barrier(timeout=1)
        assert body(reader) == ""
    with antipode.scope(antipode.as_of_now(DATASTORE)):
        assert not antipode.check()
        held.topology.resume_applier()
        antipode.barrier(timeout=10)
        assert body(reader) == "new"


def test_the_guides_listener_prints_what_it_was_told_of(
    clients: Clients, capsys: pytest.CaptureFixture[str]
) -> None:
    """The code of the guide, over a trigger that sends the row's key."""
    names: dict[str, Any] = {}
    exec(GUIDE.partition("```python\n")[2].partition("```")[0], names)  # noqa: S102 - the guide's code
    listener, replica = clients.writer(autocommit=True), clients.reader(autocommit=True)
    clients.topology.set_lag(50)
    writer = clients.plain(autocommit=True)
    listener.execute("LISTEN changes")
    with writer.transaction():
        writer.execute(UPDATE, ("new",))
        writer.execute("NOTIFY changes, '1'")
    names["follow"](listener, replica)
    assert capsys.readouterr().out == "new\n"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_as_of_now_covers_every_commit_of_before(clients: Clients, seed: int) -> None:
    """Also one that did not wait for its flush, among transactions that are open."""
    draw = random.Random(seed)
    clients.reader(autocommit=True)
    clients.writer(autocommit=True)
    writer, other = clients.plain(autocommit=True), clients.plain()
    for step in range(12):
        if draw.random() < 0.3:
            other.execute("INSERT INTO posts VALUES (%s, 'open')", (100 * seed + step + 2,))
        elif draw.random() < 0.3:
            other.rollback()
        with writer.transaction():
            if draw.random() < 0.5:
                writer.execute("SET LOCAL synchronous_commit = off")
            writer.execute(UPDATE, (f"{seed} {step}",))
            writer.execute("SELECT pg_notify('changes', 'x')")
        inserted = int(writer.execute(WHERE).fetchone()[0])
        (found,) = antipode.as_of_now(DATASTORE)
        assert found.covering
        assert int(found.version) >= flushed_end(inserted)
        antipode.barrier(Lineage([found]), timeout=10)
        with clients.plain(clients.topology.replica) as standby:
            assert body(standby) == f"{seed} {step}"
    other.rollback()


@pytest.fixture(scope="module")
def decoded() -> Iterator[PostgreSQLTopology]:
    """A primary whose log can be decoded, and a standby."""
    with PostgreSQLTopology(config={"wal_level": "logical"}) as topology:
        yield topology


@pytest.fixture
def slot(decoded: PostgreSQLTopology) -> Iterator[Clients]:
    """Clients, and the slot ``events``."""
    decoded.reset()
    with contextlib.closing(Clients(decoded)) as clients:
        decoded.execute("SELECT pg_create_logical_replication_slot('events', 'test_decoding')")
        yield clients
        decoded.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")


def changes(topology: PostgreSQLTopology) -> list[tuple[str, str]]:
    """What the slot has since: position and text of each row."""
    rows = topology.execute(
        "SELECT lsn::text, data FROM pg_logical_slot_get_changes('events', NULL, NULL)"
    )
    return [(row["lsn"], row["data"]) for row in rows]


def identity(topology: PostgreSQLTopology) -> dict[str, Any]:
    """What ``IDENTIFY_SYSTEM`` says."""
    with psycopg.connect(
        host=topology.primary.host,
        port=topology.primary.port,
        user="postgres",
        replication="database",
        dbname=topology.database,
        autocommit=True,
    ) as connection:
        row = connection.execute("IDENTIFY_SYSTEM").fetchone()
    assert row is not None
    return {"system": row[0], "timeline": int(row[1])}


@pytest.mark.slow
@pytest.mark.parametrize("named", [True, False])
def test_a_reader_of_the_log_reads_what_was_committed(slot: Clients, *, named: bool) -> None:
    """Each commit of a random program, by its end: the standby shows it after the barrier.

    It is never before the commit, which its writer's own entry covers, nor before that of the
    transaction before it; a change's own position is before the end of its commit.
    """
    draw = random.Random(17)
    topology = slot.topology
    reader, writer = slot.reader(autocommit=True), slot.writer(autocommit=True)
    who = identity(topology) if named else {}
    before = 0
    topology.set_lag(20)
    for step in range(12):
        told = f"step {step}"
        with antipode.scope() as request:
            with writer.transaction():
                for _ in range(draw.randint(1, 3)):
                    writer.execute(UPDATE, (told,))
                if draw.random() < 0.3:
                    with writer.transaction(force_rollback=True):
                        writer.execute("INSERT INTO posts VALUES (9, '')")
            (own,) = request.lineage
        rows = changes(topology)
        (end,) = [lsn for lsn, text in rows if text.startswith("COMMIT")]
        own_positions = [postgresql.lineage(DATASTORE, lsn=lsn, **who) for lsn, _ in rows[:-1]]
        lineage = postgresql.lineage(DATASTORE, lsn=end, **who)
        (event,) = lineage
        assert (event.key, event.covering) == (own.key, False)
        assert before < int(event.version) <= int(own.version)
        for (earlier,) in own_positions:
            assert int(earlier.version) < int(event.version)
        before = int(own.version)
        with antipode.scope(lineage):
            antipode.barrier(timeout=10)
            assert body(reader) == told


@pytest.mark.slow
def test_an_event_of_another_history_is_refused(slot: Clients) -> None:
    """Another system's is of an unknown log, and one that nobody wrote yet ends in time."""
    topology = slot.topology
    slot.reader(autocommit=True)
    slot.writer(autocommit=True)
    who = identity(topology)
    with pytest.raises(antipode.UnmetError) as unknown:
        antipode.barrier(postgresql.lineage(DATASTORE, lsn="0/99", system=7), timeout=5)
    assert [each.status for each in unknown.value.result.outcomes] == [Status.UNKNOWN_LOG]
    with pytest.raises(antipode.BarrierTimeout, match="the server is at"):
        antipode.barrier(postgresql.lineage(DATASTORE, lsn="FF/99", **who), timeout=0.3)
    ended = postgresql.lineage(DATASTORE, lsn="0/99", system=who["system"], timeline=9)
    assert ended == Lineage(incomplete=[(DATASTORE, "unsampled")])
    assert antipode.barrier(ended, timeout=10)


@pytest.mark.slow
def test_an_event_that_a_promotion_lost_is_lost(slot: Clients) -> None:
    """Decoded at the old primary, and never on the new one: the barrier says so.

    One of before the promotion is visible there, and one of after it is of the new timeline.
    """
    topology = slot.topology
    reader = slot.reader(autocommit=True)
    who = identity(topology)
    writer = slot.plain(autocommit=True)
    writer.execute(UPDATE, ("kept",))
    kept = changes(topology)[-1][0]
    topology.wait_replicated()
    topology.pause()
    writer.execute(UPDATE, ("lost",))
    lost = changes(topology)[-1][0]
    topology.failover()
    with antipode.scope(postgresql.lineage(DATASTORE, lsn=kept, **who)):
        antipode.barrier(timeout=10)
        assert body(reader) == "kept"
    with pytest.raises(antipode.DependencyLost):
        antipode.barrier(postgresql.lineage(DATASTORE, lsn=lost, **who), timeout=5)
    # The reader's address is the new primary's by now.
    slot.writer(topology.primary, autocommit=True)
    new = identity(topology)
    assert new["timeline"] == 2
    with slot.plain(autocommit=True) as again:
        again.execute(UPDATE, ("later",))
        end = again.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()[0]
    for given in (new, {}):
        (entry,) = postgresql.lineage(DATASTORE, lsn=end, **given)
        assert entry.key.startswith(f"{who['system']}/2-")
        assert antipode.barrier(Lineage([entry]), timeout=10)
    (old,) = postgresql.lineage(DATASTORE, lsn=lost, timeline=1)
    assert old == WriteId(DATASTORE, f"{who['system']}/1-0", old.version, old.written_hour)
