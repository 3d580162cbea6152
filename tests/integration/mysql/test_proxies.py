"""Behind balancers and proxies: nobody else is disturbed, and nothing passes early."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

import antipode
from antipode import BarrierTimeout, Lineage
from antipode_shims import mysql as shims

from ._proxies import Balancer
from ._servers import FLAVORS, Regions, only, regions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode.testing import Address


@pytest.fixture(params=FLAVORS)
def here(request: pytest.FixtureRequest) -> Iterator[Regions]:
    with regions(request.getfixturevalue(request.param)) as found:
        yield found


def session(here: Regions, address: Address) -> Any:
    """A client's connection that the library has nothing to do with."""
    topology = here.topology
    return pymysql.connect(
        host=address.host, port=address.port, user=topology.user, password=topology.password
    )


def stranger(here: Regions) -> Any:
    """A client at the replica whose thread has the number that comes next at the primary."""
    at_replica = session(here, here.topology.replica)
    while True:
        with closing(session(here, here.topology.primary)) as last:
            behind = at_replica.thread_id() - last.thread_id() - 1
        if behind == 0:
            return at_replica
        if behind < 0:
            at_replica.close()
            at_replica = session(here, here.topology.replica)


def test_no_query_of_a_stranger_is_ended(here: Regions, caplog: pytest.LogCaptureFixture) -> None:
    """A barrier that gives up behind a balancer ends no query but its own.

    The connection that blocks is on another server than the one that looks, where its thread's
    number is that of a client who has nothing to do with it.
    """
    written = only(here.replicated())
    assert isinstance(written.version, int)
    late = Lineage([replace(written, version=written.version + 1000)])
    topology = here.topology
    with (
        Balancer(topology.replica, topology.primary) as balancer,
        closing(stranger(here)) as client,
        ThreadPoolExecutor(1) as pool,
        caplog.at_level(logging.WARNING, "antipode"),
    ):
        here.reader.close()
        url = topology.url(balancer.address)
        here.reader = shims.shim("posts", url, reads_from="replica")
        with closing(client.cursor()) as cursor:
            query = pool.submit(cursor.execute, "SELECT SLEEP(0.6)")
            with pytest.raises(BarrierTimeout):
                antipode.barrier(late, timeout=0.3)
            query.result()
            assert cursor.fetchone() == (0,)
    assert "several servers answer" in caplog.text
