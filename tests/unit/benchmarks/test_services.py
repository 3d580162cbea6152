"""The parts of the post-notification benchmark that measure, one by one."""

from __future__ import annotations

import itertools
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from benchmarks.post_notification._client import arrivals, delays
from benchmarks.post_notification._rpc import RpcClient, RpcError, RpcServer
from benchmarks.post_notification._services import FollowerNotify
from benchmarks.post_notification._storage import post_value, version_of
from benchmarks.post_notification._strategies._none import Knobs, Unprotected
from benchmarks.post_notification._tracing import LineageTracing, NoTracing, Tracing
from benchmarks.post_notification._truth import Announcer, Poller

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Posts:
    """A post storage in memory."""

    def __init__(self) -> None:
        self.there: dict[str, int] = {}

    BATCHED = True

    def versions(self, post_ids: Sequence[str]) -> dict[str, int]:
        return {post_id: self.there[post_id] for post_id in post_ids if post_id in self.there}


@pytest.mark.parametrize(
    ("version", "before", "after"),
    [(1, {}, {"a": 1}), (2, {"a": 1}, {"a": 2}), (2, {"a": 1}, {"a": 3}), (0, {"a": 1}, {})],
)
def test_the_poller_brackets_the_moment_of_visibility(
    version: int, before: dict[str, int], after: dict[str, int]
) -> None:
    """A write is seen once, between the last look without it and the first with it."""
    posts, seen = Posts(), list[dict[str, Any]]()
    posts.there = before
    poller = Poller(posts, seen.append, lag_s=0.0)  # type: ignore[arg-type]
    announce = Announcer(poller.port)
    with closing(poller), closing(announce):
        announce({"id": "a", "version": version, "begun_ns": time.monotonic_ns()})
        poller.step()
        poller.step()
        assert not seen
        began_ns = time.monotonic_ns()
        posts.there = after
        poller.step()
    (record,) = seen
    assert record["unseen_ns"] < began_ns < record["seen_ns"]
    assert not poller._sought


@pytest.mark.parametrize("length", [1, 2, 10, 1024])
def test_a_post_states_its_version(length: int) -> None:
    """Whatever its length; no post has version 0."""
    assert version_of(post_value(2, length)) == 2
    assert len(post_value(2, length)) == max(length, 2)
    assert version_of(None) == 0


def test_every_delay_is_waited_equally_often() -> None:
    """So that as many requests are behind each point of a curve; without delays nobody waits."""
    drawn = list(itertools.islice(delays([0, 50, 100], 7), 300))
    assert {each: drawn.count(each) for each in (0, 50, 100)} == {0: 100, 50: 100, 100: 100}
    assert drawn[:30] != [0, 50, 100] * 10
    assert set(itertools.islice(delays([], 7), 10)) == {None}


def test_arrivals_do_not_depend_on_anything_but_the_seed() -> None:
    """An open loop: the same times again, ascending, at the rate that was asked for."""
    first, again = (list(itertools.islice(arrivals(50, seed), 2000)) for seed in (7, 7))
    assert first == again
    assert first == sorted(first)
    assert first[-1] == pytest.approx(2000 / 50, rel=0.15)


class Fetches:
    """Stands in for the call of post-storage."""

    sent_bytes = 0

    def __init__(self, version: int) -> None:
        self.version = version

    def call(self, method: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"version": self.version}


@pytest.mark.parametrize(
    ("kind", "version", "outcome"),
    [
        ("new", 0, "violation"),
        ("new", 1, "consistent"),
        ("update", 0, "violation"),
        ("update", 1, "violation"),
        ("update", 2, "consistent"),
        ("delete", 1, "violation"),
        ("delete", 0, "consistent"),
    ],
)
def test_what_counts_as_a_violation(kind: str, version: int, outcome: str) -> None:
    """No post for a new one, the old version for an update, any post for a delete."""
    seen: list[dict[str, Any]] = []
    strategy = Unprotected(lambda _: None, Knobs(timeout_s=1, sleep_s=0, stick_s=0))
    service = FollowerNotify(Fetches(version), seen.append, strategy)  # type: ignore[arg-type]
    service.deliver({"id": "a", "kind": kind, "received_ns": 1})
    assert seen[0]["outcome"] == outcome


@pytest.fixture
def server() -> Iterator[RpcServer]:
    """Serves ``append``, which makes a write, and ``fail``."""

    def fail(_: dict[str, Any]) -> dict[str, Any]:
        msg = "on purpose"
        raise ValueError(msg)

    with RpcServer({"fail": fail, "append": _append}, LineageTracing()) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()
    antipode.propagation.uninstrument()


def _append(_: dict[str, Any]) -> dict[str, Any]:
    antipode.append(antipode.WriteId("posts", "log", 7))
    return {"lineage": sorted(write.version for write in antipode.current())}


def call(server: RpcServer, tracing: Tracing, method: str) -> dict[str, Any]:
    """One call over a connection of its own."""
    with closing(RpcClient("posts", server.port, tracing, timeout_s=5)) as client:
        return client.call(method, {})


def test_lineages_travel_with_calls_and_come_back(server: RpcServer) -> None:
    """Steps 1 and 3 of figure 4: the callee has the caller's writes, then the caller its."""
    with antipode.scope():
        antipode.append(antipode.WriteId("posts", "other", 5))
        assert call(server, LineageTracing(), "append") == {"lineage": [5, 7]}
        assert sorted(write.version for write in antipode.current()) == [5, 7]


def test_without_tracing_nothing_travels(server: RpcServer) -> None:
    """The baseline's calls carry no lineage, even where there is one, and bring none back."""
    with antipode.scope():
        antipode.append(antipode.WriteId("posts", "other", 5))
        assert call(server, NoTracing(), "append") == {"lineage": [7]}
        assert [write.version for write in antipode.current()] == [5]


def test_a_failing_service_is_named(server: RpcServer) -> None:
    """The error says which service failed and why."""
    with pytest.raises(RpcError, match="posts: ValueError: on purpose"):
        call(server, NoTracing(), "fail")
