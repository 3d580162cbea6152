"""Lineages in documents within sessions, transactions, retries and barriers."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from pymongo.errors import OperationFailure
from pymongo.write_concern import WriteConcern

import antipode
from antipode import Lineage, StaleSnapshot
from antipode.shim import Incomplete

from ._clients import DB, client, exact, failing
from ._stored import BESIDE, CAUSE, OTHER, Both, both, causes, covering, write_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")

ONE = {"_id": 1}
UNSAMPLED = Incomplete("posts", "unsampled")


@pytest.fixture
def held(antipode_mongodb: MongoDBTopology) -> Iterator[Both]:
    """Two collections that carry lineages."""
    with both(antipode_mongodb) as made:
        yield made


def test_transaction(held: Both) -> None:
    """Its writes carry the lineage from the commit on; its own reads show and cover them."""
    held.posts.insert_many([{"_id": 1}, {"_id": 2}])
    with antipode.scope(Lineage([CAUSE])) as scope, held.client.start_session() as session:
        with session.start_transaction():
            held.posts.insert_one({"_id": 3}, session=session)
            held.posts.update_one(ONE, {"$set": {"a": 1}}, session=session)
            assert held.posts.find_one(ONE, session=session) == {"_id": 1, "a": 1}
            held.posts.find_one_and_update({"_id": 2}, {"$set": {"b": 1}}, session=session)
            assert held.posts.find_one({"_id": 4}, session=session) is None
            assert not held.read(lambda: held.posts.find_one({"_id": 3}))[0]
        assert not scope.lineage.incomplete
    for key in (1, 2, 3):
        lineage = held.read(lambda: held.posts.find_one({"_id": key}))[1]  # noqa: B023
        assert causes(lineage) == {CAUSE}


def test_aborted_transaction(held: Both) -> None:
    """Nothing of it is stored but tombstones, which make who finds nothing wait for more."""
    held.posts.insert_one({"_id": 1})
    with antipode.scope(Lineage([CAUSE])), held.client.start_session() as session:
        session.start_transaction()
        held.posts.update_one(ONE, {"$set": {"a": 1}}, session=session)
        held.posts.delete_one(ONE, session=session)
        session.abort_transaction()
    found, lineage = held.read(lambda: held.posts.find_one(ONE))
    assert (found, causes(lineage)) == ({"_id": 1}, set())
    held.stored.delete_one(ONE)
    assert causes(held.read(lambda: held.posts.find_one(ONE))[1]) == {CAUSE}


def test_deletes_in_a_transaction(held: Both) -> None:
    """Deletes by id or not, as the first command or a later one, leave tombstones."""
    held.posts.insert_many([{"_id": 1}, {"_id": 2, "a": 1}, {"_id": 3}])
    with (
        antipode.scope(Lineage([CAUSE])),
        held.client.start_session() as session,
        session.start_transaction(),
    ):
        held.posts.delete_one(ONE, session=session)
        held.posts.delete_many({"a": 1}, session=session)
        assert held.posts.find_one_and_delete({"_id": 3}, session=session)
    for key in (1, 2, 3):
        found, lineage = held.read(lambda: held.posts.find_one({"_id": key}))  # noqa: B023
        assert (found, causes(lineage)) == (None, {CAUSE})


def test_transactions_do_not_wait_for_each_others_tombstones(held: Both) -> None:
    """Two that delete at the same time both commit at their first attempt."""
    held.posts.insert_many([{"_id": number, "a": number} for number in range(20)])
    with held.client.start_session() as one, held.client.start_session() as two:
        for number in range(0, 20, 2):
            with one.start_transaction(), two.start_transaction():
                held.posts.delete_many({"a": number}, session=one)
                held.posts.delete_many({"a": number + 1}, session=two)
    assert held.stored.count_documents({}) == 0


def test_with_transaction(held: Both) -> None:
    """What it repeats stores the lineage once more, and the application sees no difference."""
    attempts: list[int] = []

    def work(session: Any) -> None:
        attempts.append(1)
        held.posts.update_one(ONE, {"$set": {"n": len(attempts)}}, upsert=True, session=session)
        if len(attempts) == 1:
            error = OperationFailure("again", 112)
            error._add_error_label("TransientTransactionError")
            raise error

    with antipode.scope(Lineage([CAUSE])), held.client.start_session() as session:
        session.with_transaction(work)
    found, lineage = held.read(lambda: held.posts.find_one(ONE))
    assert (found, causes(lineage)) == ({"_id": 1, "n": 2}, {CAUSE})


def test_snapshot_and_causal_sessions(held: Both) -> None:
    """Reads in them are covered and merged like others."""
    held.write(lambda: held.posts.insert_one({"_id": 1}), CAUSE)
    # A snapshot is of what a majority has, and needs to show the collection.
    held.stored.with_options(write_concern=WriteConcern("majority")).insert_one({"_id": 2})
    for options in ({"causal_consistency": True}, {"snapshot": True}):
        with held.client.start_session(**options) as session:
            found, lineage = held.read(lambda: held.posts.find_one(ONE, session=session))
            assert (found, causes(lineage)) == ({"_id": 1}, {CAUSE})
            assert covering(lineage)
            assert not lineage.incomplete


def test_retried_write(held: Both, antipode_mongodb: MongoDBTopology) -> None:
    """PyMongo's second attempt stores what the first one would have."""
    with failing(antipode_mongodb.primary, "insert", "update", closeConnection=True):
        held.write(lambda: held.posts.insert_one({"_id": 1}), CAUSE)
    with failing(
        antipode_mongodb.primary, "update", errorCode=91, errorLabels=["RetryableWriteError"]
    ):
        held.write(lambda: held.posts.update_one(ONE, {"$inc": {"n": 1}}), OTHER)
    found, lineage = held.read(lambda: held.posts.find_one(ONE))
    assert (found, causes(lineage)) == ({"_id": 1, "n": 1}, {CAUSE, OTHER})


def test_retried_read(held: Both, antipode_mongodb: MongoDBTopology) -> None:
    """The second attempt is the one that counts."""
    held.write(lambda: held.posts.insert_one({"_id": 1}), CAUSE)
    with failing(antipode_mongodb.primary, "find", closeConnection=True):
        found, lineage = held.read(lambda: held.posts.find_one(ONE))
    assert (found, causes(lineage)) == ({"_id": 1}, {CAUSE})


def test_lost_tombstone_is_in_doubt(held: Both, antipode_mongodb: MongoDBTopology) -> None:
    """A connection that breaks before the delete leaves the document, or its tombstone."""
    held.posts.insert_one({"_id": 1})
    with failing(antipode_mongodb.primary, "update", closeConnection=True):
        held.write(lambda: held.posts.delete_one(ONE), CAUSE)
    assert not held.stored.find_one(ONE)
    assert causes(held.read(lambda: held.posts.find_one(ONE))[1]) == {CAUSE}


def test_unreadable_tombstones_are_incomplete(
    held: Both, antipode_mongodb: MongoDBTopology, caplog: pytest.LogCaptureFixture
) -> None:
    """Who finds nothing, and may not look why, gets a mark and the answer."""
    held.write(lambda: held.posts.delete_one(ONE), CAUSE)
    broken = {"errorCode": 13, "namespace": f"{DB}.posts.antipode"}
    with failing(antipode_mongodb.primary, "find", **broken):
        found, lineage = held.read(lambda: held.posts.find_one(ONE))
    assert found is None
    assert UNSAMPLED in lineage.incomplete
    assert "tombstones" in caplog.text


def test_floors_hold_reads_back(antipode_mongodb: MongoDBTopology) -> None:
    """A read under a floor waits, finds the lineage, and looks for tombstones behind the floor."""
    antipode_mongodb.set_lag(100)
    near = {**BESIDE, "reads_from": "replica"}
    with both(antipode_mongodb) as held, client(antipode_mongodb.replica, near) as reader:
        posts = reader[DB].posts
        for number in range(5):
            held.posts.insert_one({"_id": number})
            with antipode.scope(Lineage([write_id("log", number)])) as scope:
                held.posts.update_one({"_id": number}, {"$set": {"a": 1}})
                antipode.barrier(timeout=5, at="read", only="posts")
                sent = scope.lineage
            with antipode.scope(sent) as scope:
                antipode.barrier(timeout=5, at="read", only="posts")
                assert posts.find_one({"_id": number}) == {"_id": number, "a": 1}
            with antipode.scope(Lineage([write_id("log", number)])) as scope:
                held.posts.delete_one({"_id": number})
                sent = Lineage(exact(scope.lineage.only("posts")))
            with antipode.scope(sent) as scope:
                antipode.barrier(timeout=5, at="read")
                assert posts.find_one({"_id": number}) is None
                assert write_id("log", number) in scope.lineage


def test_stale_snapshots_are_refused(held: Both) -> None:
    """As without lineages in documents."""
    held.posts.insert_one({"_id": 1})
    with antipode.scope(), held.client.start_session() as session:
        session.start_transaction()
        held.posts.find_one(ONE, session=session)
        held.posts.update_one(ONE, {"$set": {"a": 1}})
        antipode.barrier(timeout=5, at="read")
        with pytest.raises(StaleSnapshot):
            held.posts.find_one(ONE, session=session)
        session.abort_transaction()


def test_reads_cover_what_they_show(antipode_mongodb: MongoDBTopology) -> None:
    """With a writer at work, the covering position of a read is never below what it showed."""
    done = threading.Event()
    with both(antipode_mongodb) as held:
        held.posts.insert_one({"_id": 1, "n": 0})
        written: dict[int, int] = {}

        def write() -> None:
            number = 0
            while not done.is_set():
                number += 1
                with antipode.scope() as scope:
                    held.posts.update_one(ONE, {"$set": {"n": number}})
                    (entry,) = exact(scope.lineage)
                    written[number] = int(entry.version)

        thread = threading.Thread(target=write)
        thread.start()
        shown: list[tuple[int, Any]] = []
        try:
            for _ in range(1000):
                found, lineage = held.read(lambda: held.posts.find_one(ONE))
                shown.append((found["n"], covering(lineage)))
        finally:
            done.set()
            thread.join()
    assert len({number for number, _ in shown}) > 50
    for number, entries in shown:
        assert not number or any(int(each.version) >= written[number] for each in entries)


def test_broken_replies_mark(held: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure of the library's own breaks neither a read nor a write, and is no silence."""
    from antipode_shims.mongodb._stored import lineages as _lineages

    def fail(*_args: object) -> Any:
        raise ValueError

    held.posts.insert_one({"_id": 1})
    with monkeypatch.context() as patched:
        patched.setattr(_lineages, "Shown", fail)
        found, lineage = held.read(lambda: held.posts.find_one(ONE))
        assert found
        assert UNSAMPLED in lineage.incomplete
    with monkeypatch.context() as patched:
        patched.setattr(_lineages, "Rewriter", fail)
        with antipode.scope() as scope:
            held.posts.insert_one({"_id": 2})
            assert UNSAMPLED in scope.lineage.incomplete
