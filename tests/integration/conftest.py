"""Fixtures that the tests of one store share."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from antipode.testing import LagProxy
from antipode_shims import rabbitmq, redis
from tests.integration._mysql_beside import IN_COLUMNS, IN_SIDE_TABLES, make_posts
from tests.integration._mysql_clients import STORES, Sql
from tests.integration._mysql_promises import Branches
from tests.integration._rabbitmq_bench import NEWS, Bench
from tests.integration._rabbitmq_workers import Posts, Workers
from tests.integration._redis_beside import KEYS
from tests.integration._redis_clients import client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from antipode.testing import RabbitMQTopology, RedisTopology


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


@pytest.fixture
def plain(make: Callable[..., Any]) -> Any:
    """A Redis client without the library."""
    return make(plain=True)


@pytest.fixture
def bench(antipode_rabbitmq: RabbitMQTopology) -> Iterator[Bench]:
    """RabbitMQ connections and queues of one test, gone after it."""
    with contextlib.closing(Bench(antipode_rabbitmq)) as one:
        yield one


@pytest.fixture
def channel(bench: Bench) -> Any:
    """An instrumented channel in confirm mode, with the test's exchange and queue."""
    channel = bench.channel()
    bench.declare(channel)
    return rabbitmq.instrument_channel(channel, datastore=NEWS)


@pytest.fixture
def workers(antipode_rabbitmq: RabbitMQTopology) -> Iterator[Workers]:
    """A RabbitMQ work queue of one test, and its workers."""
    with contextlib.closing(Workers(antipode_rabbitmq)) as one:
        yield one


@pytest.fixture
def later(tmp_path: Path) -> Iterator[Posts]:
    """A store whose next write messages can depend on."""
    with contextlib.closing(Posts(tmp_path)) as one:
        yield one


@pytest.fixture(params=STORES)
def sql(request: pytest.FixtureRequest) -> Iterator[Sql]:
    """MySQL and MariaDB in turn, with an empty table ``notes`` that is replicated."""
    topology = request.getfixturevalue(f"antipode_{request.param}")
    topology.execute("CREATE TABLE IF NOT EXISTS app.notes (id INT PRIMARY KEY, body TEXT)")
    topology.execute("DELETE FROM app.notes")
    topology.wait_replicated()
    with contextlib.closing(Sql(topology)) as one:
        yield one


@pytest.fixture
def to_primary(sql: Sql) -> Iterator[LagProxy]:
    """A proxy to the primary, which counts round trips and fails when told to."""
    with LagProxy(sql.topology.primary) as through:
        yield through


@pytest.fixture(params=[*IN_COLUMNS, *IN_SIDE_TABLES])
def posts(request: pytest.FixtureRequest) -> Iterator[Sql]:
    """MySQL or MariaDB with a table beside whose rows lineages can lie."""
    store, side_table = request.param
    topology = request.getfixturevalue(f"antipode_{store}")
    make_posts(topology, side_table=side_table)
    with contextlib.closing(Sql(topology, side_table=side_table)) as one:
        yield one


@pytest.fixture(params=STORES)
def branches(request: pytest.FixtureRequest) -> Iterator[Branches]:
    """MySQL and MariaDB in turn, two regions each, with the tables of promises."""
    topology = request.getfixturevalue(f"antipode_{request.param}")
    with contextlib.closing(Branches(topology)) as one:
        yield one


@pytest.fixture
def unfinished(branches: Branches) -> Iterator[Any]:
    """A PyMySQL connection to the primary that nothing instruments, autocommit off."""
    with contextlib.closing(branches.connect()) as one:
        yield one
