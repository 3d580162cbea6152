"""Clients that Sentinels made, as the tests of Sentinel share them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import redis
import redis.sentinel
from redis.backoff import NoBackoff
from redis.retry import Retry

import antipode
from antipode import Lineage, Status, WriteId
from antipode_shims import redis as shims
from antipode_testing import wait_until

from ._clients import TIMEOUT_S, writes_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from antipode_testing import RedisSentinelTopology


class Watched:
    """Clients that Sentinels made: of the primary, and of replicas in turn."""

    def __init__(self, topology: RedisSentinelTopology, stack: ExitStack) -> None:
        self.topology = topology
        self.stack = stack
        self._sentinel = stack.enter_context(
            redis.sentinel.Sentinel(topology.sentinels, socket_timeout=TIMEOUT_S)
        )

    def writer(self, **options: Any) -> Any:
        """An instrumented client of the primary."""
        return self._instrumented(self.plain("master_for"), options)

    def reader(self, **options: Any) -> Any:
        """An instrumented client of the replicas."""
        return self._instrumented(self.plain("slave_for"), {"reads_from": "replica", **options})

    def plain(self, made_by: str) -> Any:
        """A client that does not retry."""
        make = getattr(self._sentinel, made_by)
        retry = Retry(NoBackoff(), 0)
        one = make(self.topology.service, socket_timeout=TIMEOUT_S, retry=retry)
        return self.stack.enter_context(one)

    def _instrumented(self, one: Any, options: dict[str, Any]) -> Any:
        shims.instrument_client(one, datastore="posts", **options)
        self.stack.callback(shims.uninstrument_client, one)
        return one


def write(writer: Any, key: str, value: Any) -> WriteId:
    """Write outside of the caller's scope."""
    with antipode.scope() as scope:
        writer.set(key, value)
        return writes_of(scope.lineage)[0]


def read(reader: Any, written: WriteId, key: str, *, timeout: float = TIMEOUT_S) -> Any:
    """Read under a floor."""
    with antipode.scope(Lineage([written])):
        antipode.barrier(timeout=timeout, at="read")
        return reader.get(key)


def outcome(written: WriteId, *, timeout: float = TIMEOUT_S) -> Status:
    """What a barrier on one write comes to, now."""
    result = antipode.barrier(Lineage([written]), timeout=timeout, on_unmet="return")
    return result.outcomes[0].status


def patiently(call: Callable[[], Any]) -> Any:
    """Make a call until it succeeds: Sentinels close connections whenever roles change."""
    done: list[Any] = []

    def attempt() -> bool:
        with suppress(redis.ConnectionError, redis.TimeoutError):
            done.append(call())
        return bool(done)

    wait_until(attempt, what="a call", timeout_s=TIMEOUT_S)
    return done[0]


def eventually(writer: Any, key: str, value: Any) -> WriteId:
    """Write, where connections may have died meanwhile."""
    written: WriteId = patiently(lambda: write(writer, key, value))
    return written
