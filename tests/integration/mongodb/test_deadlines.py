"""Reads under a floor end by its timeout, also at a server that is frozen."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import BarrierTimeout, Lineage, Status

from ._clients import DB, async_client, client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")

TIMEOUT_S = 0.4
LATE_S = 0.5
READER = {"datastore": "posts", "reads_from": "replica"}
SECONDARY: dict[str, Any] = {"readPreference": "secondaryPreferred"}


@pytest.fixture
def frozen(antipode_mongodb: MongoDBTopology) -> Iterator[Callable[[], Lineage]]:
    """Freezes the secondary; returns what it lacks."""

    def freeze() -> Lineage:
        antipode_mongodb.suspend_replica()
        with client(antipode_mongodb.primary) as writer, antipode.scope() as scope:
            writer[DB].frozen.insert_one({})
            return scope.lineage

    yield freeze
    antipode_mongodb.resume_replica()


@contextmanager
def in_time() -> Iterator[None]:
    """The read ends by its deadline, and says why."""
    before_s = time.monotonic()
    with pytest.raises(BarrierTimeout) as raised:
        yield
    assert time.monotonic() - before_s < TIMEOUT_S + LATE_S
    assert {each.status for each in raised.value.result.outcomes} == {Status.UNREACHABLE}


def test_a_read_at_a_frozen_secondary(
    antipode_mongodb: MongoDBTopology, frozen: Callable[[], Lineage]
) -> None:
    """PyMongo's retry of reads does not outlast the floor."""
    with client(antipode_mongodb.replica, READER, **SECONDARY) as one:
        one[DB].frozen.find_one({})
        with antipode.scope(frozen()):
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            with in_time():
                one[DB].frozen.find_one({})
        antipode_mongodb.resume_replica()  # Or PyMongo closes for as long as it selects servers.


async def test_an_asyncio_read_at_a_frozen_secondary(
    antipode_mongodb: MongoDBTopology, frozen: Callable[[], Lineage]
) -> None:
    """The asyncio twin."""
    async with async_client(antipode_mongodb.replica, READER, **SECONDARY) as one:
        await one[DB].frozen.find_one({})
        with antipode.scope(frozen()):
            await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
            with in_time():
                await one[DB].frozen.find_one({})
        antipode_mongodb.resume_replica()  # Or PyMongo closes for as long as it selects servers.
