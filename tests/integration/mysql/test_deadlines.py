"""Reads under a floor end by its timeout, also at a server that is frozen."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import aiomysql
import pymysql
import pytest

import antipode
from antipode import BarrierTimeout, Lineage, Status
from antipode_shims import mysql as shims

from ._servers import FLAVORS, Regions, regions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TIMEOUT_S = 0.4
LATE_S = 0.5
READ = "SELECT 1 FROM information_schema.TABLES LIMIT 1"


@pytest.fixture(params=FLAVORS)
def here(request: pytest.FixtureRequest) -> Iterator[Regions]:
    """Both flavours."""
    with regions(request.getfixturevalue(request.param)) as found:
        yield found


@pytest.fixture
def frozen(here: Regions) -> Iterator[Callable[[], Lineage]]:
    """Freezes the replica; returns what it lacks."""

    def freeze() -> Lineage:
        here.topology.suspend_replica()
        return here.write()

    yield freeze
    here.topology.resume_replica()


@contextmanager
def in_time(here: Regions) -> Iterator[None]:
    """The read ends by its deadline, and says why, and at which server: by its own name."""
    before_s = time.monotonic()
    with pytest.raises(BarrierTimeout) as raised:
        yield
    assert time.monotonic() - before_s < TIMEOUT_S + LATE_S
    assert {each.status for each in raised.value.result.outcomes} == {Status.UNREACHABLE}
    assert raised.value.server == (here.topology.store, *here.topology.replica)


def with_pymysql(**place: Any) -> Any:
    """A PyMySQL connection, which waits for replies for ever by default."""
    return pymysql.connect(**place)


def with_mysqlclient(**place: Any) -> Any:
    """A mysqlclient connection."""
    return pytest.importorskip("MySQLdb").connect(**place)


def place(here: Regions) -> dict[str, Any]:
    """How to connect to the replica."""
    topology = here.topology
    where = topology.replica
    return {
        "host": where.host,
        "port": where.port,
        "user": topology.user,
        "password": topology.password,
        "autocommit": True,
    }


@pytest.mark.parametrize("connect", [with_pymysql, with_mysqlclient])
def test_a_read_at_a_frozen_replica(
    here: Regions, frozen: Callable[[], Lineage], connect: Callable[..., Any]
) -> None:
    """The look gives the connection up when the floor's time is over."""
    one = connect(**place(here))
    shims.instrument_connection(one, datastore="posts", reads_from="replica")
    try:
        with one.cursor() as cursor:
            cursor.execute(READ)
            cursor.fetchall()
        with antipode.scope(frozen()):
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            with in_time(here), one.cursor() as cursor:
                cursor.execute(READ)
    finally:
        shims.uninstrument_connection(one)
        one.close()


async def test_an_asyncio_read_at_a_frozen_replica(
    here: Regions, frozen: Callable[[], Lineage]
) -> None:
    """The asyncio twin."""
    one = await aiomysql.connect(**place(here))
    shims.instrument_connection(one, datastore="posts", reads_from="replica")
    try:
        cursor = await one.cursor()
        await cursor.execute(READ)
        await cursor.fetchall()
        with antipode.scope(frozen()):
            await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
            with in_time(here):
                await cursor.execute(READ)
    finally:
        shims.uninstrument_connection(one)
        one.close()
