"""Reads of a dry run are judged and written down as they are sent."""

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
from antipode.shim import decode, floor, record_write
from antipode.telemetry import Metric

from ._dry_runs import fake, records, verdicts, write

if TYPE_CHECKING:
    from pathlib import Path

    from antipode_testing import FakeStore

#: Reads at two lines, and dies without a word.
CRASHING = """
import os
import sys
import antipode
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


def test_record_is_there_before_the_read_goes_on(folder: Path, replica: FakeStore) -> None:
    """What is sent is written down already."""
    with antipode.scope():
        record_write(write())
        floor(replica)
        assert len(records(folder, "read")) == 1


def test_crash_loses_no_read(tmp_path: Path) -> None:
    """Whoever dies without a word has written down every read."""
    subprocess.run([sys.executable, "-c", CRASHING, str(tmp_path)], check=True)
    assert len(records(tmp_path, "read")) == 2


def test_each_read_of_a_loop_is_a_record(folder: Path, replica: FakeStore) -> None:
    """Reads that are alike are written down and counted one by one."""
    metric = Metric("unguarded_read", "posts")
    before = antipode.telemetry.metrics().get(metric, 0)
    with antipode.scope():
        record_write(write())
        for _ in range(500):
            floor(replica)
    assert len(records(folder, "read")) == 500
    assert antipode.telemetry.metrics()[metric] == before + 500


def test_each_read_is_judged_by_itself(folder: Path, replica: FakeStore) -> None:
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
    once = ["unguarded"] * 4 + ["guarded"] * 2
    assert verdicts(folder) == once * 2


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
    """Each read of each thread is a record, which lies within its own request's."""
    threads, requests, reads = 8, 40, 5

    def serve(_: int) -> None:
        for _ in range(requests):
            with antipode.scope():
                record_write(write())
                for _ in range(reads):
                    floor(replica)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(serve, range(threads)))
    assert len(records(folder, "read")) == threads * requests * reads
    opened = {one["request"]: one["n"] for one in records(folder, "write")}
    assert all(one["n"] > opened[one["request"]] for one in records(folder, "read"))


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
