"""What scopes, messages and barriers call, ask and poll."""

from __future__ import annotations

from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest
import redis

import antipode
from antipode import Lineage, WriteId
from antipode_shims import embedded, rabbitmq
from antipode_shims.redis import instrument_client, uninstrument_client
from antipode_testing import FakeStore, VirtualClock, wait_until
from tests.budgets._file import Counted
from tests.budgets._profile import difference, steady_calls
from tests.budgets._wire import Wire, redis_commands
from tests.conftest import antipode_threads
from tools import sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from antipode_testing import RedisTopology

HOUR = 490_000
THREE = Lineage(WriteId(name, f"log-{name}", 7, written_hour=HOUR) for name in "abc")
#: What a request depends on that a barrier finds visible.
POSTS = "posts"


def scoped(given: Lineage | str | None) -> None:
    """A request that does nothing."""
    with antipode.scope(given):
        pass


def handled(headers: dict[str, str]) -> None:
    """A message whose handler does nothing."""
    with rabbitmq.message(headers):
        pass


CALLS: dict[str, Callable[[], object]] = {
    "scope: empty": partial(scoped, None),
    "scope: 3 entries": partial(scoped, THREE),
    "scope: text of 3 entries": partial(scoped, antipode.serialize(THREE)),
    "message: no lineage": partial(handled, {}),
    "message: 3 entries": partial(
        handled, {"baggage": f"antipode={antipode.serialize(THREE)}", "antipode-sent": "1"}
    ),
}


@pytest.mark.parametrize("line", CALLS)
def test_a_request_that_does_nothing_is_within_its_budget(
    hold: Callable[..., None], line: str
) -> None:
    """A scope's begin and end call what the file says, and no function more."""
    nothing = steady_calls(lambda: None)
    hold(difference(line, steady_calls(CALLS[line]), nothing))


@pytest.mark.parametrize("lag_ms", [5, 20, 50, 500])
def test_a_barrier_that_waits_polls_within_its_budget(
    hold: Callable[..., None], lag_ms: int
) -> None:
    """By the virtual clock: so many polls until what is that late is visible."""
    clock = VirtualClock()
    store = FakeStore(POSTS, clock, reads_from="replica")
    antipode.shim.register(store)
    store.advance("log", 7, at_s=lag_ms / 1000)
    clock.barrier(Lineage([WriteId(POSTS, "log", 7, written_hour=HOUR)]), timeout=30)
    clock.run()
    polls = {"polls": len(store.look_times_s)}
    hold(Counted(f"barrier: waits {lag_ms} ms", polls, {}))


@pytest.mark.parametrize("call", ["write", "read"])
def test_a_call_of_the_embedded_store_is_within_its_budget(
    hold: Callable[..., None], tmp_path: Path, call: str
) -> None:
    """All of it counts: the store is the library's own, and has no server."""
    with closing(embedded.shim(POSTS, tmp_path / "posts.db")) as posts:
        write = partial(posts.write, "key", b"x")
        with antipode.scope():
            write()
        called: Callable[[], object] = write if call == "write" else partial(posts.read, "key")
        counted = steady_calls(called, antipode.scope)
    hold(difference(f"embedded: {call}", counted, steady_calls(lambda: None)))


@pytest.fixture
def wire(antipode_redis: RedisTopology) -> Iterator[Wire]:
    """A proxy to the replica, which has all that was written."""
    with Wire(antipode_redis.replica, redis_commands) as between:
        yield between


@pytest.fixture
def client(wire: Wire) -> Iterator[redis.Redis]:
    """An instrumented client of the replica."""
    with closing(redis.Redis(*wire.address)) as made:
        instrument_client(made, datastore=POSTS, reads_from="replica")
        yield made
        uninstrument_client(made)


@pytest.fixture
def written(antipode_redis: RedisTopology) -> Lineage:
    """The lineage of a request whose write the replica has."""
    with closing(redis.Redis(*antipode_redis.primary)) as made, antipode.scope():
        instrument_client(made, datastore=POSTS)
        made.set("budget", "x")
        lineage = antipode.current()
        uninstrument_client(made)
    antipode_redis.wait_replicated()
    return lineage


@contextmanager
def request_of(lineage: Lineage) -> Iterator[None]:
    """A request that depends on *lineage*, while no watcher polls for another."""
    wait_until(lambda: not antipode_threads(), what="watchers to end", timeout_s=5)
    with antipode.scope(lineage):
        yield


@pytest.mark.store("redis")
def test_the_walk_of_a_write_is_read() -> None:
    """`python -m tools.sizes` sees a write of Redis enter the shim, the request and the lineage."""
    entered = set(sizes.write_walk())
    assert {"antipode_shims.redis._clients", "antipode._request", "antipode._lineage"} <= entered


def barrier_and_read(client: redis.Redis) -> None:
    """The barrier of a read, and the read that it holds until its server has shown enough."""
    antipode.barrier(timeout=5, at="read")
    client.get("budget")


def read_guarded(client: redis.Redis) -> None:
    """A read whose barrier is automatic."""
    client.get("budget")


BARRIERS: dict[str, Callable[[redis.Redis], object]] = {
    "barrier: visible": lambda _: antipode.barrier(timeout=5),
    "barrier: visible, at read": lambda _: antipode.barrier(timeout=5, at="read"),
    "barrier: visible, at read, and the read": barrier_and_read,
    "check: visible": lambda _: antipode.check(),
}


@pytest.mark.store("redis")
@pytest.mark.parametrize("line", BARRIERS)
def test_a_barrier_at_what_is_visible_is_within_its_budget(
    hold: Callable[..., None], wire: Wire, client: redis.Redis, written: Lineage, line: str
) -> None:
    """It calls, asks and starts as many functions, servers and threads as the file says."""
    call, scope = partial(BARRIERS[line], client), partial(request_of, written)
    calls, others = steady_calls(call, scope), wire.added_by(call, scope)
    hold(difference(line, calls, steady_calls(lambda: None), ("redis",), others))


@pytest.mark.store("redis")
def test_a_read_with_an_automatic_barrier_is_within_its_budget(
    hold: Callable[..., None], wire: Wire, client: redis.Redis, written: Lineage
) -> None:
    """A read that waits by itself for what its request wrote adds what the file says."""
    call, scope = partial(read_guarded, client), partial(request_of, written)
    with closing(redis.Redis(*wire.address)) as made:
        read = partial(read_guarded, made)
        plain, before = steady_calls(read, scope), wire.added_by(read, scope)
    antipode.configure(barriers="auto")
    ours, now = steady_calls(call, scope), wire.added_by(call, scope)
    now.subtract(before)
    hold(difference("redis-py: read, automatic barrier", ours, plain, ("redis",), now))


@pytest.mark.store("redis")
def test_a_barrier_that_is_off_asks_nobody(
    wire: Wire, client: redis.Redis, written: Lineage
) -> None:
    """With ``mode="off"`` nothing is exchanged, and no thread starts."""
    antipode.configure(mode="off", barriers="auto")
    added = wire.added_by(partial(antipode.barrier, timeout=5), partial(request_of, written))
    assert not +added
    reads = wire.added_by(partial(read_guarded, client), partial(request_of, written))
    assert reads == {"exchanges": 1, "statements": 1, "threads": 0}
