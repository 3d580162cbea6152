"""The dry run: nothing waits or raises, and each read that should have waited is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage, Metric, Status, WriteId, _config
from antipode.shim import floor, record_write
from antipode.testing import FakeStore, VirtualClock

if TYPE_CHECKING:
    from pathlib import Path

LOG = "log"


def records(folder: Path, kind: str = "") -> list[dict[str, Any]]:
    """What all processes wrote, of one kind."""
    files = sorted(folder.glob("*.jsonl"))
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    found = [json.loads(line) for line in lines]
    return [one for one in found if not kind or one["kind"] == kind]


def write(version: int = 1, *, covering: bool = False) -> WriteId:
    """A write of the datastore."""
    return WriteId("posts", LOG, version, 500_000, covering=covering)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where this process, in dry run, writes."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path / "run", region="eu")
    return tmp_path / "run"


@pytest.fixture
def replica() -> FakeStore:
    """A store whose replica this process reads; nothing is ever visible there."""
    store = FakeStore("posts", VirtualClock())
    antipode.register(store)
    return store


def test_read_without_a_barrier_is_unguarded(folder: Path, replica: FakeStore) -> None:
    """What the request wrote and nobody waited for is reported, with the place of the read."""
    with antipode.scope():
        record_write(write())
        assert floor(replica) is None
    (found,) = records(folder, "read")
    assert found["verdict"] == "unguarded"
    assert found["writes"] == [{"datastore": "posts", "log": LOG, "version": "1"}]
    assert found["site"]["function"] == "test_read_without_a_barrier_is_unguarded"
    assert antipode.metrics()[Metric("unguarded_read", "posts")] >= 1


def test_read_behind_a_barrier_is_guarded(folder: Path, replica: FakeStore) -> None:
    """A barrier in dry run waits for nothing, says so, and guards what it would wait for."""
    with antipode.scope():
        record_write(write())
        result = antipode.barrier(timeout=1)
        floor(replica)
    assert result.ok
    assert [(o.status, o.cause) for o in result.outcomes] == [(Status.EXCLUDED, "dry run")]
    assert [one["verdict"] for one in records(folder, "read")] == ["guarded"]
    (barrier,) = records(folder, "barrier")
    assert barrier["dry"] is True
    assert [one["version"] for one in barrier["guards"]] == ["1"]


def test_covering_entries_alone_are_no_finding(folder: Path, replica: FakeStore) -> None:
    """What a read elsewhere sampled is waited for, never reported."""
    with antipode.scope(Lineage([write(covering=True)])):
        floor(replica)
    assert not records(folder, "read")


def test_enforcing_mode_loads_nothing_of_it() -> None:
    """Without a dry run there is no observer."""
    antipode.configure(mode="enforce")
    assert _config._seam.observer is None
