"""Fixtures that tests of several folders share."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from antipode_shims import redis
from antipode_testing import LagProxy
from tests.integration.mysql._clients import STORES, Sql
from tests.integration.redis._clients import client
from tests.integration.redis._stored import KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import RedisTopology


@pytest.fixture
def proxy(antipode_redis: RedisTopology) -> Iterator[LagProxy]:
    """A proxy to the Redis primary, which counts round trips and fails when told to."""
    with LagProxy(antipode_redis.primary) as through:
        yield through


@pytest.fixture
def make(proxy: LagProxy) -> Iterator[Callable[..., Any]]:
    """Make Redis clients through the proxy; they are instrumented unless told otherwise."""
    made: list[Any] = []

    def build(*, plain: bool = False, options: dict[str, Any] | None = None, **more: Any) -> Any:
        one = client(proxy.address, **{"socket_timeout": 5, **(options or {})})
        made.append(one)
        return one if plain else redis.instrument_client(one, datastore="posts", **more)

    yield build
    for one in made:
        redis.uninstrument_client(one)
        one.close()


@pytest.fixture
def beside(make: Callable[..., Any]) -> Any:
    """A Redis client that keeps lineages beside the keys ``k:*`` of an empty database."""
    one = make(lineage="beside", keys=KEYS)
    one.flushall()
    return one


@pytest.fixture(params=STORES)
def sql(request: pytest.FixtureRequest) -> Iterator[Sql]:
    """MySQL and MariaDB in turn, with an empty table ``notes`` that is replicated."""
    topology = request.getfixturevalue(f"antipode_{request.param}")
    topology.execute("CREATE TABLE IF NOT EXISTS app.notes (id INT PRIMARY KEY, body TEXT)")
    topology.execute("DELETE FROM app.notes")
    topology.wait_replicated()
    with contextlib.closing(Sql(topology)) as one:
        yield one
