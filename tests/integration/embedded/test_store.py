"""The embedded store's file: what a write is, what tokens mean, and what can be wrong with it."""

from __future__ import annotations

import itertools
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import BarrierTimeout, ConfigurationError, Lineage, Status, WriteId
from antipode.shim import Unreachable
from antipode_shims import embedded
from antipode_shims.embedded import EmbeddedStore, NotPrimary, StoreUnavailable, Token
from antipode_shims.embedded._store import store as _store
from antipode_testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRITER = """
import sys
from antipode_shims.embedded import EmbeddedStore
path, name, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
with EmbeddedStore(path, create="primary") as store:
    for each in range(number):
        token = store.put(f"{name}-{each}", name.encode())
        print(token.history, token.position)
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    """A primary."""
    with EmbeddedStore(tmp_path / "a.db", create="primary") as store:
        yield store


def test_newest_entry_is_the_value(store: EmbeddedStore) -> None:
    """A put replaces the whole of what was there; the entry says when and as what it came."""
    store.put("post", b"one", lineage="1")
    token = store.put("post", b"two")
    entry = store.get("post")
    assert entry is not None
    assert (entry.value, entry.lineage) == (b"two", None)
    assert Token(entry.history, entry.position) == token
    assert entry.written_hour > 0
    assert store.get("other") is None


def test_delete_leaves_a_tombstone(store: EmbeddedStore) -> None:
    """A delete is a write: it has a position, keeps a lineage, and hides the value."""
    store.put("post", b"one")
    token = store.delete("post", lineage="1")
    entry = store.get("post")
    assert entry is not None
    assert (entry.value, entry.lineage, entry.position) == (None, "1", token.position)


def test_any_bytes_and_any_key(store: EmbeddedStore) -> None:
    """Values are bytes as they are, empty ones included; keys any text."""
    for key, value in (("", b""), ("клю̈ч'; --", bytes(range(256))), ("x" * 5000, b"\0")):
        store.put(key, value)
        entry = store.get(key)
        assert entry is not None
        assert entry.value == value


@pytest.mark.parametrize(("key", "value"), [(b"k", b"v"), ("k", "v"), ("k", 1), (1, b"v")])
def test_other_types_are_refused(store: EmbeddedStore, key: object, value: object) -> None:
    """What SQLite would give back as something else is refused, and nothing is written."""
    with pytest.raises(TypeError, match="bytes"):
        store.put(key, value)  # type: ignore[arg-type]
    assert store.position() == 0


def test_processes_share_a_primary(tmp_path: Path) -> None:
    """Processes write at once: every position is issued once, and is that of its write."""
    path, number = tmp_path / "a.db", 150
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name, str(number)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "abc"
    ]
    printed = [process.communicate(timeout=60)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    with EmbeddedStore(path) as store:
        keys = {entry.position: entry.key for entry in store.entries(0, most=10_000)}
        assert sorted(keys) == list(range(1, 3 * number + 1))
        for name, text in zip("abc", printed, strict=True):
            for each, line in enumerate(text.splitlines()):
                history, position = line.split()
                assert keys[int(position)] == f"{name}-{each}"
                assert store.state().judge(Token(history, int(position))) is Status.VISIBLE


def test_threads_share_a_store(store: EmbeddedStore) -> None:
    """One store serves many threads."""
    with ThreadPoolExecutor(6) as pool:
        tokens = list(pool.map(lambda n: store.put(str(n % 7), str(n).encode()), range(300)))
    assert sorted(token.position for token in tokens) == list(range(1, 301))


def test_replica_refuses_writes(tmp_path: Path) -> None:
    """A replica's file takes no write, until it is promoted."""
    with EmbeddedStore(tmp_path / "b.db", create="replica") as store:
        with pytest.raises(NotPrimary, match="replica"):
            store.put("post", b"1")
        history = store.promote()
        assert store.put("post", b"1") == Token(history, 1)
        assert store.promote() == history


def test_opening_again_changes_nothing(store: EmbeddedStore) -> None:
    """A file keeps its role, node and history whoever opens it, as whatever."""
    store.put("post", b"1")
    before = store.state()
    for role in ("primary", "replica"):
        with EmbeddedStore(store.path, create=role) as again:  # type: ignore[arg-type]
            assert again.state() == before


def test_new_boot_starts_a_new_history(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a restart of the machine positions belong to a new history.

    The restart may have cost the last writes; their positions must not stand for others.
    """
    first = store.put("post", b"1")
    monkeypatch.setattr(_store, "_boot", lambda: "another boot")
    second = store.put("post", b"2")
    assert second.history != first.history
    assert store.put("post", b"3").history == second.history
    state = store.state()
    assert state.judge(first) is Status.VISIBLE
    assert state.judge(Token(first.history, 2)) is Status.LOST


def test_missing_file(tmp_path: Path) -> None:
    """A missing file is a condition that may pass, and the error names it."""
    with EmbeddedStore(tmp_path / "none.db") as store:
        with pytest.raises(StoreUnavailable, match=r"none\.db.*no such file") as caught:
            store.get("post")
        assert isinstance(caught.value, Unreachable)
        with EmbeddedStore(tmp_path / "none.db", create="primary") as other:
            other.put("post", b"1")
        assert store.get("post") is not None
    assert not (tmp_path / "typo.db").exists()


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100])
def test_foreign_file(tmp_path: Path, content: bytes) -> None:
    """A file that is no embedded store is unavailable; it is not touched."""
    path = tmp_path / "foreign.db"
    path.write_bytes(content)
    with EmbeddedStore(path) as store:
        for look in (store.state, lambda: store.get("k"), lambda: store.put("k", b"v")):
            with pytest.raises(StoreUnavailable, match=r"foreign\.db"):
                look()
    assert path.read_bytes() == content


def test_foreign_database(tmp_path: Path) -> None:
    """A database of somebody else is unavailable, and the error says so."""
    path = tmp_path / "foreign.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine(x)")
    with EmbeddedStore(path) as store, pytest.raises(StoreUnavailable, match="no such table"):
        store.state()


def test_damaged_file(store: EmbeddedStore, tmp_path: Path) -> None:
    """A file that was damaged under the shim is unreachable: no barrier passes or hangs."""
    shim = embedded.shim("posts", store.path, reads_from="replica")
    write = WriteId("posts", *store.put("post", b"1"), 500_000)
    assert antipode.barrier(Lineage([write]), timeout=5).ok
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"damaged" * 1000)
    for suffix in ("-wal", "-shm"):
        store.path.with_name(f"a.db{suffix}").unlink()
    damaged.replace(store.path)
    with pytest.raises(BarrierTimeout) as caught:
        antipode.barrier(Lineage([write]), timeout=0.2)
    assert [o.status for o in caught.value.unmet] == [Status.UNREACHABLE]
    with pytest.raises(StoreUnavailable):
        shim.read("post")


def test_replaced_file_is_noticed(store: EmbeddedStore, tmp_path: Path) -> None:
    """A path that holds another file than before is opened again: no look at a deleted one."""
    store.put("post", b"1")
    old = store.state()
    with EmbeddedStore(tmp_path / "new.db", create="primary") as other:
        other.put("post", b"other")
    for suffix in ("-wal", "-shm"):
        store.path.with_name(f"a.db{suffix}").unlink()
    (tmp_path / "new.db").replace(store.path)
    entry = store.get("post")
    assert entry is not None
    assert entry.value == b"other"
    assert store.state().incarnation != old.incarnation


@pytest.mark.parametrize("path", ["no/folder/a.db", "."])
def test_impossible_path(tmp_path: Path, path: str) -> None:
    """A path where no file can be is a mistake, named at once."""
    with pytest.raises(ConfigurationError, match=r"folder|is no file"):
        embedded.shim("posts", tmp_path / path, reads_from="replica")


def test_bad_options(tmp_path: Path) -> None:
    """Options that mean nothing are refused."""
    for options in ({"reads_from": "any"}, {"on_read": "keep"}):
        with pytest.raises(ConfigurationError):
            embedded.shim("posts", tmp_path / "a.db", **options)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError):
        embedded.shim("", tmp_path / "a.db")


def test_closed_store_says_so(store: EmbeddedStore) -> None:
    """A closed store does not open itself again."""
    store.close()
    store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        store.get("post")


def test_follow_is_a_queue(store: EmbeddedStore) -> None:
    """Entries come in order, those that are there and then those that arrive, each once."""
    store.put("m", b"0")
    seen = store.follow(0)
    assert next(seen).value == b"0"
    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(lambda: [next(seen).value for _ in range(3)])
        for number in (1, 2, 3):
            store.put("m", str(number).encode())
        assert later.result(5) == [b"1", b"2", b"3"]


def test_follow_ends_when_idle(store: EmbeddedStore) -> None:
    """With ``idle_s`` it ends after so much silence; from ``position()`` only news come."""
    store.put("m", b"old")
    assert list(store.follow(store.position(), idle_s=0.02)) == []
    assert [entry.value for entry in store.follow(idle_s=0.02)] == [b"old"]


def test_follow_passes_nothing_over(tmp_path: Path) -> None:
    """When a follower's file is seeded from another branch, it goes on from where both agree."""
    with (
        EmbeddedStore(tmp_path / "a.db", create="primary") as old,
        embedded.Replicator(tmp_path / "a.db", tmp_path / "b.db") as link,
        EmbeddedStore(tmp_path / "b.db") as new,
    ):
        old.put("m", b"both")
        link.catch_up()
        link.pause()
        old.put("m", b"lost")
        followed = old.follow(0)
        assert [entry.value for entry in itertools.islice(followed, 2)] == [b"both", b"lost"]
        link.promote()
        new.put("m", b"new")
        old.demote()
        with (
            embedded.Replicator(tmp_path / "b.db", tmp_path / "a.db"),
            ThreadPoolExecutor(1) as pool,
        ):
            assert pool.submit(next, followed).result(5).value == b"new"


def test_messages_carry_their_lineage(tmp_path: Path) -> None:
    """The store as a notifier: a message has the lineage of its request, and its own write."""
    cause = WriteId("posts", "log", 3, 400_000)
    writer = embedded.shim("inbox", tmp_path / "a.db", reads_from="primary")
    reader = embedded.shim("inbox", tmp_path / "b.db", reads_from="replica")
    with embedded.Replicator(tmp_path / "a.db", tmp_path / "b.db"):
        with antipode.scope(Lineage([cause])) as scope:
            writer.write("user", b"a post!")
            sent = scope.lineage
        with antipode.scope() as scope:
            message = next(reader.follow())
            assert scope.lineage.empty
        assert (message.key, message.value) == ("user", b"a post!")
        assert message.lineage == sent
        assert list(reader.follow(message.position, idle_s=0.02)) == []


def test_reads_may_ignore(tmp_path: Path) -> None:
    """With ``on_read="ignore"`` a read returns the lineage and leaves the scope alone."""
    shim = embedded.shim("posts", tmp_path / "a.db", reads_from="primary", on_read="ignore")
    with antipode.scope():
        written = shim.write("post", b"1")
    with antipode.scope() as scope:
        assert shim.read("post") == (b"1", written)
        assert scope.lineage.empty


def test_file_is_small(store: EmbeddedStore) -> None:
    """A stored lineage of one entry costs less than 100 bytes; without one nothing is stored."""
    shim = embedded.shim("posts", store.path, reads_from="primary")
    with antipode.scope():
        shim.write("first", b"1")
        shim.write("second", b"2")
    first, second = store.get("first"), store.get("second")
    assert first is not None
    assert first.lineage is None
    assert second is not None
    assert len(second.lineage or "") < 100


def test_wait_unseeded_replica(tmp_path: Path) -> None:
    """A replica that no replicator ever seeded is not yet anything, and the cause is told."""
    EmbeddedStore(tmp_path / "b.db", create="replica").close()
    embedded.shim("posts", tmp_path / "b.db", reads_from="replica")
    with pytest.raises(BarrierTimeout, match="never seeded"):
        antipode.barrier(Lineage([WriteId("posts", "log", 1)]), timeout=0.1)


def test_token_of_another_kind_is_undecidable(store: EmbeddedStore) -> None:
    """A version that no embedded store issues cannot be judged; it is not waited for."""
    embedded.shim("posts", store.path, reads_from="replica")
    result = antipode.check(Lineage([WriteId("posts", "log", "opaque")]))
    assert [outcome.status for outcome in result.outcomes] == [Status.UNDECIDABLE]


def test_barrier_follows_the_file(store: EmbeddedStore) -> None:
    """A waiting barrier looks when the file changes, not only when its pause is over."""
    shim = embedded.shim("posts", store.path, reads_from="replica")
    endpoint = shim.open_endpoint(timeout_s=1)
    wake = shim.watcher.wake
    endpoint.observe([WriteId("posts", "log", 1)], timeout_s=1)
    with ThreadPoolExecutor(1) as pool:
        pausing = pool.submit(endpoint.pause, 30.0, wake)
        store.put("post", b"1")
        pausing.result(10)
        endpoint.observe([WriteId("posts", "log", 1)], timeout_s=1)
        pausing = pool.submit(endpoint.pause, 30.0, wake)
        wake.set()
        wait_until(pausing.done, what="the pause to end", timeout_s=5)
    endpoint.close()
