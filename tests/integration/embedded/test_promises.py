"""Promises on the embedded store: the record is part of the row that fulfils, and travels so."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import (
    BarrierTimeout,
    ConfigurationError,
    DependencyLost,
    Lineage,
    Promise,
    PromiseAbandoned,
)
from antipode_shims import embedded
from antipode_shims.embedded import EmbeddedStore, EmbeddedTopology, NotPrimary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from antipode_shims.embedded import EmbeddedShim

PROMISE = Promise("posts", "00112233445566778899aabbccddeeff", 4_000_000_000)
AWAITED = Lineage(promises=[PROMISE])
OLD_SCHEMA = """
CREATE TABLE log(position INTEGER PRIMARY KEY, committed_ns INTEGER NOT NULL,
written_hour INTEGER NOT NULL, key TEXT NOT NULL, value BLOB, lineage TEXT)
"""


@pytest.fixture
def topology() -> Iterator[EmbeddedTopology]:
    """Two regions."""
    with EmbeddedTopology() as topology:
        yield topology


@pytest.fixture
def writer(topology: EmbeddedTopology) -> Iterator[EmbeddedShim]:
    """At the primary."""
    with embedded.shim("posts", topology.primary, reads_from="primary") as shim:
        yield shim


@pytest.fixture
def reader(topology: EmbeddedTopology) -> Iterator[EmbeddedShim]:
    """At the replica."""
    with embedded.shim("posts", topology.replica, reads_from="replica") as shim:
        yield shim


def test_record_travels_with_the_data(
    topology: EmbeddedTopology, writer: EmbeddedShim, reader: EmbeddedShim
) -> None:
    """At the replica the promise is fulfilled once the value is there, and not before."""
    topology.pause()
    writer.write("refund", b"80", fulfils=PROMISE)
    with pytest.raises(BarrierTimeout):
        antipode.barrier(AWAITED, timeout=0.1)
    topology.resume()
    assert antipode.barrier(AWAITED, timeout=10).ok
    assert reader.read("refund")[0] == b"80"


def test_read_waits_for_the_record(
    topology: EmbeddedTopology, writer: EmbeddedShim, reader: EmbeddedShim
) -> None:
    """A floor that demands a promise holds the read back until its own file has the record."""
    topology.set_lag(50)
    with antipode.scope(AWAITED):
        antipode.barrier(timeout=10, at="read")
        with antipode.scope():
            writer.write("refund", b"80", fulfils=PROMISE)
        assert reader.read("refund")[0] == b"80"


def test_deletion_fulfils(writer: EmbeddedShim, reader: EmbeddedShim) -> None:
    """A branch may promise to delete."""
    writer.write("refund", b"80")
    writer.delete("refund", fulfils=PROMISE)
    assert antipode.barrier(AWAITED, timeout=10).ok
    assert reader.read("refund")[0] is None


def test_second_fulfilment_writes_again(writer: EmbeddedShim) -> None:
    """A message that is delivered twice writes twice; the record stays the first one's."""
    for value in b"80", b"81":
        writer.write("refund", value, fulfils=PROMISE)
    assert writer.read("refund")[0] == b"81"
    assert not antipode.abandon(PROMISE)


def test_abandoned_promise_writes_nothing(writer: EmbeddedShim, reader: EmbeddedShim) -> None:
    """After an abandonment the branch's write fails whole, and waiting ends at once."""
    assert antipode.abandon(PROMISE)
    with pytest.raises(PromiseAbandoned) as caught:
        writer.write("refund", b"80", fulfils=PROMISE)
    assert caught.value.code == "promise_abandoned"
    assert writer.read("refund")[0] is None
    with pytest.raises(DependencyLost):
        antipode.barrier(AWAITED, timeout=10)
    assert antipode.abandon(PROMISE), "the second time says the same"
    assert reader.read("refund")[0] is None


def test_abandonment_is_no_value(writer: EmbeddedShim) -> None:
    """The row of an abandonment shows neither as a key nor to those who follow the log."""
    writer.write("", b"the empty key")
    antipode.abandon(PROMISE)
    assert writer.read("")[0] == b"the empty key"
    assert [message.key for message in writer.follow(idle_s=0)] == [""]


def test_replica_abandons_nothing(topology: EmbeddedTopology, reader: EmbeddedShim) -> None:
    """Only the primary's file takes records; without its shim giving up fails."""
    with pytest.raises(ConfigurationError):
        antipode.abandon(PROMISE)
    with EmbeddedStore(topology.replica) as store, pytest.raises(NotPrimary):
        store.abandon(PROMISE)
    assert not reader.abandons


def test_lost_record_is_not_yet(
    topology: EmbeddedTopology, writer: EmbeddedShim, reader: EmbeddedShim
) -> None:
    """A fail-over that loses the branch's write leaves the promise open: it may be redelivered."""
    topology.pause()
    writer.write("refund", b"80", fulfils=PROMISE)
    topology.failover(lose_unreplicated=True)
    with pytest.raises(BarrierTimeout):
        antipode.barrier(AWAITED, timeout=0.1)
    reader.store.put("refund", b"80", fulfils=PROMISE)
    assert antipode.barrier(AWAITED, timeout=10).ok


def test_file_from_before_promises(tmp_path: Path) -> None:
    """A file without the columns for records gets them when its primary opens it."""
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(OLD_SCHEMA)
        connection.execute("INSERT INTO log VALUES (1, 0, 0, 'post', x'31', NULL)")
        connection.commit()
    with EmbeddedStore(path, create="primary") as store:
        entry = store.get("post")
        assert entry is not None
        assert entry.value == b"1"
        store.put("refund", b"80", fulfils=PROMISE)
        assert not store.abandon(PROMISE)
