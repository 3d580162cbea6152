"""The log history of Redis on its way to a replica: reads wait for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import BarrierTimeout, Lineage, VisibilityCheckError
from antipode_shims import redis as shims
from antipode_testing import RedisTopology

from ._clients import TIMEOUT_S, client
from ._sentinels import write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import Address

pytestmark = pytest.mark.store("redis")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes what a test opened."""
    with ExitStack() as closes:
        yield closes


def instrumented(stack: ExitStack, address: Address, **options: Any) -> Any:
    """A client whose writes or reads are covered."""
    one = stack.enter_context(client(address, socket_timeout=TIMEOUT_S))
    shims.instrument_client(one, datastore="posts", **options)
    stack.callback(shims.uninstrument_client, one)
    return one


def test_read_waits_for_the_log_history_that_is_on_its_way(stack: ExitStack) -> None:
    """A replica that lacks what was written after a promotion may lack the history as well."""
    pair = stack.enter_context(RedisTopology(replicas=2))
    first = instrumented(stack, pair.primary)
    pair.pause(replica=1)
    kept = write(first, "kept", "old")
    pair.failover(replica=0, lose_unreplicated=False)
    assert pair.resync_sibling(1) == "partial"
    shims.uninstrument_client(first)
    writer = instrumented(stack, pair.primary, log_history=True)
    reader = instrumented(stack, pair.replicas[1], reads_from="replica")
    with antipode.scope(Lineage([kept])):
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        with pytest.raises(VisibilityCheckError, match="unknown_log"):
            reader.get("kept")
    pair.pause(replica=1)
    write(writer, "noted", "here")
    late = write(writer, "late", "new")
    with antipode.scope(Lineage([kept, late])), ThreadPoolExecutor(1) as pool:
        antipode.barrier(timeout=0.1, at="read")
        with pytest.raises(BarrierTimeout):
            reader.mget("kept", "late")
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        reading = pool.submit(copy_context().run, reader.mget, "kept", "late")
        pair.resume(replica=1)
        assert reading.result(TIMEOUT_S) == [b"old", b"new"]
