"""A pinned server that is replaced while the barrier waits for another datastore."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import Lineage, Status, WriteId
from antipode.telemetry import Metric
from antipode_shims import mysql as shims
from antipode_testing import LagProxy
from tests.unit._fake_server import FakeServer

from ._servers import FLAVORS, prepare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._servers import Topology

ORDER = WriteId("orders", "log", 7)
TIMEOUT_S = 15.0


@pytest.fixture(params=FLAVORS)
def topology(request: pytest.FixtureRequest) -> Topology:
    """Either flavour, with its tables."""
    found: Topology = request.getfixturevalue(request.param)
    prepare(found)
    return found


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes what a test opened."""
    with ExitStack() as closes:
        yield closes


def looks() -> int:
    """At ``posts``, so far."""
    return antipode.telemetry.metrics().get(Metric("polls", "posts"), 0)


@pytest.mark.parametrize("moves", [True, False])
def test_known_positions(topology: Topology, stack: ExitStack, *, moves: bool) -> None:
    """What is known of a server counts at the end only if its connection lives still."""
    proxy = stack.enter_context(LagProxy(topology.primary))
    writer = stack.enter_context(shims.shim("posts", topology.url()))
    stack.enter_context(shims.shim("posts", topology.url(proxy.address), reads_from="replica"))
    orders = FakeServer("orders")
    antipode.shim.register(orders)
    topology.pause()
    with antipode.scope():
        lineage = writer.write("k", b"1", Lineage())
    antipode.barrier(lineage, timeout=TIMEOUT_S)
    known = looks()
    pool = stack.enter_context(ThreadPoolExecutor(1))
    waiting = pool.submit(antipode.barrier, lineage.append(ORDER), timeout=0.5, on_unmet="return")
    assert orders.looked.wait(TIMEOUT_S)
    if moves:
        proxy.retarget(topology.replica)
    orders.position = 7
    result = waiting.result(TIMEOUT_S)
    statuses = {each.write.datastore: each.status for each in result.outcomes}
    assert statuses["orders"] is Status.VISIBLE
    # A busy machine may not get as far as the new server's answer.
    expected = {Status.NOT_YET, Status.UNREACHABLE} if moves else {Status.VISIBLE}
    assert statuses["posts"] in expected
    assert (looks() > known) is moves
