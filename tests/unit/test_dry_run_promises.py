"""The dry run and promises: a read that does not wait for a branch is told like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import Lineage, Promise
from antipode._dry_run.notes import Notes
from antipode.shim import floor
from antipode_cli._explain import explanation

from ._dry_runs import fake, records, verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from antipode_testing import FakeStore

PROMISE = Promise("posts", "00112233445566778899aabbccddeeff", 4_000_000_000)
OTHER = Promise("posts", "f" * 32, 4_000_000_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where this process, in a dry run, writes."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path / "run", region="eu")
    return tmp_path / "run"


@pytest.fixture
def replica() -> FakeStore:
    """What this process reads."""
    return fake(promises=True)


def test_read_without_a_barrier_for_a_promise(folder: Path, replica: FakeStore) -> None:
    """The finding names the promise, and its write is the place that promised."""
    with antipode.scope():
        promise = antipode.promise("posts", expires_in_s=60)
        assert floor(replica) is None
    named = {"datastore": "posts", "log": "promise", "version": promise.id}
    (read,) = records(folder, "read")
    (write,) = records(folder, "write")
    assert (read["verdict"], read["writes"]) == ("unguarded", [named])
    assert write["write"] == named
    assert write["site"]["function"] == "test_read_without_a_barrier_for_a_promise"


def test_promise_on_another_store_is_no_finding(folder: Path, replica: FakeStore) -> None:
    """A read misses nothing of what is promised elsewhere."""
    with antipode.scope():
        antipode.promise("carts", expires_in_s=60)
        floor(replica)
    assert verdicts(folder) == []


def test_barrier_guards_promises(folder: Path, replica: FakeStore) -> None:
    """A barrier guards the promises that it would wait for, and no others."""
    with antipode.scope(Lineage(promises=[PROMISE])):
        assert antipode.barrier(timeout=1).ok
        floor(replica)
        antipode.transfer(Lineage(promises=[OTHER]))
        floor(replica)
    assert verdicts(folder) == ["guarded", "unguarded"]


def test_branch_is_not_told_of_its_own_promise(folder: Path, replica: FakeStore) -> None:
    """In its block nothing waits for it, so that nothing is missing."""
    with antipode.scope(Lineage(promises=[PROMISE])), antipode.fulfilling(PROMISE):
        floor(replica)
    assert verdicts(folder) == []


def test_store_that_cannot_look_guards_nothing(folder: Path) -> None:
    """A barrier that cannot wait for promises there guards none."""
    store = fake()
    with antipode.scope(Lineage(promises=[PROMISE])):
        antipode.barrier(timeout=1)
        floor(store)
    assert verdicts(folder) == ["unguarded"]


def test_guards_of_promises_travel() -> None:
    """A guard is an item like that of a write; only its own promise and region are covered."""
    sender, receiver = Notes(), Notes()
    sender.guard("eu", PROMISE)
    items = sender.items()
    receiver.take(items)
    assert receiver.covers("eu", PROMISE)
    assert not receiver.covers("us", PROMISE)
    assert not receiver.covers("eu", OTHER)
    assert sender.items(["carts"]) == {item for item in items if item.startswith("0r")}


def test_explain_shows_the_guard() -> None:
    """A person reads in the text which promise is guarded where."""
    notes = Notes()
    notes.guard("eu", PROMISE)
    items = notes.items()
    lines = explanation(Lineage(unknown=items), sum(map(len, items)))
    shown = "\n".join("".join(span.text for span in line) for line in lines)
    assert f"guarded in region eu: {PROMISE}" in shown
