"""The dry run: nothing waits or raises, and each read that should have waited is told."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import ConfigurationError, Lineage, Status
from antipode._runtime import config as _config
from antipode._runtime import metrics as _metrics
from antipode.shim import (
    count,
    floor,
    record_read,
    record_shown,
    record_write,
    stored_lineage,
)
from antipode.telemetry import Metric
from antipode_testing import FakeStore, VirtualClock
from tests._costs import plain

from ._dry_runs import LOG, fake, lints, records, verdicts, write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where this process, in a dry run, writes."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path / "run", region="eu")
    return tmp_path / "run"


@pytest.fixture
def replica() -> FakeStore:
    """What this process reads."""
    return fake()


def test_read_without_a_barrier_is_unguarded(folder: Path, replica: FakeStore) -> None:
    """What the request wrote and nobody waited for is told, counted, and told where."""
    before = antipode.telemetry.metrics().get(Metric("unguarded_read", "posts"), 0)
    with antipode.scope():
        record_write(write())
        assert floor(replica) is None
    (found,) = records(folder, "read")
    assert found["verdict"] == "unguarded"
    assert found["datastore"] == "posts"
    assert found["writes"] == [{"datastore": "posts", "log": LOG, "version": "1"}]
    assert found["site"]["function"] == "test_read_without_a_barrier_is_unguarded"
    assert found["site"]["file"].endswith("tests/unit/test_dry_run.py")
    assert plain(found["test"]).endswith("::test_read_without_a_barrier_is_unguarded")
    assert antipode.telemetry.metrics()[Metric("unguarded_read", "posts")] == before + 1


def test_place_is_logged_once(
    replica: FakeStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read in a loop is one line of the log; without a directory that and counts are all."""
    monkeypatch.setattr(_metrics, "_logged", set())
    antipode.configure(mode="dry-run")
    with antipode.scope(), caplog.at_level(logging.WARNING, logger="antipode"):
        record_write(write())
        for _ in range(3):
            floor(replica)
    assert len([line for line in caplog.messages if "without a barrier" in line]) == 1


def test_read_behind_a_barrier_is_guarded(folder: Path, replica: FakeStore) -> None:
    """A barrier in a dry run waits for nothing, says so, and guards what it would wait for."""
    with antipode.scope():
        record_write(write())
        result = antipode.barrier(timeout=1)
        assert floor(replica) is None
    assert result.ok
    assert [(each.status, each.cause) for each in result.outcomes] == [(Status.EXCLUDED, "dry run")]
    assert verdicts(folder) == ["guarded"]
    (barrier,) = records(folder, "barrier")
    assert barrier["guards"] == [{"datastore": "posts", "log": LOG, "version": "1"}]
    assert (barrier["at"], barrier["only"], barrier["exclude"], barrier["dry"]) == (
        "now",
        None,
        [],
        True,
    )
    assert not replica.look_times_s


def test_later_write_is_not_covered_by_an_earlier_guard(folder: Path, replica: FakeStore) -> None:
    """A guard covers its log up to its version, and no further."""
    with antipode.scope():
        record_write(write(5))
        antipode.barrier(timeout=1)
        record_write(write(6))
        floor(replica)
        antipode.barrier(timeout=1)
        floor(replica)
    assert verdicts(folder) == ["unguarded", "guarded"]


def test_opaque_versions_are_guarded_one_by_one(folder: Path, replica: FakeStore) -> None:
    """Versions without an order are covered by themselves alone."""
    with antipode.scope():
        record_write(write("a"))
        antipode.barrier(timeout=1)
        record_write(write("b"))
        floor(replica)
    (found,) = records(folder, "read")
    assert [each["version"] for each in found["writes"]] == ["b"]


@pytest.mark.parametrize("options", [{"only": "users"}, {"exclude": ["posts"]}])
def test_left_out_is_not_guarded(folder: Path, replica: FakeStore, options: Any) -> None:
    """What ``only`` or ``exclude`` leaves out is not waited for, so not guarded."""
    with antipode.scope():
        record_write(write())
        antipode.barrier(timeout=1, **options)
        floor(replica)
    assert verdicts(folder) == ["unguarded"]


def test_unknown_store_is_not_guarded(folder: Path) -> None:
    """What nothing is registered for cannot be waited for, so it is not guarded."""
    store = FakeStore("posts", VirtualClock(), reads_from="replica")
    with antipode.scope():
        record_write(write())
        assert antipode.barrier(timeout=1).ok
        floor(store)
    assert verdicts(folder) == ["unguarded"]


def test_check_counts_as_a_barrier(folder: Path, replica: FakeStore) -> None:
    """Whoever goes on when a check is met is guarded by it; it is no misplaced barrier."""
    with antipode.scope():
        antipode.check()
        record_write(write())
        assert antipode.check().ok
        floor(replica)
    assert verdicts(folder) == ["guarded"]
    assert not lints(folder)


def test_enforced_barrier_guards(folder: Path, replica: FakeStore) -> None:
    """A barrier that does wait guards when it succeeds, and not when it fails."""
    replica.floors = True
    with antipode.scope():
        record_write(write())
        assert not antipode.barrier(timeout=0.01, mode="enforce", on_unmet="return").ok
        floor(replica)
        assert antipode.barrier(timeout=1, mode="enforce", at="read").ok
        assert floor(replica) is not None
    assert verdicts(folder) == ["unguarded", "guarded"]
    assert [one["dry"] for one in records(folder, "barrier")] == [False]


@pytest.mark.parametrize("face", ["async", "callback", "read"])
def test_every_face_guards(folder: Path, replica: FakeStore, face: str) -> None:
    """The asyncio and callback faces, and ``at="read"``, wait for nothing and guard alike."""
    replica.floors = True
    with antipode.scope():
        record_write(write())
        if face == "async":
            assert asyncio.run(antipode.barrier_async(timeout=1)).ok
        elif face == "callback":
            done = threading.Event()
            antipode.barrier_callback(lambda _: done.set(), timeout=1)
            assert done.wait(10)
        else:
            assert antipode.barrier(timeout=1, at="read").ok
        assert floor(replica) is None
    assert verdicts(folder) == ["guarded"]
    (barrier,) = records(folder, "barrier")
    assert barrier["site"]["function"] == "test_every_face_guards"


def test_covering_entries_alone_are_no_finding(folder: Path, replica: FakeStore) -> None:
    """What a read elsewhere sampled is waited for, never reported."""
    with antipode.scope(Lineage([write(covering=True)])):
        floor(replica)
    assert not verdicts(folder)


def test_reads_of_the_primary_are_no_finding(folder: Path) -> None:
    """Where the write went, nothing is missing."""
    primary = FakeStore("posts", VirtualClock(), reads_from="primary")
    with antipode.scope():
        record_write(write())
        floor(primary)
    assert not verdicts(folder)


def test_suspected_read_is_judged_when_it_is_one(folder: Path, replica: FakeStore) -> None:
    """A client that does not know yet whether anything is read is not told on."""
    with antipode.scope():
        record_write(write())
        floor(replica, reads=False)
    assert not verdicts(folder)


def test_what_a_read_showed_needs_no_barrier(folder: Path, replica: FakeStore) -> None:
    """A read that shows a write by its own token proves that it is there."""
    with antipode.scope():
        for _ in range(2):
            floor(replica)
            record_shown(replica, write(7))
            record_read(Lineage([write(7)]))
    assert verdicts(folder) == ["guarded"]


def test_what_was_missing_a_barrier_still_is(folder: Path, replica: FakeStore) -> None:
    """Whether a read without a barrier showed the write is a matter of lag, the verdict is not."""
    with antipode.scope():
        record_write(write(7))
        floor(replica)
        record_shown(replica, write(7))
        record_read(Lineage([write(7)]))
        floor(replica)
    assert verdicts(folder) == ["unguarded", "unguarded"]


def test_nothing_raises(folder: Path, replica: FakeStore) -> None:
    """What would be an error of the wait, the scope or the lineage is none."""
    antipode.configure(on_unscoped="raise")
    record_write(write())
    assert antipode.barrier(timeout=1).ok
    assert antipode.barrier("1~?", timeout=1).ok
    assert antipode.barrier(Lineage([write()]), timeout=1, at="read").ok
    fake()  # A second replica under one name.
    assert antipode.barrier(Lineage([write()]), timeout=1).ok
    marked = Lineage(incomplete=[("posts", "in_doubt")])
    assert antipode.barrier(marked, timeout=1).ok


def test_one_barrier_alone_runs_dry(replica: FakeStore) -> None:
    """``mode="dry-run"`` of a call waits for nothing and says so; the next call enforces."""
    lineage = Lineage([write()])
    result = antipode.barrier(lineage, timeout=1, mode="dry-run")
    assert result.ok
    assert [each.cause for each in result.outcomes] == ["dry run"]
    assert not antipode.barrier(lineage, timeout=0.01, on_unmet="return").ok


def test_lints_of_writes_barriers_and_values(folder: Path, replica: FakeStore) -> None:
    """Told besides: an unscoped write, a barrier without sense, a value of unknown past."""
    record_write(write())
    with antipode.scope():
        antipode.barrier(timeout=1)
        antipode.barrier(Lineage([write()]), timeout=1, only="users")
        count("companion_absent", "posts")
        count("foreign", "posts")
        stored_lineage("posts", "?")
        stored_lineage("nobody", "?")
    assert lints(folder) == [
        ("unscoped-write", "posts", ""),
        ("nothing-to-wait-for", "", "its lineage is empty"),
        ("nothing-to-wait-for", "", "nothing of it can be waited for"),
        ("unknown-lineage", "posts", "absent"),
        ("unknown-lineage", "posts", "foreign"),
        ("unknown-lineage", "posts", "unreadable"),
    ]


def test_threads_and_tasks_share_their_request(folder: Path, replica: FakeStore) -> None:
    """A guard of one thread covers the reads of others of its request, and of no other."""
    import contextvars

    def request(number: int) -> None:
        with antipode.scope(), ThreadPoolExecutor(1) as pool:
            record_write(write(number))
            pool.submit(contextvars.copy_context().run, antipode.barrier, timeout=1).result()
            floor(replica)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(request, range(1, 9)))
    with antipode.scope():
        record_write(write(1))
        floor(replica)
    assert sorted(verdicts(folder)) == ["guarded"] * 8 + ["unguarded"]
    requests = {one["request"] for one in records(folder, "scope")}
    assert len(requests) == 9


def test_same_requests_give_the_same_findings(tmp_path: Path) -> None:
    """No server and no clock takes part: twice the same, whatever is visible when."""
    shown = []
    for lag_s in (0.0, 1000.0):
        store = fake()
        store.advance(LOG, 9, at_s=lag_s)
        antipode.configure(mode="dry-run", dry_run_dir=tmp_path / str(lag_s))
        with antipode.scope():
            record_write(write(3))
            floor(store)
            antipode.barrier(timeout=1)
            floor(store)
        found = records(tmp_path / str(lag_s), "read")
        shown.append([(one["verdict"], one["writes"], one["site"]) for one in found])
        antipode.shim.unregister("posts")
    assert shown[0] == shown[1]


def test_mode_is_read_from_the_environment(
    tmp_path: Path, replica: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``ANTIPODE_MODE`` and ``ANTIPODE_DRY_RUN_DIR`` need no change to code."""
    monkeypatch.setenv("ANTIPODE_MODE", "dry-run")
    monkeypatch.setenv("ANTIPODE_DRY_RUN_DIR", str(tmp_path))
    monkeypatch.setenv("OTEL_SERVICE_NAME", "reader")
    _config.reset_config()
    with antipode.scope():
        record_write(write())
        floor(replica)
    assert verdicts(tmp_path) == ["unguarded"]
    (process,) = records(tmp_path, "process")
    assert (process["service"], process["region"]) == ("reader", None)


def test_dry_run_ends(folder: Path, replica: FakeStore) -> None:
    """Back in ``enforce`` nothing is judged or written."""
    antipode.configure(mode="enforce")
    with antipode.scope():
        record_write(write())
        floor(replica)
    assert not folder.exists()


@pytest.mark.parametrize("given", ["", 7])
def test_directory_is_refused_where_it_is_none(given: Any) -> None:
    """A mistake in the setting is one clear line."""
    with pytest.raises(ConfigurationError, match="dry_run_dir"):
        antipode.configure(dry_run_dir=given)


def test_enforcing_process_loads_nothing_of_it() -> None:
    """A process that never asked for a dry run has none of its modules."""
    program = (
        "import sys, antipode\n"
        "antipode.configure(mode='enforce')\n"
        "with antipode.scope(): antipode.check()\n"
        "names = ('_dry_run', '_dry_run.notes')\n"
        "assert not [n for n in names if f'antipode.{n}' in sys.modules]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
