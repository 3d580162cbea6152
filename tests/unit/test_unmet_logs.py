"""What a barrier or read did not get is logged, seldom, with what to do."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import Lineage, WriteId
from antipode.shim import Observation, floor
from antipode.telemetry import Metric, metrics
from antipode_testing import wait_until
from tests.unit._dry_runs import lints
from tests.unit._fake_server import FakeServer
from tests.unit._floors import floor_of

if TYPE_CHECKING:
    from pathlib import Path


def said(caplog: pytest.LogCaptureFixture, datastore: str) -> list[str]:
    return [each.getMessage() for each in caplog.records if repr(datastore) in each.getMessage()]


def test_a_barrier_logs_what_it_did_not_get(caplog: pytest.LogCaptureFixture) -> None:
    """One line for each datastore and outcome within a minute; none for what is returned."""
    antipode.shim.register(FakeServer("late-of-this-test"))
    lineage = Lineage([WriteId("late-of-this-test", "log", 7)])
    assert not antipode.check(lineage)
    antipode.barrier(lineage, timeout=0.02, on_unmet="return")
    assert not said(caplog, "late-of-this-test")
    for _ in range(2):
        with pytest.raises(antipode.BarrierTimeout):
            antipode.barrier(lineage, timeout=0.02)
    (line,) = said(caplog, "late-of-this-test")
    assert line.startswith("a barrier did not see all that it depends on in 'late-of-this-test'")
    assert "(not_yet). It ended with barrier_timeout: not visible after" in line
    assert line.endswith("retry later, read the primary, or give a longer timeout")


def test_a_record_that_is_kept_keeps_no_frame(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever keeps records, Sentry's breadcrumbs say, keeps nothing of the request with them."""
    server = FakeServer("kept-of-this-test")
    antipode.shim.register(server)

    def request() -> weakref.ref[set[str]]:
        of_the_request = {"its body"}
        with pytest.raises(antipode.BarrierTimeout):
            antipode.barrier(Lineage([WriteId("kept-of-this-test", "log", 7)]), timeout=0.02)
        return weakref.ref(of_the_request)

    kept = request()
    gc.collect()
    assert said(caplog, "kept-of-this-test")
    assert kept() is None


def test_a_mark_is_logged_by_its_subject(caplog: pytest.LogCaptureFixture) -> None:
    """A barrier that ends with an incomplete lineage logs what is missing, and why."""
    with pytest.raises(antipode.IncompleteLineage):
        antipode.barrier(Lineage(incomplete=[("marked-of-this-test", "in_doubt")]), timeout=1)
    (line,) = said(caplog, "marked-of-this-test")
    assert "(in_doubt). It ended with incomplete_lineage: " in line


def test_a_read_that_is_refused_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A read that a floor ends is logged as a read."""
    write = WriteId("held-of-this-test", "log", 7)
    for _ in range(2):
        with pytest.raises(antipode.BarrierTimeout):
            floor_of("held-of-this-test", write, timeout_s=0.02).hold(
                lambda _: Observation("server-1", {})
            )
    (line,) = said(caplog, "held-of-this-test")
    assert line.startswith("a read did not see all that it depends on in 'held-of-this-test'")


class Unique(FakeServer):
    """A fake store whose logs have names that no other store's can have."""

    def log_start(self, key: str) -> WriteId | None:
        return WriteId(self.datastore, key, 1)


def test_a_read_of_one_store_under_two_names_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The read waits for no answer: the store is asked beside it, and the log follows."""
    store = Unique("named-here", position=7)
    store.floors = True
    antipode.shim.register(store)
    antipode.configure(barriers="auto")
    counted = Metric("two_names", "named-there")
    before = metrics().get(counted, 0)
    for _ in range(3):
        with antipode.scope(Lineage([WriteId("named-there", "log", 7)])):
            assert floor(store) is None
    wait_until(lambda: metrics().get(counted, 0) > before, what="the answer", timeout_s=5)
    _, line = said(caplog, "named-there")  # The first one says that it was let pass.
    assert "'named-here' has its log: one store has two names; spell it alike" in line
    store.close()
    assert metrics()[counted] == before + 1


def test_a_dry_run_finds_one_store_under_two_names(tmp_path: Path) -> None:
    """Also of a process that only reads there: no write of it names the log."""
    store = Unique("read-here", position=7)
    store.floors = True
    antipode.shim.register(store)
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    for _ in range(3):
        with antipode.scope(Lineage([WriteId("written-there", "log", 7)])):
            floor(store)
    wait_until(lambda: lints(tmp_path), what="the answer", timeout_s=5)
    store.close()
    antipode.configure(mode="enforce")
    said = "the store that is registered here as 'read-here' has its log"
    assert lints(tmp_path) == [("two-names", "written-there", said)]
