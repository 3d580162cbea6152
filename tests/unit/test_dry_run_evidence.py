"""Evidence: whether an unguarded read can have shown what it depends on, found out afterwards."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Status
from antipode._dry_run import staleness_check as _evidence
from antipode._dry_run.staleness_check import BOUND_S, EAGER, MOST, MOST_OPEN
from antipode.shim import floor, record_write
from antipode.telemetry import Metric

from ._dry_runs import LOG, fake, lints, records, write

if TYPE_CHECKING:
    from pathlib import Path

    from antipode_testing import FakeStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where this process, in a dry run, writes."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def replica() -> FakeStore:
    """What this process reads, on a clock of its own."""
    return fake()


def unguarded(store: FakeStore, number: int = 1) -> None:
    """A request that reads without a barrier."""
    with antipode.scope():
        record_write(write(number))
        floor(store)


def found(folder: Path) -> list[tuple[bool | None, float | None]]:
    """What the evidence says."""
    return [(one["confirmed"], one["waited_s"]) for one in records(folder, "evidence")]


def time_passes(store: FakeStore) -> None:
    """Run everything that waits for time."""
    clock: Any = store.clock
    clock.run()


def test_missing_dependency_confirms(folder: Path, replica: FakeStore) -> None:
    """A look after the read that does not show it proves a miss; then it is timed."""
    replica.advance(LOG, 1, at_s=0.5)
    unguarded(replica)
    time_passes(replica)
    ((confirmed, waited_s),) = found(folder)
    assert confirmed is True
    assert waited_s == pytest.approx(0.5, abs=0.05)
    (evidence,) = records(folder, "evidence")
    (read,) = records(folder, "read")
    assert evidence["of"] == read["n"]
    assert evidence["test"] == read["test"]


def test_visible_dependency_proves_nothing(folder: Path, replica: FakeStore) -> None:
    """What is there afterwards may have been there before: nobody knows."""
    replica.advance(LOG, 1)
    unguarded(replica)
    time_passes(replica)
    assert found(folder) == [(None, 0.0)]


def test_looks_end_at_the_bound(folder: Path, replica: FakeStore) -> None:
    """What does not come is not waited for longer than the bound."""
    unguarded(replica)
    time_passes(replica)
    assert found(folder) == [(True, None)]
    assert replica.look_times_s[-1] <= BOUND_S + 1
    assert replica.open_endpoints <= 1


@pytest.mark.parametrize(("status", "confirmed"), [(Status.LOST, True), (Status.UNKNOWN_LOG, None)])
def test_lost_and_unknown_end_the_looks(
    folder: Path, replica: FakeStore, status: Status, confirmed: object
) -> None:
    """What is lost was not shown; of what is unknown nothing is known."""
    replica.set_status(write(), status)
    unguarded(replica)
    time_passes(replica)
    assert found(folder) == [(confirmed, None)]


def test_failing_looks_are_repeated(folder: Path, replica: FakeStore) -> None:
    """A server that is away for a while is asked again."""
    replica.take_down(from_s=0.0, until_s=1.0)
    replica.advance(LOG, 1, at_s=2.0)
    unguarded(replica)
    time_passes(replica)
    ((confirmed, waited_s),) = found(folder)
    assert confirmed is True
    assert waited_s == pytest.approx(2.0, abs=0.1)


def test_broken_server_ends_them(folder: Path, replica: FakeStore) -> None:
    """A server that will never answer is left alone; the read is neither proved nor timed."""
    replica.break_down()
    unguarded(replica)
    time_passes(replica)
    assert found(folder) == [(None, None)]


def test_looks_begin_when_the_read_is_over(folder: Path, replica: FakeStore) -> None:
    """Nothing is looked at while the read may still be under way: that would prove nothing."""
    with antipode.scope():
        record_write(write())
        floor(replica)
        thread = threading.Thread(target=unguarded, args=(replica, 2))
        thread.start()
        thread.join()
        assert len(replica.watcher._subscribers) == 1  # The other thread's, whose read is over.
    assert len(replica.watcher._subscribers) == 2


def test_another_task_does_not_tell_that_it_is_over(folder: Path, replica: FakeStore) -> None:
    """Tasks of one thread are told apart."""

    async def other() -> None:
        antipode.current()
        with antipode.scope():
            pass

    async def request() -> None:
        with antipode.scope():
            record_write(write())
            floor(replica)
            await asyncio.create_task(other())
            assert not replica.watcher._subscribers
        assert len(replica.watcher._subscribers) == 1

    asyncio.run(request())


def test_number_of_looks_is_bounded(folder: Path, replica: FakeStore) -> None:
    """So many reads are looked into at a time; the rest is dropped and counted."""
    metric = Metric("dry_run_evidence_dropped", "posts")
    before = antipode.telemetry.metrics().get(metric, 0)
    for number in range(MOST + 3):
        unguarded(replica, number)
    assert antipode.telemetry.metrics()[metric] == before + 3
    time_passes(replica)
    assert len(found(folder)) == MOST
    unguarded(replica)
    time_passes(replica)
    assert len(found(folder)) == MOST + 1


def test_of_many_reads_of_a_finding_some_are_looked_into(
    folder: Path, replica: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first ones all are; then one in a while, so that the requests that make them go on."""
    monkeypatch.setattr(_evidence, "EVERY_S", 1e9)
    metric = Metric("dry_run_evidence_dropped", "posts")
    before = antipode.telemetry.metrics().get(metric, 0)
    for number in range(EAGER + 3):
        unguarded(replica, number)
        time_passes(replica)
    assert len(found(folder)) == EAGER
    assert antipode.telemetry.metrics()[metric] == before + 3
    assert len(records(folder, "read")) == EAGER + 3
    with antipode.scope():
        record_write(write())
        floor(replica)  # Another finding.
    time_passes(replica)
    assert len(found(folder)) == EAGER + 1
    monkeypatch.setattr(_evidence, "EVERY_S", 0)
    unguarded(replica)
    time_passes(replica)
    assert len(found(folder)) == EAGER + 2


def test_number_of_open_reads_is_bounded(folder: Path, replica: FakeStore) -> None:
    """Of so many reads it may be open whether they are over; the rest is dropped and counted."""
    metric = Metric("dry_run_evidence_dropped", "posts")
    before = antipode.telemetry.metrics().get(metric, 0)

    async def reads(over: asyncio.Event) -> None:
        floor(replica)
        await over.wait()

    async def request() -> None:
        over = asyncio.Event()
        tasks = [asyncio.create_task(reads(over)) for _ in range(MOST_OPEN + 3)]
        await asyncio.sleep(0)
        assert antipode.telemetry.metrics()[metric] == before + 3
        over.set()
        await asyncio.gather(*tasks)

    with antipode.scope():
        record_write(write())
        asyncio.run(request())
    assert len(replica.watcher._subscribers) == MOST


def test_read_that_is_open_beyond_the_bound_is_counted(folder: Path, replica: FakeStore) -> None:
    """A read whose task does nothing for longer than the bound is dropped and counted."""
    metric = Metric("dry_run_evidence_dropped", "posts")
    before = antipode.telemetry.metrics().get(metric, 0)

    async def read(over: asyncio.Event) -> None:
        floor(replica)
        await over.wait()

    async def request() -> None:
        over = asyncio.Event()
        reading = asyncio.create_task(read(over))
        await asyncio.sleep(0)
        clock: Any = replica.clock
        clock.at(BOUND_S + 1, lambda: None)
        time_passes(replica)
        with antipode.scope():
            pass
        assert antipode.telemetry.metrics()[metric] == before + 1
        over.set()
        await reading

    with antipode.scope():
        record_write(write())
        asyncio.run(request())
    assert not replica.watcher._subscribers


def test_end_of_a_task_tells_that_its_read_is_over(folder: Path, replica: FakeStore) -> None:
    """A read in a task of its own, as ``wait_for`` makes it, is over when that is."""

    async def read() -> None:
        floor(replica)

    async def request() -> None:
        with antipode.scope():
            record_write(write())
            await asyncio.create_task(read())
            assert not replica.watcher._subscribers

    asyncio.run(request())
    assert len(replica.watcher._subscribers) == 1


def test_other_replica_is_no_witness(folder: Path, replica: FakeStore) -> None:
    """Where barriers look at another server than the read goes to, nothing is proved."""
    other = type(replica)("posts", replica.clock)  # type: ignore[arg-type]
    other.can_poll = False
    antipode.shim.register(other)
    unguarded(other)
    time_passes(replica)
    assert not found(folder)


def test_closing_the_shim_ends_them(folder: Path, replica: FakeStore) -> None:
    """What is under way ends with the shim, and is recorded."""
    unguarded(replica)
    replica.close()
    assert found(folder) == [(None, None)]


def test_end_of_the_dry_run_ends_them(folder: Path, replica: FakeStore) -> None:
    """Back in ``enforce`` nobody looks any more."""
    unguarded(replica)
    antipode.configure(mode="enforce")
    assert not replica.watcher._subscribers
    assert found(folder) == [(None, None)]


@pytest.mark.parametrize("barriers", [0, 1])
def test_a_server_that_cannot_show_it(folder: Path, replica: FakeStore, barriers: int) -> None:
    """A lint, also where a barrier guards the read: it would not succeed. Nothing is confirmed."""
    with antipode.scope():
        record_write(write())
        replica.set_status(write(), Status.UNKNOWN_LOG)
        for _ in range(barriers):
            antipode.barrier(timeout=1)
        for _ in range(2):
            floor(replica)
    time_passes(replica)
    assert {name for name, _, _ in lints(folder)} == {"unshowable"}
    assert not any(confirmed for confirmed, _ in found(folder))
    assert bool(found(folder)) is not bool(barriers)
