"""Clients and counts that the tests of instrumented MongoDB clients share."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from pymongo import AsyncMongoClient, MongoClient
from pymongo.monitoring import (
    CommandFailedEvent,
    CommandListener,
    CommandStartedEvent,
    CommandSucceededEvent,
)

import antipode
from antipode import Lineage, WriteId
from antipode.telemetry import Metric
from antipode_shims.mongodb import instrument_client, uninstrument_client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from antipode_testing import Address, LagProxy

SET = "antipode"
DB = "app"

UNWATCHED: dict[str, Any] = {"serverMonitoringMode": "poll", "heartbeatFrequencyMS": 600_000}
"""Options of a client that asks how its server is once, so that its round trips can be counted."""


def arguments(where: Address | str, **options: Any) -> dict[str, Any]:
    """What makes a client of one server, or of the set that a URI names."""
    known = {"serverSelectionTimeoutMS": 20_000, "heartbeatFrequencyMS": 500, **options}
    if isinstance(where, str):
        return {"host": where, **known}
    return {"host": where.host, "port": where.port, "directConnection": True, **known}


@contextmanager
def plain_client(where: Address | str, **options: Any) -> Iterator[Any]:
    """A client as PyMongo makes it."""
    with MongoClient(**arguments(where, **options)) as one:
        yield one


@contextmanager
def client(
    where: Address | str, instrument: dict[str, Any] | None = None, **options: Any
) -> Iterator[Any]:
    """An instrumented client; *instrument* are options of ``instrument_client``."""
    with plain_client(where, **options) as one:
        wanted: dict[str, Any] = {"datastore": "posts", **(instrument or {})}
        instrument_client(one, **wanted)
        try:
            yield one
        finally:
            uninstrument_client(one)


@asynccontextmanager
async def async_client(
    where: Address | str, instrument: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[Any]:
    """The asyncio twin of :func:`client`."""
    async with AsyncMongoClient[Any](**arguments(where, **options)) as one:
        wanted: dict[str, Any] = {"datastore": "posts", **(instrument or {})}
        instrument_client(one, **wanted)
        try:
            yield one
        finally:
            uninstrument_client(one)


def position(address: Address) -> tuple[int, int]:
    """Term and version of what a server applied last."""
    with plain_client(address) as one:
        applied = one.admin.command("hello")["lastWrite"]["opTime"]
    return int(applied["t"]), applied["ts"].time << 32 | applied["ts"].inc


def exact(lineage: Lineage | None = None) -> list[WriteId]:
    """The exact entries, of the current lineage by default."""
    found = antipode.current() if lineage is None else lineage
    return [write for write in found if not write.covering]


def counted(name: str, datastore: str = "posts") -> int:
    """How often a metric was counted so far."""
    return antipode.telemetry.metrics().get(Metric(name, datastore), 0)


@contextmanager
def exchanges(proxy: LagProxy) -> Iterator[list[int]]:
    """How many round trips a block makes through *proxy*, in a list of one.

    What a client's monitor asks passes the same proxy: count those of a client that is
    :data:`UNWATCHED`.
    """
    before, result = proxy.traffic(), [0]
    yield result
    result[0] = (proxy.traffic() - before).exchanges


@contextmanager
def failing(server: Address, *commands: str, **data: Any) -> Iterator[None]:
    """Let *server* fail the next of *commands*, once."""
    with plain_client(server) as one:
        what = {"failCommands": list(commands), **data}
        one.admin.command("configureFailPoint", "failCommand", mode={"times": 1}, data=what)
        try:
            yield
        finally:
            one.admin.command("configureFailPoint", "failCommand", mode="off")


class Names(CommandListener):
    """Puts the names of the commands that a client sends into a list."""

    def __init__(self, said: list[str]) -> None:
        """Put them into *said*."""
        self._said = said

    def started(self, event: CommandStartedEvent) -> None:
        """One is sent."""
        self._said.append(event.command_name)

    def succeeded(self, event: CommandSucceededEvent) -> None:
        """Its answer says no more."""

    def failed(self, event: CommandFailedEvent) -> None:
        """Nor does this one."""
