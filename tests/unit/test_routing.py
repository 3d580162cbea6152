"""Where a router sends the next read: without a replica, and in requests that go on for long."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import WriteId
from antipode.shim import (
    Endpoint,
    Unreachable,
    record_uncommitted,
    record_write,
    register,
    scope_in,
    wait_first,
)
from tests.unit._fake_server import LINEAGE, POST, FakeServer

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds that nobody would wait for in a test.
FOR_EVER_S = 600.0


class Replica(FakeServer):
    """A replica, at whose address there may be no server."""

    absent: Exception | None = None

    def __init__(self, *, position: int = 0) -> None:
        super().__init__("posts", position=position)
        self.reads_from = "replica"
        self.floors = True

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:
        if self.absent is not None:
            self.opened += 1
            raise Unreachable(str(self.absent)) from self.absent
        return super().open_endpoint(timeout_s=timeout_s)


@pytest.fixture
def replica(monkeypatch: pytest.MonkeyPatch) -> Replica:
    """A replica of ``posts``, whose primary can be asked for its position: 9."""
    monkeypatch.setattr("antipode._runtime.metrics.SELDOM_S", 0.0)  # What other tests logged.
    antipode.configure(
        barriers="auto", on_stale="primary", auto_timeout=FOR_EVER_S, max_timeout=FOR_EVER_S
    )
    primary = FakeServer("posts", position=9)
    primary.fences = True
    register(primary)
    made = Replica()
    register(made)
    return made


def left_s() -> float:
    """Seconds that the reads of this request may still wait for."""
    scope = scope_in()
    assert scope is not None
    return scope.allowance().left_s(antipode.shim.SYSTEM_CLOCK.monotonic())


def test_a_request_reads_what_it_has_written_and_not_committed(replica: Replica) -> None:
    """At the primary, by the connection that wrote; once it is committed the replica is asked."""
    replica.position = 9
    with antipode.scope():
        record_uncommitted(replica, replica, wrote=True)
        assert antipode.reads_from("posts") == "primary"
        record_uncommitted(replica, replica, wrote=False)
        assert antipode.reads_from("posts") == "replica"


REFUSALS = [
    ConnectionRefusedError(111, "Connection refused"),
    socket.gaierror(-2, "Name or service not known"),
    FileNotFoundError(2, "No such file or directory"),
    OSError('connection to server at "127.0.0.1", port 1 failed: Connection refused'),
    OSError('could not translate host name "db" to address: Temporary failure'),
    OSError("(2003, \"Can't connect to MySQL server on 'db' ([Errno 111] Connection refused)\")"),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_a_replica_that_is_not_there_is_not_waited_for(
    replica: Replica, refusal: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """Each request reads at the primary at once; the log says so once."""
    replica.absent = refusal
    for _ in range(6):
        with antipode.scope(LINEAGE):
            assert antipode.reads_from("posts") == "primary"
            assert left_s() > FOR_EVER_S - 60
    (warning,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert warning.startswith("no server of 'posts' is there")
    assert str(refusal) in warning


async def test_nor_is_it_in_asyncio(replica: Replica) -> None:
    """The same in a task."""
    replica.absent = REFUSALS[0]
    with antipode.scope(LINEAGE):
        assert await antipode.reads_from_async("posts") == "primary"


def test_nor_does_a_pool_wait_for_it(replica: Replica) -> None:
    """A client that waits before it takes a connection takes it at once, and fails by itself."""
    replica.absent = REFUSALS[0]
    with antipode.scope(LINEAGE):
        wait_first(replica)
        assert left_s() > FOR_EVER_S - 60


def test_one_that_comes_back_is_read_again(
    replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    """A second later, and where it goes once more the log says that, too."""
    for _ in range(2):
        replica.absent = REFUSALS[0]
        with antipode.scope(LINEAGE):
            assert antipode.reads_from("posts") == "primary"
        replica.absent, replica.position = None, 7
        replica.watcher._absent_s -= 1.0  # A second later.
        with antipode.scope(LINEAGE):
            assert antipode.reads_from("posts") == "replica"
        replica.watcher._drop_endpoint()
    assert len([each for each in caplog.records if each.levelname == "WARNING"]) == 2


def test_a_barrier_waits_for_a_server_that_starts_again(replica: Replica) -> None:
    """It has no other way to go: a poll that was refused is repeated until the deadline."""
    replica.absent = REFUSALS[0]
    result = antipode.barrier(LINEAGE, timeout=0.1, on_unmet="return")
    assert not result
    assert replica.opened > 1
    assert result.unmet[0].status is antipode.Status.UNREACHABLE


@pytest.fixture
def moved(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Ask where to read in a request that was moved and has gone on for long."""
    antipode.configure(auto_timeout=0.0)
    monkeypatch.setattr("antipode._barrier.moved.LONG_S", 0.0)

    def ask() -> str:
        return antipode.reads_from("posts")

    with antipode.scope(LINEAGE):
        assert ask() == "primary"
    return ask


def test_a_long_request_does_not_go_back_in_time(
    replica: Replica, moved: Callable[[], str]
) -> None:
    """It may have read at the primary what came after the write that moved it."""
    with antipode.scope(LINEAGE):
        assert moved() == "primary"
        replica.position = POST.version if isinstance(POST.version, int) else 0
        assert moved() == "primary"
        replica.position = 9  # All that the primary has.
        assert moved() == "replica"
        assert moved() == "replica"


async def test_nor_does_it_in_asyncio(replica: Replica, moved: Callable[[], str]) -> None:
    """The same in a task."""
    with antipode.scope(LINEAGE):
        assert moved() == "primary"
        replica.position = 7
        assert await antipode.reads_from_async("posts") == "primary"
        replica.position = 9
        assert await antipode.reads_from_async("posts") == "replica"


def test_held_reads_of_a_long_request_stay(replica: Replica, moved: Callable[[], str]) -> None:
    """A client that was given its primary asks nobody: it reads there until the request ends."""
    with antipode.scope(LINEAGE):
        assert moved() == "primary"
        replica.position = 7
        unmet = antipode.shim.stays("posts")
        assert unmet is not None
        assert unmet.at_primary
    with antipode.scope(LINEAGE):
        assert antipode.shim.stays("posts") is None


def test_it_stays_where_the_primary_cannot_be_asked(
    replica: Replica, moved: Callable[[], str]
) -> None:
    """Nothing proves then that the replica shows what was read."""
    (primary,) = [each for each in antipode.shim.shims_of("posts") if each is not replica]
    primary.fences = False
    with antipode.scope(LINEAGE):
        assert moved() == "primary"
        replica.position = 9
        assert moved() == "primary"
        record_write(WriteId("posts", "log", 8))
        assert moved() == "primary"
