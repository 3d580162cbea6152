"""Automatic barriers: reads demand what their request depends on, by a time of the request."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import (
    BarrierTimeout,
    ConfigurationError,
    IncompleteLineage,
    Lineage,
    StaleSnapshot,
    Status,
    UnknownDatastore,
    WriteId,
)
from antipode._barrier.automatic import concerns
from antipode._runtime.clock import SystemClock
from antipode.shim import Floor, Observation, Unreachable, floor, register
from antipode.telemetry import Metric, metrics
from tests.unit._floors import floor_of, set_floor

from ._fake_server import FakeServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POST = WriteId("posts", "log", 7)
LATER = WriteId("posts", "log", 9, 490_000)
ORDER = WriteId("orders", "log", 3)


class HandClock(SystemClock):
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        """Seconds that the test let pass."""
        return self.now_s

    def advance(self, seconds: float) -> None:
        """Let *seconds* pass."""
        self.now_s += seconds


@pytest.fixture(autouse=True)
def _automatic() -> Iterator[None]:
    antipode.configure(barriers="auto", auto_timeout=1.0, on_stale="serve")
    yield
    antipode.configure(barriers="explicit", auto_timeout=1.0, on_stale="serve", on_unknown=None)


@pytest.fixture
def clock() -> HandClock:
    """What the store's time is."""
    return HandClock()


@pytest.fixture
def posts(clock: HandClock) -> Iterator[FakeServer]:
    """A store whose clients hold reads back."""
    server = FakeServer("posts")
    server.floors = True
    server.clock = clock
    register(server)
    yield server
    server.close()


def asked(posts: FakeServer) -> Floor:
    """The floor of the next read, which has one."""
    found = floor(posts)
    assert found is not None
    return found


def explicit_floor(clock: HandClock) -> Floor:
    """What a barrier of five seconds for POST leaves."""
    return floor_of("posts", POST, timeout_s=5, clock=clock)


def after(
    clock: HandClock, seconds: float, status: Status = Status.NOT_YET
) -> Callable[[float], Observation]:
    """Looks that take so long, and show all writes with *status*."""

    def look(_: float) -> Observation:
        clock.advance(seconds)
        return Observation("server-1", dict.fromkeys((POST, LATER), status))

    return look


def served() -> int:
    """How many reads were answered stale."""
    return metrics().get(Metric("served_stale", "posts"), 0)


@pytest.mark.parametrize(
    ("on_unknown", "on_stale", "unknown", "stale"),
    [(None, "raise", 1, 0), ("report", "raise", 1, 0), ("raise", "serve", 0, 1)],
)
def test_a_datastore_that_is_unknown_here_is_counted(
    posts: FakeServer, on_unknown: Any, on_stale: Any, unknown: int, stale: int
) -> None:
    """A misspelt name, as each dependency on what has no shim here, is never passed over unseen."""
    antipode.configure(on_unknown=on_unknown, on_stale=on_stale)
    name = Metric("unknown_store", "psots")
    before = metrics().get(name, 0), served()
    with antipode.scope(Lineage([WriteId("psots", "log", 7)])):
        assert floor(posts) is None
        floor(posts, reads=False)
    assert (metrics().get(name, 0), served()) == (before[0] + unknown, before[1] + stale)


def test_a_datastore_that_is_unknown_here_is_refused_where_barriers_refuse_it(
    posts: FakeServer,
) -> None:
    """With ``on_unknown="raise"`` and ``on_stale="raise"`` the read raises what a barrier would."""
    antipode.configure(on_unknown="raise", on_stale="raise")
    with (
        antipode.scope(Lineage([WriteId("psots", "log", 7)])),
        pytest.raises(UnknownDatastore, match="psots"),
    ):
        floor(posts)


def test_nothing_is_demanded_of_other_stores(posts: FakeServer) -> None:
    """Without a dependency on the datastore, and without a scope, a read is the plain read."""
    assert floor(posts) is None
    with antipode.scope():
        assert floor(posts) is None
    with antipode.scope(Lineage([ORDER])):
        assert floor(posts) is None


@pytest.mark.parametrize(
    ("lineage", "said"),
    [
        (Lineage(), False),
        (Lineage([WriteId("others", "log", 1)]), False),
        (Lineage([WriteId("posts", "log", 1)]), True),
        (Lineage([WriteId("others", "log", 1), WriteId("posts", "log", 1)]), True),
        (Lineage(incomplete=[("others", "size")]), False),
        (Lineage(incomplete=[("posts", "size")]), True),
        (Lineage(incomplete=[("", "size")]), True),
    ],
    ids=str,
)
def test_what_concerns_a_store(lineage: Lineage, *, said: bool) -> None:
    """What is of it, or of nobody knows whom: of anything else nothing is asked."""
    assert concerns(lineage, "posts") is said


def test_what_the_lineage_has_is_demanded(posts: FakeServer) -> None:
    """The demand follows the lineage, and what was shown of the same demand is remembered."""
    with antipode.scope(Lineage([POST, ORDER])) as scope:
        first = asked(posts)
        assert first.writes == {POST}
        assert first.accepts(Observation("server-1", {POST: Status.VISIBLE}))
        assert asked(posts).proved("server-1")
        scope.append(ORDER)
        assert asked(posts).proved("server-1")
        scope.append(LATER)
        assert asked(posts).writes == {LATER}
        assert not asked(posts).proved("server-1")


def test_block_client_and_process(posts: FakeServer) -> None:
    """A block goes before what was said of a client, and that before the setting."""
    with antipode.scope(Lineage([POST])):
        posts.wait_by("explicit")
        assert floor(posts) is None
        with antipode.barriers("auto"):
            assert floor(posts) is not None
        posts.wait_by("auto")
        antipode.configure(barriers="explicit")
        assert floor(posts) is not None
        with antipode.barriers("explicit"):
            assert floor(posts) is None
        for mode in ("off", "dry-run"):
            antipode.configure(mode=mode)
            try:
                assert floor(posts) is None
            finally:
                antipode.configure(mode="enforce")


def test_what_is_neither_is_refused(posts: FakeServer) -> None:
    """A word that is none of the settings is an error where it is given."""
    with pytest.raises(ConfigurationError), antipode.barriers("off"):  # type: ignore[arg-type]
        pass
    with pytest.raises(ConfigurationError):
        posts.wait_by("off")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError):
        antipode.configure(barriers="automatic")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError):
        antipode.configure(auto_timeout=-1)
    with pytest.raises(ConfigurationError):
        antipode.configure(on_stale="pass")  # type: ignore[arg-type]


def test_time_is_of_the_request(posts: FakeServer, clock: HandClock) -> None:
    """Reads spend one time; what is left then is one look for each, for which nobody waits."""
    with antipode.scope(Lineage([POST])):
        asked(posts).hold(after(clock, 0.6, Status.VISIBLE))
        assert asked(posts).left_s == pytest.approx(0.4)
        before = served()
        asked(posts).hold(after(clock, 0.6))
        assert served() == before + 1
        late = asked(posts)
        assert late.left_s == late.block_s(1.0) == 0
        assert late.accepts(Observation("server-1", {POST: Status.NOT_YET}))
        assert served() == before + 2


def test_reads_at_the_same_time_spend_it_once(posts: FakeServer, clock: HandClock) -> None:
    """Two reads that are held during the same half second leave the other half."""
    looking = threading.Barrier(3)

    def look(_: float) -> Observation:
        looking.wait(5)
        looking.wait(5)
        return Observation("server-1", {POST: Status.VISIBLE})

    with antipode.scope(Lineage([POST])):
        floors = [asked(posts), asked(posts)]
        threads = [threading.Thread(target=each.hold, args=(look,)) for each in floors]
        for thread in threads:
            thread.start()
        looking.wait(5)
        clock.advance(0.5)
        looking.wait(5)
        for thread in threads:
            thread.join(5)
        assert asked(posts).left_s == pytest.approx(0.5)


def test_no_request_waits_longer_than_any_barrier(posts: FakeServer) -> None:
    """``max_timeout`` bounds the time of automatic barriers, too."""
    antipode.configure(auto_timeout=90, max_timeout=2)
    try:
        with antipode.scope(Lineage([POST])):
            assert asked(posts).left_s == pytest.approx(2)
    finally:
        antipode.configure(max_timeout=30)


def test_far_server_is_asked_once_the_time_is_up(posts: FakeServer, clock: HandClock) -> None:
    """The look that is left may last half a second: a slow link costs no connection."""
    given: list[float] = []

    def look(timeout_s: float) -> Observation:
        given.append(timeout_s)
        return after(clock, 0.2, Status.VISIBLE)(timeout_s)

    with antipode.scope(Lineage([POST])):
        asked(posts).hold(after(clock, 2))
        before = served()
        asked(posts).hold(look)
        assert given == [0.5]
        assert served() == before


def test_read_that_fails_is_not_served(posts: FakeServer, clock: HandClock) -> None:
    """Where the server does not answer, the client's own error follows, and nothing is counted."""

    def look(_: float) -> Observation:
        clock.advance(2)
        raise Unreachable("no answer")

    with antipode.scope(Lineage([POST])):
        before = served()
        with pytest.raises(Unreachable):
            asked(posts).hold(look)
        asked(posts).expire(Unreachable("no answer"))
        assert served() == before
        antipode.configure(on_stale="raise")
        with pytest.raises(BarrierTimeout):
            asked(posts).expire(Unreachable("no answer"))


def test_branches_share_the_time(posts: FakeServer, clock: HandClock) -> None:
    """A branch that fulfils a promise spends the time of its request."""
    with antipode.scope(Lineage([POST])):
        promise = antipode.promise("orders", expires_in_s=60)
        with antipode.fulfilling(promise):
            asked(posts).hold(after(clock, 0.7, Status.VISIBLE))
        assert asked(posts).left_s == pytest.approx(0.3)


def test_raising(posts: FakeServer, clock: HandClock) -> None:
    """With ``on_stale="raise"`` a read raises, of an incomplete lineage, too."""
    antipode.configure(on_stale="raise")
    with antipode.scope(Lineage([POST])):
        with pytest.raises(BarrierTimeout):
            asked(posts).hold(after(clock, 2))
        with pytest.raises(BarrierTimeout):
            asked(posts).accepts(Observation("server-1", {POST: Status.NOT_YET}))
    with antipode.scope(Lineage(incomplete=[("posts", "in_doubt")])):
        with pytest.raises(IncompleteLineage):
            floor(posts)
        assert floor(posts, reads=False) is None


@pytest.mark.parametrize("status", [Status.NOT_YET, Status.VISIBLE])
def test_no_time_at_all(posts: FakeServer, clock: HandClock, status: Status) -> None:
    """With a budget of 0 a read looks once, never pauses, and is served or raises at once."""
    looks: list[float] = []

    def look(timeout_s: float) -> Observation:
        looks.append(timeout_s)
        return after(clock, 0, status)(timeout_s)

    antipode.configure(auto_timeout=0)
    with antipode.scope(Lineage([POST])):
        held, before = asked(posts), served()
        assert held.left_s == held.block_s(1.0) == 0
        held.hold(look)
        assert served() - before == (status is Status.NOT_YET)
        antipode.configure(on_stale="raise")
        refused = pytest.raises(BarrierTimeout) if status is Status.NOT_YET else nullcontext()
        with refused:
            asked(posts).hold(look)
    assert looks == [0.5, 0.5]


def test_store_that_holds_no_reads_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """When its client is instrumented; of one that holds reads, nothing is said."""
    for _ in range(2):
        server = FakeServer("inbox-of-this-test")
        register(server)
        server.close()
    holding = FakeServer("feed-of-this-test")
    holding.floors = True
    register(holding)
    holding.close()
    (record,) = [one for one in caplog.records if "of-this-test" in one.getMessage()]
    assert "no read of 'inbox-of-this-test' waits automatically" in record.getMessage()


def test_explicit_floor_goes_first(posts: FakeServer, clock: HandClock) -> None:
    """An explicit floor has its own timeout and errors; then the request's time is spent."""
    with antipode.scope(Lineage([POST])) as scope:
        set_floor(scope, explicit_floor(clock))
        explicit = asked(posts)
        assert explicit.left_s == pytest.approx(5)
        scope.append(LATER)
        both = asked(posts)
        assert both.writes == {POST, LATER}
        before = served()
        both.hold(_shows_post_after(clock, 3))
        assert served() == before + 1
        with pytest.raises(BarrierTimeout):
            asked(posts).hold(after(clock, 3))


def _shows_post_after(clock: HandClock, seconds: float) -> Callable[[float], Observation]:
    def look(_: float) -> Observation:
        clock.advance(1)
        seen = Status.VISIBLE if clock.monotonic() >= start_s + seconds else Status.NOT_YET
        return Observation("server-1", {POST: seen, LATER: Status.NOT_YET})

    start_s = clock.monotonic()
    return look


def test_incomplete_lineage_proves_what_was_shown(posts: FakeServer, clock: HandClock) -> None:
    """A read that is shown all that can be shown is counted once, and a session builds on it."""
    with antipode.scope(Lineage([POST], incomplete=[("posts", "in_doubt")])):
        held, before = asked(posts), served()
        assert served() == before
        held.hold(after(clock, 0.1, Status.VISIBLE))
        assert (served(), held.served) == (before + 1, False)
        held.passed()
        assert served() == before + 1
        assert asked(posts).proved("server-1")


def test_read_that_raises_is_not_counted(posts: FakeServer, clock: HandClock) -> None:
    """What a barrier that was called refuses is served to nobody, whatever the lineage misses."""
    with antipode.scope(Lineage(incomplete=[("posts", "in_doubt")])) as scope:
        set_floor(scope, explicit_floor(clock))
        before = served()
        with pytest.raises(BarrierTimeout):
            asked(posts).hold(after(clock, 9))
        assert served() == before


def test_old_snapshot_is_served(posts: FakeServer, clock: HandClock) -> None:
    """A snapshot that is too old stays, and is counted, unless an explicit floor is against it."""
    error = StaleSnapshot("old")
    with antipode.scope(Lineage([POST])) as scope:
        before = served()
        asked(posts).fail_snapshot(error, lambda _: False)
        assert served() == before + 1
        set_floor(scope, explicit_floor(clock))
        scope.append(LATER)
        with pytest.raises(StaleSnapshot):
            asked(posts).fail_snapshot(error, lambda _: False)
        asked(posts).fail_snapshot(error, lambda floor: floor.writes == {POST})
        assert served() == before + 2


def test_old_snapshot_is_refused_where_stale_reads_raise(posts: FakeServer) -> None:
    """It shows nothing, whether or not an explicit floor is met, and is not counted."""
    error = StaleSnapshot("old")
    antipode.configure(on_stale="raise")
    with antipode.scope(Lineage([POST])):
        before = served()
        with pytest.raises(StaleSnapshot):
            asked(posts).fail_snapshot(error, lambda _: True)
        assert served() == before
