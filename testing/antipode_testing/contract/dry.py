"""Claims about the dry run: each read at the replica is judged, no other."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from antipode import Lineage, WriteId

from .base import category, replicated, written

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .store import ContractStore


class DryRunContract:
    """Nothing waits, and where a barrier is missing is reported."""

    @category("dry_run")
    def test_read_without_barrier_is_told(
        self, store: ContractStore, key: str, tmp_path: Path
    ) -> None:
        """In a dry run a read at the replica without a barrier is a finding."""
        with dry_run(store, tmp_path), store.antipode.scope():
            write = own_write(store, key)
            store.read(key)
        assert all_verdicts(tmp_path) == [("unguarded", [named(write)])]

    @category("dry_run")
    def test_asynchronous_read_is_told(
        self, store: ContractStore, key: str, tmp_path: Path
    ) -> None:
        """So is one without blocking the event loop."""
        with dry_run(store, tmp_path), store.antipode.scope():
            write = own_write(store, key)
            asyncio.run(store.read_async(key))
        assert all_verdicts(tmp_path) == [("unguarded", [named(write)])]

    @category("dry_run")
    def test_read_behind_barrier_is_guarded(
        self, store: ContractStore, key: str, tmp_path: Path
    ) -> None:
        """A barrier in a dry run waits for nothing, and guards the reads after it."""
        store.topology.pause()
        with dry_run(store, tmp_path), store.antipode.scope():
            write = own_write(store, key)
            assert store.antipode.barrier(timeout=store.timeout_s).ok
            store.read(key)
        assert all_verdicts(tmp_path) == [("guarded", [named(write)])]

    @category("dry_run")
    def test_enforced_barrier_guards(self, store: ContractStore, key: str, tmp_path: Path) -> None:
        """A barrier that waits, though its process is in a dry run, guards as well."""
        with dry_run(store, tmp_path), store.antipode.scope():
            store.write(key, b"1")
            assert store.antipode.barrier(timeout=store.timeout_s, mode="enforce").ok
            assert store.read(key)[0] == b"1"
        assert {verdict for verdict, _ in all_verdicts(tmp_path)} == {"guarded"}

    @category("dry_run")
    def test_covering_position_is_no_finding(
        self, store: ContractStore, key: str, tmp_path: Path
    ) -> None:
        """What a read sampled is waited for, and never reported."""
        covering = replace(written(store, key), covering=True)
        with dry_run(store, tmp_path), store.antipode.scope(Lineage([covering])):
            store.read(key)
        assert not all_verdicts(tmp_path)

    @category("dry_run")
    def test_read_at_primary_is_no_finding(
        self, store: ContractStore, key: str, tmp_path: Path
    ) -> None:
        """A read at the primary misses nothing."""
        with dry_run(store, tmp_path), store.antipode.scope():
            store.write(key, b"1")
            store.read_primary(key)
        assert not all_verdicts(tmp_path)

    @category("dry_run")
    def test_what_a_read_showed_is_no_finding(
        self, store: ContractStore, key: str, tmp_path: Path
    ) -> None:
        """What one read at the replica showed, the next need not wait for."""
        replicated(store, key)
        with dry_run(store, tmp_path), store.antipode.scope():
            store.read(key)
            store.read(key)
        assert "unguarded" not in {verdict for verdict, _ in all_verdicts(tmp_path)}


@contextmanager
def dry_run(store: ContractStore, folder: Path) -> Iterator[None]:
    """A block in which this process is in a dry run and writes its records into *folder*."""
    before = store.antipode.shim.config()
    store.antipode.configure(mode="dry-run", dry_run_dir=folder)
    try:
        yield
    finally:
        store.antipode.configure(mode=before.mode, dry_run_dir=before.dry_run_dir)


def own_write(store: ContractStore, key: str) -> WriteId:
    """Write in the current scope; what entered it."""
    store.write(key, b"1")
    mine = (
        w for w in store.antipode.current() if w.datastore == store.datastore and not w.covering
    )
    write: WriteId
    (write,) = mine
    return write


def named(write: WriteId) -> dict[str, str]:
    """A write as records name it."""
    return {"datastore": write.datastore, "log": write.key, "version": str(write.version)}


def all_verdicts(folder: Path) -> list[tuple[str, list[dict[str, str]]]]:
    """What was said about which writes, each once: a read may take several statements."""
    found: list[tuple[str, list[dict[str, str]]]] = []
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            record: dict[str, Any] = json.loads(line)
            if record["kind"] == "read":
                said = record["verdict"], record["writes"]
                if said not in found:
                    found.append(said)
    return found
