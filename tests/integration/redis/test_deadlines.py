"""Waits end at their deadlines, whatever redis-py waits for."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import IncompleteLineage, Lineage, WriteId
from antipode_shims import redis as shims

from ._clients import client, position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode.testing import RedisTopology

pytestmark = pytest.mark.store("redis")

NOWHERE = "nowhere.invalid"
TIMEOUT_S = 0.4
LATE_S = 0.5


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes what a test opened."""
    with ExitStack() as closes:
        yield closes


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A resolver that is silent about one name; set when it was asked."""
    plain, asked, over = socket.getaddrinfo, threading.Event(), threading.Event()

    def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        if host == NOWHERE:
            asked.set()
            over.wait(60)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return plain(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield asked
    over.set()


def by_thread(lineage: Lineage) -> None:
    """The synchronous face."""
    antipode.barrier(lineage, timeout=TIMEOUT_S)


def by_asyncio(lineage: Lineage) -> None:
    """The asyncio face."""
    asyncio.run(antipode.barrier_async(lineage, timeout=TIMEOUT_S))


@pytest.mark.parametrize("face", [by_thread, by_asyncio])
def test_a_fence_whose_host_does_not_resolve(
    antipode_redis: RedisTopology,
    stack: ExitStack,
    resolver: threading.Event,
    face: Callable[[Lineage], None],
) -> None:
    """The barrier ends as incomplete by its deadline, long before the resolver gives up."""
    away = stack.enter_context(client(antipode_redis.primary))
    away.connection_pool.connection_kwargs["host"] = NOWHERE
    stack.enter_context(shims.shim("posts", away))
    near = stack.enter_context(client(antipode_redis.replica))
    stack.enter_context(shims.shim("posts", near, reads_from="replica"))
    post = WriteId("posts", *position(antipode_redis.primary))
    before_s = time.monotonic()
    with pytest.raises(IncompleteLineage):
        face(Lineage([post], incomplete=[("posts", "size")]))
    assert time.monotonic() - before_s < TIMEOUT_S + LATE_S
    assert resolver.is_set()
