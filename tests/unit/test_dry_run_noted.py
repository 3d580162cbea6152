"""Reads of a dry run are noted as they are sent, and judged with what happens next."""

from __future__ import annotations

import logging
import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Metric
from antipode._dry_run.records import Records
from antipode.shim import decode, floor, record_write

from ._dry_runs import fake, records, verdicts, write

if TYPE_CHECKING:
    from pathlib import Path

    from antipode.testing import FakeStore

#: Reads at two lines, and dies without a word.
CRASHING = """
import os
import sys
import antipode
from antipode.shim import decode
from antipode._dry_run.records import Records
from antipode.shim import floor, record_write
from tests.unit._dry_runs import fake, write

antipode.configure(mode="dry-run", dry_run_dir=sys.argv[1])
store = fake(reads_from="replica")
with antipode.scope():
    record_write(write())
    floor(store)
    floor(store)
    os._exit(0)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where this process's dry run writes."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    return tmp_path


@pytest.fixture
def replica() -> FakeStore:
    """A store of which nothing is visible."""
    return fake(reads_from="replica")


def counts(folder: Path) -> list[int]:
    """How many reads each record of reads stands for."""
    return [one.get("reads", 1) for one in records(folder, "read")]


def test_verdict_is_of_the_moment_of_the_read(folder: Path, replica: FakeStore) -> None:
    """A barrier, a write and an end of the lineage that come later change nothing of it."""
    with antipode.scope():
        record_write(write(1))
        floor(replica)
        antipode.barrier(timeout=1)
        floor(replica)
        record_write(write(2))
    antipode.root()
    record_write(write(3))
    floor(replica)
    antipode.stop()
    assert verdicts(folder) == ["unguarded", "guarded", "unguarded"]
    found = records(folder, "read")
    assert [[each["version"] for each in one["writes"]] for one in found] == [["1"], ["1"], ["3"]]


def test_guards_that_come_in_later_are_too_late(folder: Path, replica: FakeStore) -> None:
    """A response may tell of a barrier, behind which the read before it was not."""
    with antipode.scope() as other:
        record_write(write())
        antipode.barrier(timeout=1)
        answer = decode(other.text())
    with antipode.scope() as held:
        record_write(write())
        floor(replica)
        held.merge(answer)
        floor(replica)
    assert verdicts(folder) == ["unguarded", "guarded"]


def test_record_is_there_once_something_else_happened(folder: Path, replica: FakeStore) -> None:
    """Of all reads the last alone may have no record yet, which the request's end writes."""
    with antipode.scope():
        record_write(write())
        floor(replica)
        floor(replica)
        assert len(records(folder, "read")) == 1
    assert len(records(folder, "read")) == 2
    assert counts(folder) == [1, 1]


def test_crash_loses_the_last_record_alone(tmp_path: Path) -> None:
    """Whoever dies without a word has written down all but the last read."""
    subprocess.run([sys.executable, "-c", CRASHING, str(tmp_path)], check=True)
    assert len(records(tmp_path, "read")) == 1


@pytest.mark.parametrize("repeated", [1, 2, 500])
def test_same_read_in_a_row_is_one_record(folder: Path, replica: FakeStore, repeated: int) -> None:
    """A loop that reads is written down once, with how often; every read of it is counted."""
    metric = Metric("unguarded_read", "posts")
    before = antipode.metrics().get(metric, 0)
    with antipode.scope():
        record_write(write())
        for _ in range(repeated):
            floor(replica)
        floor(replica)  # Another line.
    assert counts(folder) == [repeated, 1]
    assert antipode.metrics()[metric] == before + repeated + 1


def test_whatever_differs_is_a_record_of_its_own(folder: Path, replica: FakeStore) -> None:
    """Another write, a barrier, another request: the same line is another read each time."""
    for request in range(2):
        with antipode.scope():
            record_write(write(1))
            for step in range(6):
                if step == 2:
                    record_write(write(2 + request))
                if step == 4:
                    antipode.barrier(timeout=1)
                floor(replica)
    assert counts(folder) == [2, 2, 2] * 2
    assert verdicts(folder) == ["unguarded", "unguarded", "guarded"] * 2


def test_read_belongs_to_the_test_that_made_it(
    folder: Path, replica: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where what happens next does so in another test."""
    antipode.root()
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "test_it.py::test_first (call)")
    record_write(write())
    floor(replica)
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "test_it.py::test_second (call)")
    antipode.stop()
    (read,) = records(folder, "read")
    assert read["test"] == "test_it.py::test_first"


def test_wait_counts_from_the_read(folder: Path, replica: FakeStore) -> None:
    """However long nothing else happens: a barrier would have stood at the read."""
    clock: Any = replica.clock
    with antipode.scope():
        record_write(write())
        floor(replica)
        clock.at(1.5, lambda: None)
        clock.run()
        replica.advance("log", 1, at_s=2.0)
    clock.run()
    (evidence,) = records(folder, "evidence")
    assert evidence["confirmed"] is True
    assert evidence["waited_s"] == pytest.approx(2.0, abs=0.1)


def test_no_read_of_many_threads_is_lost(folder: Path, replica: FakeStore) -> None:
    """Each read of each thread is in one record, which lies within its own request's."""
    threads, requests, reads = 8, 40, 5

    def serve(_: int) -> None:
        for _ in range(requests):
            with antipode.scope():
                record_write(write())
                for _ in range(reads):
                    floor(replica)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(serve, range(threads)))
    assert sum(counts(folder)) == threads * requests * reads
    opened = {one["request"]: one["n"] for one in records(folder, "write")}
    assert all(one["n"] > opened[one["request"]] for one in records(folder, "read"))


def test_records_are_in_the_order_of_what_they_tell_of(
    folder: Path, replica: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who goes on while another thread writes its read down waits for that."""
    writing, gone_on = threading.Event(), threading.Event()
    plain = Records.put

    def put(held: Records, kind: str, about: str, **options: Any) -> int:
        if kind == "read":
            writing.set()
            gone_on.wait(0.3)  # In vain.
        return plain(held, kind, about, **options)

    monkeypatch.setattr(Records, "put", put)

    def elsewhere() -> None:
        with antipode.scope():
            pass

    with ThreadPoolExecutor(1) as pool, antipode.scope():
        record_write(write(1))
        floor(replica)
        other = pool.submit(elsewhere)
        assert writing.wait(10)
        record_write(write(2))
        gone_on.set()
        other.result()
    (mine,) = {one["request"] for one in records(folder, "write")}
    told = [one["kind"] for one in records(folder) if one.get("request") == mine]
    assert told == ["scope", "write", "read", "write"]


def test_log_handler_may_read(
    folder: Path, replica: FakeStore, caplog: pytest.LogCaptureFixture
) -> None:
    """What is told of a finding may itself read, write and end up here again."""
    handled = threading.Event()

    class Reading(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if not handled.is_set():
                handled.set()
                floor(replica)

    handler = Reading()
    logging.getLogger("antipode").addHandler(handler)
    try:
        with antipode.scope():
            record_write(write())
            floor(replica)
    finally:
        logging.getLogger("antipode").removeHandler(handler)
    antipode.configure(mode="enforce")
    assert handled.is_set()
    assert len(verdicts(folder)) == 2


def _reads_at_last(replica: FakeStore) -> None:
    floor(replica)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_last_read_of_a_child_is_written(folder: Path, replica: FakeStore) -> None:
    """A child of multiprocessing exits past atexit, in the middle of its parent's request."""
    with antipode.scope():
        record_write(write())
        child = multiprocessing.get_context("fork").Process(target=_reads_at_last, args=(replica,))
        child.start()
        child.join()
        assert child.exitcode == 0
        assert len(records(folder, "read")) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_does_not_write_what_its_parent_noted(folder: Path, replica: FakeStore) -> None:
    """A read that was noted before a fork is the parent's alone."""
    with antipode.scope():
        record_write(write())
        floor(replica)
        child = os.fork()
        if not child:
            antipode.configure(mode="enforce")
            os._exit(0)
        os.waitpid(child, 0)
        assert not records(folder, "read")
    assert len(records(folder, "read")) == 1
