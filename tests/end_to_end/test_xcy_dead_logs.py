"""Values outlive the logs that their lineages speak of: young ones raise, old ones pass and go.

A replication id of Redis ends with a restart or a second failover though no data is lost; a log of
another kind ends with its server. What lies beside a value written before still names it.
"""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage, Status, VisibilityCheckError, WriteId
from antipode._runtime.clock import SystemClock
from antipode.telemetry import Metric
from antipode_testing import RedisTopology
from tests.end_to_end._xcy_stores import (
    TIMEOUT_S,
    EmbeddedStore,
    RedisStore,
    held_back,
    opened,
    over,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_shims.embedded import EmbeddedTopology

HOURS = 24 * 8
#: Logs that no server here ever had, as their stores name them.
DEAD = {
    "embedded": "d0a7b1c2e3f4",
    "redis": "0123456789abcdef" * 2 + "deadbeef",
    "mysql": str(uuid.UUID(int=2**127 + 4711)),
    "mariadb": "4711.4711",
    "mongodb": "another-set.1",
}
PAIRS = over(
    ("embedded", "redis"),
    ("redis", "mysql"),
    ("mysql", "mongodb"),
    ("mariadb", "redis"),
    ("mongodb", "embedded"),
)


@pytest.fixture
def key() -> str:
    return f"dead-{uuid.uuid4().hex}"


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let more than a horizon pass, for everyone."""

    def skip() -> None:
        then = SystemClock().hour() + HOURS
        monkeypatch.setattr(SystemClock, "hour", lambda _: then)

    return skip


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Iterator[list[Any]]:
    """The store whose log is dead, and one that keeps a lineage which names it."""
    posts, notes = request.param
    with opened(request, {"posts": posts, "notes": notes}) as stores:
        yield stores


def named(store: Any) -> WriteId:
    """A write of the store on a log that is dead, of this hour."""
    return WriteId(store.name, DEAD[store.topology.store], 7, SystemClock().hour())


def kept(notes: Any, key: str, *writes: WriteId) -> None:
    """A value that both regions have, with that lineage beside it."""
    with antipode.scope():
        notes.put(key, b"old", Lineage(writes))
        antipode.barrier(timeout=TIMEOUT_S, only=notes.name)


def aged(store: Any) -> int:
    return antipode.telemetry.metrics().get(Metric("aged", store.name), 0)


def raises(dead: WriteId) -> None:
    """Assert that a barrier on the current lineage says that nobody knows that log."""
    with pytest.raises(VisibilityCheckError) as caught:
        antipode.barrier(timeout=TIMEOUT_S)
    statuses = {each.write: each.status for each in caught.value.unmet}
    assert statuses[dead] is Status.UNKNOWN_LOG
    assert dead in antipode.current(), "what is young stays"
    assert antipode.barrier(timeout=TIMEOUT_S, on_unknown="report").ok


def passes(store: Any, dead: WriteId) -> None:
    """Assert that a barrier passes by it, counts it, and that it leaves the scope."""
    before = aged(store)
    result = antipode.barrier(timeout=TIMEOUT_S)
    assert {each.status for each in result.outcomes if each.write == dead} == {Status.AGED}
    assert aged(store) == before + 1
    assert dead not in antipode.current()


@pytest.mark.parametrize("pair", PAIRS, indirect=True)
def test_young_raises_and_old_passes(pair: list[Any], key: str, later: Callable[[], None]) -> None:
    """The same value raises at first, and a horizon later no more, whoever reads it."""
    posts, notes = pair
    dead = named(posts)
    kept(notes, key, dead)
    with antipode.scope():
        notes.get(key)
        raises(dead)
    later()
    for read in (notes.get, notes.get_at_home):
        with antipode.scope():
            read(key)
            passes(posts, dead)


@pytest.mark.parametrize("pair", PAIRS, indirect=True)
def test_old_does_not_hide_what_is_pending(
    pair: list[Any], key: str, later: Callable[[], None]
) -> None:
    """Beside a dead log a live one is waited for, in the same store and the same value."""
    posts, notes = pair
    dead = named(posts)
    later()
    posts.topology.pause()
    with antipode.scope():
        posts.put(key, b"new", Lineage())
        kept(notes, key, dead, *antipode.current())
    with antipode.scope():
        notes.get(key)
        assert dead in antipode.current()
        held_back(posts)
        posts.topology.resume()
        antipode.barrier(timeout=TIMEOUT_S)
        assert posts.get(key)[0] == b"new"


@pytest.mark.parametrize("pair", PAIRS, indirect=True)
def test_old_is_stored_no_more(pair: list[Any], key: str, later: Callable[[], None]) -> None:
    """Who has waited stores what he writes without the dead log: it dies out."""
    posts, notes = pair
    dead = named(posts)
    kept(notes, key, dead)
    later()
    with antipode.scope():
        notes.get(key)
        passes(posts, dead)
        notes.put(key, b"new")
    with antipode.scope():
        assert dead not in notes.get_at_home(key)[1]


@pytest.fixture(params=["restart", "two failovers"])
def moved(request: pytest.FixtureRequest) -> Iterator[tuple[RedisTopology, Callable[[], None]]]:
    """A Redis, and what ends its log without any loss of data."""
    if request.param == "restart":
        with RedisTopology(appendonly=True) as topology:
            yield topology, lambda: restart(topology)
    else:
        with RedisTopology(replicas=2) as topology:
            yield topology, lambda: fail_over_twice(topology)


def restart(topology: RedisTopology) -> None:
    topology.restart_primary()
    topology.wait_replicated()


def fail_over_twice(topology: RedisTopology) -> None:
    topology.failover(lose_unreplicated=False, replica=0)
    topology.resync_sibling(1)
    with ExitStack() as stack, antipode.scope():
        RedisStore(topology, "other", stack).put("between", b"1")
    topology.failover(lose_unreplicated=False, replica=1)
    topology.demote_old_primary()


@pytest.mark.store("redis")
def test_log_of_redis_that_ended(
    moved: tuple[RedisTopology, Callable[[], None]],
    antipode_embedded: EmbeddedTopology,
    key: str,
    later: Callable[[], None],
) -> None:
    """Values from before are all there; their lineages raise, until they are old."""
    topology, end = moved
    with ExitStack() as stack:
        notes = EmbeddedStore(antipode_embedded, "notes", stack)
        with ExitStack() as before, antipode.scope():
            posts = RedisStore(topology, "posts", before)
            posts.put(f"{key}-cause", b"1")
            (dead,) = antipode.current()
            posts.put(key, b"post")
            notes.put(key, b"note", Lineage([dead]))
            antipode.barrier(timeout=TIMEOUT_S)
        end()
        posts = RedisStore(topology, "posts", stack)
        for store in (posts, notes):
            with antipode.scope():
                assert store.get(key)[0] is not None
                assert posts.get(f"{key}-cause")[0] == b"1"
                raises(dead)
        later()
        for store in (posts, notes):
            with antipode.scope():
                store.get(key)
                passes(posts, dead)
