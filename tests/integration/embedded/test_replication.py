"""The embedded store's replicator: its lag, its order, its faults, and what promotion records."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import antipode
from antipode import ConfigurationError, Lineage, Status, WriteId
from antipode_shims import embedded
from antipode_shims.embedded import EmbeddedStore, EmbeddedTopology, Replicator, Token
from antipode_testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Regions(NamedTuple):
    """Two files and what is between them."""

    a: EmbeddedStore
    b: EmbeddedStore
    link: Replicator


@pytest.fixture
def regions(tmp_path: Path) -> Iterator[Regions]:
    """A primary, a replica, no lag."""
    with (
        EmbeddedStore(tmp_path / "a.db", create="primary") as a,
        Replicator(a.path, tmp_path / "b.db") as link,
        EmbeddedStore(tmp_path / "b.db") as b,
    ):
        link.catch_up()
        yield Regions(a, b, link)


def shows(store: EmbeddedStore, token: Token) -> Status:
    """What a file says of a token now."""
    return store.state().judge(token)


def await_token(store: EmbeddedStore, token: Token, *, interval_s: float = 0.001) -> None:
    """Return once a file shows a token."""
    wait_until(
        lambda: shows(store, token) is Status.VISIBLE,
        what=f"{token}",
        timeout_s=10,
        interval_s=interval_s,
    )


@pytest.mark.parametrize("lag_ms", [0, 10, 60])
def test_lag_is_kept(regions: Regions, lag_ms: int) -> None:
    """A write never shows before the lag is over, and shows within two milliseconds after it.

    A busy machine may be later at times, so that being in time once, of many times, will do.
    """
    regions.link.set_lag(lag_ms)

    def late_ms() -> float:
        token = regions.a.put("post", b"x")
        entry = regions.a.get("post")
        assert entry is not None
        await_token(regions.b, token, interval_s=0.0001)
        late = (time.monotonic_ns() - entry.committed_ns) / 1e6 - lag_ms
        assert late >= 0
        return late

    assert any(late_ms() < 2 for _ in range(100))


def test_lag_changes_for_what_is_on_its_way(regions: Regions) -> None:
    """A shorter lag holds for entries that were written under the longer one."""
    regions.link.set_lag(60_000)
    token = regions.a.put("post", b"1")
    assert shows(regions.b, token) is Status.NOT_YET
    regions.link.set_lag(0)
    await_token(regions.b, token)


def test_replica_is_always_a_prefix(regions: Regions) -> None:
    """Entries arrive in order and without gaps, while several threads write."""

    def write(name: str) -> None:
        for number in range(100):
            regions.a.put(f"{name}-{number}", b"x", lineage=name)

    writers = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for each in writers:
        each.start()
    seen = 0
    while seen < 300:
        position = regions.b.position()
        entries = regions.b.entries(0, most=1000)
        assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
        assert len(entries) >= position >= seen
        seen = position
    for each in writers:
        each.join()
    assert regions.b.entries(0, most=1000) == regions.a.entries(0, most=1000)


def test_long_backlog_arrives(regions: Regions) -> None:
    """More entries than are held in memory arrive after a pause, all of them."""
    regions.link.pause()
    for number in range(4_500):
        regions.a.put(str(number), b"x")
    assert regions.b.position() == 0
    assert regions.link.behind() == 4_500
    regions.link.resume()
    wait_until(lambda: regions.link.behind() == 0, what="the backlog", timeout_s=20)
    assert regions.b.entries(0, most=5_000) == regions.a.entries(0, most=5_000)


@pytest.mark.parametrize(("halt", "go_on"), [("pause", "resume"), ("cut", "heal")])
def test_halting(regions: Regions, halt: str, go_on: str) -> None:
    """After ``pause`` or ``cut`` nothing arrives, and after ``resume`` or ``heal`` everything."""
    regions.link.set_lag(60_000)
    before = regions.a.put("post", b"on its way")
    getattr(regions.link, halt)()
    regions.link.set_lag(20)
    tokens = [before, regions.a.put("post", b"later")]
    end_s = time.monotonic() + 0.1
    wait_until(lambda: time.monotonic() > end_s, what="time to pass", timeout_s=5)
    assert [shows(regions.b, token) for token in tokens] == [Status.NOT_YET] * 2
    getattr(regions.link, go_on)()
    await_token(regions.b, tokens[1])


def test_promotion_judges_old_tokens_exactly(regions: Regions) -> None:
    """Up to the branch visible, after it lost where the chain knows, unknown where it does not."""
    kept = regions.a.put("post", b"kept")
    await_token(regions.b, kept)
    regions.link.pause()
    lost = regions.a.put("post", b"lost")
    history = regions.link.promote()
    new = regions.b.put("post", b"new")
    assert new == Token(history, kept.position + 1)
    assert new.position == lost.position
    assert [shows(regions.b, t) for t in (kept, lost, new)] == ["visible", "lost", "visible"]
    assert [shows(regions.a, t) for t in (kept, lost, new)] == [
        "visible",
        "visible",
        "unknown_log",
    ]


def test_promotion_may_keep_what_is_on_its_way(regions: Regions) -> None:
    """``lose_unreplicated=False`` applies everything first, whatever lag or pause."""
    regions.link.set_lag(60_000)
    regions.link.pause()
    token = regions.a.put("post", b"1")
    regions.link.promote(lose_unreplicated=False)
    assert shows(regions.b, token) is Status.VISIBLE


def test_chain_reaches_further_replicas(regions: Regions, tmp_path: Path) -> None:
    """A replica of a promoted replica learns the chain with the log, however late it comes."""
    first = regions.a.put("post", b"1")
    await_token(regions.b, first)
    with (
        Replicator(regions.b.path, tmp_path / "c.db") as second_link,
        EmbeddedStore(tmp_path / "c.db") as c,
    ):
        await_token(c, first)
        regions.link.pause()
        lost = regions.a.put("post", b"2")
        assert shows(c, lost) is Status.NOT_YET
        regions.link.promote()
        wait_until(lambda: shows(c, lost) is Status.LOST, what="the chain", timeout_s=5)
        second = regions.b.put("post", b"2")
        await_token(c, second)
        second_link.promote()
        third = c.put("post", b"3")
        assert [shows(c, t) for t in (first, lost, second, third)] == [
            "visible",
            "lost",
            "visible",
            "visible",
        ]
        assert len(c.state().histories) == 3


def test_promoted_twice_without_a_write(tmp_path: Path) -> None:
    """Histories without a write between them keep their order and their ends."""
    with (
        EmbeddedStore(tmp_path / "a.db", create="primary") as a,
        EmbeddedStore(tmp_path / "b.db", create="replica") as b,
    ):
        first = a.put("post", b"1")
        with Replicator(a.path, b.path) as link:
            link.catch_up()
            link.promote()
        a.demote()
        with Replicator(b.path, a.path) as link:
            link.catch_up()
            link.promote()
        last = a.put("post", b"2")
        middle = b.state().histories[-1][0]
        assert [shows(a, t) for t in (first, Token(middle, 2), last)] == [
            "visible",
            "lost",
            "visible",
        ]
        entry = a.get("post")
        assert entry is not None
        assert entry.history == last.history


def test_old_primary_follows_again(regions: Regions, caplog: pytest.LogCaptureFixture) -> None:
    """A replica on another branch is seeded anew, loudly; it never mixes two branches."""
    regions.link.pause()
    regions.a.put("lost", b"1")
    regions.link.promote()
    new = regions.b.put("new", b"1")
    before = regions.a.state().incarnation
    regions.a.demote()
    with caplog.at_level(logging.WARNING), Replicator(regions.b.path, regions.a.path):
        await_token(regions.a, new)
    assert "another branch" in caplog.text
    assert regions.a.get("lost") is None
    assert regions.a.state().incarnation != before


def test_source_of_another_history(
    regions: Regions, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Another file in the source's place seeds the replica anew; its log is not put on top."""
    for number in range(5):
        token = regions.a.put(f"old-{number}", b"x")
    await_token(regions.b, token)
    with EmbeddedStore(tmp_path / "other.db", create="primary") as other:
        new = [other.put(f"new-{number}", b"x") for number in range(9)]
    regions.a.close()
    for suffix in ("-wal", "-shm"):
        regions.a.path.with_name(f"a.db{suffix}").unlink(missing_ok=True)
    (tmp_path / "other.db").replace(regions.a.path)
    await_token(regions.b, new[-1])
    assert [e.key for e in regions.b.entries(0)] == [f"new-{number}" for number in range(9)]
    assert shows(regions.b, token) is Status.UNKNOWN_LOG
    assert "another branch" in caplog.text


def test_incarnation_changes(regions: Regions) -> None:
    """A promotion and a re-seed change the incarnation, a write does not."""
    token = regions.a.put("post", b"1")
    await_token(regions.b, token)
    incarnations = [regions.b.state().incarnation]
    await_token(regions.b, regions.a.put("post", b"2"))
    assert regions.b.state().incarnation == incarnations[0]
    regions.link.reseed()
    incarnations.append(regions.b.state().incarnation)
    await_token(regions.b, token)
    regions.link.promote()
    incarnations.append(regions.b.state().incarnation)
    assert len(set(incarnations)) == 3


def test_promoted_target_is_left_alone(regions: Regions) -> None:
    """Whoever promotes the target ends its replication: nothing is applied over its own log."""
    token = regions.a.put("post", b"1")
    await_token(regions.b, token)
    regions.b.promote()
    mine = regions.b.put("post", b"mine")
    regions.a.put("post", b"theirs")
    with pytest.raises(ConfigurationError, match="primary"):
        regions.link.catch_up()
    with pytest.raises(ConfigurationError, match="primary"):
        regions.link.reseed()
    entry = regions.b.get("post")
    assert entry is not None
    assert (entry.value, entry.position) == (b"mine", mine.position)


def test_two_replicators_on_one_target(regions: Regions) -> None:
    """A second replicator on the same target does no harm: every entry is applied once."""
    with Replicator(regions.a.path, regions.b.path):
        for number in range(200):
            token = regions.a.put(str(number), b"x")
        await_token(regions.b, token)
    assert [e.key for e in regions.b.entries(0)] == [str(n) for n in range(200)]


def test_source_may_come_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A source that comes soon is no reason to warn; it is replicated as soon as it is there."""
    with Replicator(tmp_path / "a.db", tmp_path / "b.db") as link:
        wait_until(lambda: link.error is not None, what="the error", timeout_s=5)
        assert "no such file" in str(link.error)
        with (
            EmbeddedStore(tmp_path / "a.db", create="primary") as a,
            EmbeddedStore(tmp_path / "b.db") as b,
        ):
            await_token(b, a.put("post", b"1"))
        wait_until(lambda: link.error is None, what="no error", timeout_s=5)
    assert not caplog.records


def test_broken_source_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What keeps it from replicating is its `error`, and if it lasts warned of, once."""
    (tmp_path / "a.db").write_bytes(b"no database" * 100)
    with Replicator(tmp_path / "a.db", tmp_path / "b.db") as link:
        wait_until(lambda: bool(caplog.records), what="a warning", timeout_s=10)
        assert "not a database" in str(link.error)
    assert [r.levelname for r in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("lag_ms", [-1, float("nan"), float("inf")])
def test_bad_lag(tmp_path: Path, lag_ms: float) -> None:
    """A lag that is no duration is refused."""
    with pytest.raises(ConfigurationError, match="lag"):
        Replicator(tmp_path / "a.db", tmp_path / "b.db", lag_ms=lag_ms)


def test_source_is_not_target(tmp_path: Path) -> None:
    """A file does not replicate to itself."""
    with pytest.raises(ConfigurationError, match="same file"):
        Replicator(tmp_path / "a.db", tmp_path / "a.db")


def test_lost_write_under_a_waiting_read(regions: Regions) -> None:
    """End to end: the barrier of a lost write ends with DependencyLost at the promoted file."""
    embedded.shim("posts", regions.b.path, reads_from="replica")
    regions.link.pause()
    write = WriteId("posts", *regions.a.put("post", b"1"), 500_000)
    regions.link.promote()
    with pytest.raises(antipode.DependencyLost):
        antipode.barrier(Lineage([write]), timeout=5)


def test_topology_keeps_its_word() -> None:
    """The topology's methods do what every topology's do, and nothing is left at the end."""
    before = set(threading.enumerate())
    with EmbeddedTopology(lag_ms=5) as topology:
        primary, replica = topology.primary, topology.replica
        with EmbeddedStore(primary) as a, EmbeddedStore(replica) as b:
            topology.cut()
            token = a.put("post", b"1")
            topology.reset()
            await_token(b, token)
            topology.failover(lose_unreplicated=False)
            assert (topology.primary, topology.replica) == (replica, primary)
            token = b.put("post", b"2")
            topology.demote_old_primary()
            topology.wait_replicated()
            assert shows(a, token) is Status.VISIBLE
        topology.reset()
        assert topology.primary != primary
    topology.close()
    assert topology.closed
    assert not primary.parent.exists()
    assert set(threading.enumerate()) <= before
    with pytest.raises(ConfigurationError, match="context manager"):
        topology.pause()


class Process:
    """The replicator as a process."""

    def __init__(self, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "antipode_shims.embedded", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def answer(self) -> str:
        """Its next line."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def tell(self, command: str) -> str:
        """Give a command; the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return self.answer()

    def end(self, number: signal.Signals | None = None) -> tuple[int, str]:
        """End it, by a signal or by the end of its input; its status and what it complained."""
        if number is not None:
            self._process.send_signal(number)
            self._process.wait(20)
        _, complaint = self._process.communicate(timeout=20)
        return self._process.returncode, complaint


def test_process_replicates_and_obeys(tmp_path: Path) -> None:
    """As a process it takes commands, answers each, and ends at the end of its input."""
    with EmbeddedStore(tmp_path / "a.db", create="primary") as a:
        process = Process(a.path, tmp_path / "b.db", "--lag-ms", 20)
        assert process.answer() == "ok"
        with EmbeddedStore(tmp_path / "b.db") as b:
            await_token(b, a.put("post", b"1"))
            assert process.tell("pause") == "ok"
            token = a.put("post", b"2")
            assert process.tell("lag 0") == "ok"
            assert shows(b, token) is Status.NOT_YET
            assert process.tell("resume") == "ok"
            await_token(b, token)
            assert process.tell("lag soon").startswith("error lag takes one number")
            assert process.tell("jump").startswith("error no command 'jump'")
            assert process.tell("promote keep") == "ok"
            assert process.tell("reseed").startswith("error")
            assert b.put("post", b"3").position == token.position + 1
        assert process.end() == (0, "")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_process_ends_quietly(tmp_path: Path, number: signal.Signals, status: int) -> None:
    """A signal ends it at once, without a traceback."""
    EmbeddedStore(tmp_path / "a.db", create="primary").close()
    process = Process(tmp_path / "a.db", tmp_path / "b.db")
    assert process.answer() == "ok"
    assert process.end(number) == (status, "")


def test_process_with_bad_arguments(tmp_path: Path) -> None:
    """Arguments that cannot work give one line that says why."""
    arguments: tuple[Any, ...]
    paths = tmp_path / "a.db", tmp_path / "b.db"
    for arguments in ((tmp_path / "no" / "a.db", paths[1]), (*paths, "--lag-ms", "-1")):
        status, complaint = Process(*arguments).end()
        assert status == 2
        assert len(complaint.splitlines()) == 1
        assert list(tmp_path.iterdir()) == []
