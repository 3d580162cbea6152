"""Clients and counts that the Redis tests share."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

import antipode
from antipode import Lineage, WriteId
from antipode.telemetry import Metric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import Address, LagProxy

TIMEOUT_S = 15.0


def client(address: Address, **options: Any) -> Any:
    """A synchronous client that does not retry."""
    options = {"retry": Retry(NoBackoff(), 0), **options}
    return redis.Redis(host=address.host, port=address.port, **options)


def async_client(address: Address, **options: Any) -> Any:
    """An asyncio client that does not retry."""
    options = {"retry": redis.asyncio.retry.Retry(NoBackoff(), 0), **options}
    return redis.asyncio.Redis(host=address.host, port=address.port, **options)


def info(address: Address, **options: Any) -> dict[str, Any]:
    """``INFO replication`` of a server."""
    with client(address, socket_timeout=TIMEOUT_S, **options) as plain:
        return dict(plain.info("replication"))


def position(address: Address) -> tuple[str, int]:
    """Where a primary stands now."""
    state = info(address)
    return str(state["master_replid"]), int(state["master_repl_offset"])


def writes_of(lineage: Lineage) -> list[WriteId]:
    """The exact entries."""
    return [write for write in lineage if not write.covering]


def counted(name: str, datastore: str = "posts") -> int:
    """How often a metric was counted so far."""
    return antipode.telemetry.metrics().get(Metric(name, datastore), 0)


@contextmanager
def exchanges(proxy: LagProxy) -> Iterator[list[int]]:
    """How many round trips a block makes through *proxy*, in a list of one."""
    before, result = proxy.traffic(), [0]
    yield result
    result[0] = (proxy.traffic() - before).exchanges
