"""Reads that see less than one expects: without a scope, or of what is not committed yet."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage
from antipode.shim import floor, record_uncommitted, record_write, stored_text
from antipode.telemetry import Metric, metrics
from tests.unit._dry_runs import fake, lints, records, write

if TYPE_CHECKING:
    from pathlib import Path

    from antipode_testing import FakeStore


class Connection:
    """What a client reads and writes through."""


@pytest.fixture
def replica() -> FakeStore:
    """What this process reads, of the datastore ``posts``."""
    return fake()


@pytest.fixture
def writer() -> Connection:
    """The connection that writes within a transaction."""
    return Connection()


def counted(name: str) -> int:
    """How often *name* was counted for the datastore ``posts``."""
    return metrics().get(Metric(name, "posts"), 0)


def begin(replica: FakeStore, writer: Connection) -> None:
    """Write within a transaction that stays open."""
    record_uncommitted(replica, writer, wrote=True)


def end(replica: FakeStore, writer: Connection) -> None:
    """Commit that transaction, or roll it back."""
    record_uncommitted(replica, writer, wrote=False)


def test_a_read_without_a_scope_is_counted_and_logged_once(
    replica: FakeStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Each read is counted, each place logged once with what to do; none of them fails."""
    antipode.configure(on_unscoped="raise")
    before = counted("unscoped_read")
    with caplog.at_level(logging.WARNING, "antipode"):
        for _ in range(3):
            assert floor(replica) is None
        floor(replica, reads=False)
    assert counted("unscoped_read") == before + 3
    (line,) = [each.getMessage() for each in caplog.records]
    assert "read of 'posts'" in line
    assert "test_open_writes.py" in line
    assert "antipode.scope()" in line


def test_a_read_in_a_scope_is_not_counted(replica: FakeStore) -> None:
    """Neither in a scope nor in one whose lineage ``stop()`` discarded is anything missing."""
    before = counted("unscoped_read")
    with antipode.scope():
        floor(replica)
        antipode.stop()
        floor(replica)
    assert counted("unscoped_read") == before


def test_what_leaves_before_the_commit_is_counted_and_logged_once(
    replica: FakeStore, writer: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """Each transaction counts once, whatever is sent meanwhile; after its end nothing is said."""
    before = counted("sent_before_commit")
    with caplog.at_level(logging.WARNING, "antipode"), antipode.scope() as held:
        for transactions in (1, 2):
            begin(replica, writer)
            held.text()
            held.answer()
            assert counted("sent_before_commit") == before + transactions
            end(replica, writer)
            held.text()
        begin(replica, writer)
        held.answer()
        end(replica, writer)
    assert counted("sent_before_commit") == before + 3
    by_request, by_answer = [each.getMessage() for each in caplog.records]
    for line in (by_request, by_answer):
        assert "'posts'" in line
        assert line.count("test_open_writes.py") == 2


def test_a_read_without_a_scope_is_a_lint(tmp_path: Path, replica: FakeStore) -> None:
    """The dry run has each, of no request."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    floor(replica)
    assert lints(tmp_path) == [("unscoped-read", "posts", "")]
    (found,) = records(tmp_path, "lint")
    assert found["request"] is None
    assert found["site"]["function"] == "test_a_read_without_a_scope_is_a_lint"


def test_a_read_through_another_connection_sees_no_open_transaction(
    replica: FakeStore, writer: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """It is counted, and logged once with both places; in the transaction and after it, nothing."""
    before = counted("read_before_commit")
    with antipode.scope(), caplog.at_level(logging.WARNING, "antipode"):
        floor(replica)
        begin(replica, writer)
        floor(replica, who=writer)
        assert counted("read_before_commit") == before
        assert antipode.uncommitted() == {"posts"}
        for _ in range(2):
            floor(replica, who=Connection())
        end(replica, writer)
        floor(replica)
        assert antipode.uncommitted() == frozenset()
    assert counted("read_before_commit") == before + 2
    (line,) = [each.getMessage() for each in caplog.records]
    assert line.count("test_open_writes.py:") == 2


def test_another_request_has_no_part_in_a_transaction(
    replica: FakeStore, writer: Connection
) -> None:
    """What one request has not committed, another one does not miss."""
    before = counted("read_before_commit")
    with antipode.scope():
        begin(replica, writer)
        with antipode.scope():
            floor(replica)
            assert antipode.uncommitted() == frozenset()
    end(replica, writer)
    assert counted("read_before_commit") == before


def test_a_transaction_ends_with_its_connection(replica: FakeStore) -> None:
    """A connection that is dropped within a transaction rolls back: nothing is missed."""
    before = counted("read_before_commit")
    with antipode.scope():
        begin(replica, Connection())
        floor(replica)
    assert counted("read_before_commit") == before


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, 1),
        ({"only": "posts"}, 1),
        ({"only": "users"}, 0),
        ({"exclude": "posts"}, 0),
        ({"lineage": Lineage()}, 0),
        ({"lineage": Lineage([write()])}, 1),
        ({"mode": "off"}, 0),
        ({"mode": "dry-run"}, 1),
    ],
)
def test_a_barrier_in_an_open_transaction(
    replica: FakeStore, writer: Connection, options: dict[str, Any], found: int
) -> None:
    """It is counted where it waits for that datastore, whatever it has to wait for there."""
    before = counted("read_before_commit")
    with antipode.scope():
        begin(replica, writer)
        antipode.barrier(timeout=0.01, on_unmet="return", **options)
        end(replica, writer)
        antipode.barrier(timeout=0.01, on_unmet="return", **options)
    assert counted("read_before_commit") == before + found


def test_before_the_commit_is_a_lint(
    tmp_path: Path, replica: FakeStore, writer: Connection
) -> None:
    """The dry run has the read, the barrier and the check, each with the place of the write."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    with antipode.scope():
        record_write(write())
        begin(replica, writer)
        floor(replica)
        antipode.barrier(timeout=1)
        antipode.check()
    found = [each for each in lints(tmp_path) if each[0] == "read-before-commit"]
    details = [detail for _, _, detail in found]
    assert [detail.partition(",")[0] for detail in details] == ["read", "barrier", "barrier"]
    assert all("written at tests/unit/test_open_writes.py:" in each for each in details)


def test_what_is_stored_before_the_commit_is_counted_and_a_lint(
    tmp_path: Path, replica: FakeStore, writer: Connection
) -> None:
    """A value of another store, or of another connection; not a row of the same transaction."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    before = counted("sent_before_commit")
    with antipode.scope() as held:
        stored_text(held.lineage)
        begin(replica, writer)
        for within in (id(writer), "posts"):
            stored_text(held.lineage, within=within)
        assert (counted("sent_before_commit"), lints(tmp_path)) == (before, [])
        for _ in range(2):
            stored_text(held.lineage)
        end(replica, writer)
        stored_text(held.lineage)
    assert counted("sent_before_commit") == before + 1
    assert lints(tmp_path)[0] == ("in-transaction", "posts", "")
