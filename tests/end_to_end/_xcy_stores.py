"""Datastores in two regions, each by its Table 2 face: written at home, read away from it."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import pika
import pymongo
import pytest

import antipode
from antipode import BarrierTimeout
from antipode_shims import embedded, mongodb, mysql, rabbitmq, redis
from antipode_testing import wait_until
from tests.integration.mysql._servers import prepare
from tests.integration.rabbitmq._bench import Region, remove
from tests.integration.redis import _clients as _redis_clients

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode import Lineage, WriteId

TIMEOUT_S = 30.0
#: Seconds for which a barrier that must not pass is watched.
HELD_S = 0.1
#: Every store whose values have lineages beside them.
KEEPERS = ("embedded", "redis", "mysql", "mariadb", "mongodb")


class Store:
    """One datastore: a shim at its primary and one at its replica, in the other region.

    Attributes:
        partial: whether parts of a value can be changed alone.
    """

    partial: ClassVar[bool] = False

    def __init__(self, topology: Any, home: Any, away: Any) -> None:
        self.topology = topology
        self.home = home
        self.away = away

    @property
    def name(self) -> str:
        """The datastore's."""
        return str(self.away.datastore)

    def put(self, key: str, value: bytes, lineage: Lineage | None = None) -> Lineage:
        """Write at home."""
        written: Lineage = self.home.write(key, value, lineage)
        return written

    def get(self, key: str) -> tuple[bytes | None, Lineage]:
        """Read in the other region, into the current scope."""
        found: tuple[bytes | None, Lineage] = self.away.read(key)
        return found

    def get_at_home(self, key: str) -> tuple[bytes | None, Lineage]:
        """Read at home, into the current scope."""
        found: tuple[bytes | None, Lineage] = self.home.read(key)
        return found

    def delete(self, key: str, lineage: Lineage | None = None) -> Lineage:
        """Delete at home."""
        deleted: Lineage = self.home.delete(key, lineage)
        return deleted

    def await_value(self, key: str, value: bytes) -> Lineage:
        """Read in the other region until the value is there, into the current scope."""
        found: list[Lineage] = []

        def there() -> bool:
            shown, lineage = self.get(key)
            found[:] = [lineage]
            return shown == value

        wait_until(there, what=f"{key} in {self.name}", timeout_s=TIMEOUT_S)
        return found[0]

    def covers(self, lineage: Lineage, write: WriteId) -> bool:
        """Whether who waits for *lineage* waits for *write* too, of a log that is one history."""
        versions = [w.version for w in lineage if (w.datastore, w.key) == (self.name, write.key)]
        return any(int(version) >= int(write.version) for version in versions)

    def beside(self, key: str) -> int:
        """How many bytes the primary holds beside the value, names and marks included."""
        raise NotImplementedError

    def change(self, key: str, field: str, number: int, lineage: Lineage | None = None) -> Lineage:
        """Change one part of a value at home."""
        raise NotImplementedError

    def parts(self, value: Any) -> dict[str, int]:
        """The last number of each part of a value that a read found."""
        raise NotImplementedError


class EmbeddedStore(Store):
    """Two files."""

    def __init__(self, topology: Any, name: str, stack: ExitStack) -> None:
        home = stack.enter_context(embedded.shim(name, topology.primary, reads_from="primary"))
        away = stack.enter_context(embedded.shim(name, topology.replica, reads_from="replica"))
        super().__init__(topology, home, away)

    def beside(self, key: str) -> int:
        with contextlib.closing(sqlite3.connect(self.topology.primary)) as file:
            query = "SELECT LENGTH(lineage) FROM log WHERE key = ? ORDER BY position DESC LIMIT 1"
            return int(file.execute(query, (key,)).fetchone()[0])


class RedisStore(Store):
    """A companion key."""

    def __init__(self, topology: Any, name: str, stack: ExitStack) -> None:
        self._plain = stack.enter_context(_redis_clients.client(topology.primary))
        away = stack.enter_context(_redis_clients.client(topology.replica))
        super().__init__(
            topology,
            stack.enter_context(redis.shim(name, self._plain)),
            stack.enter_context(redis.shim(name, away, reads_from="replica")),
        )

    def beside(self, key: str) -> int:
        return len("ap:") + int(self._plain.strlen(f"ap:{key}"))


class SqlStore(Store):
    """An invisible column; parts are appended, as to a list."""

    partial = True

    def __init__(self, topology: Any, name: str, stack: ExitStack, **options: Any) -> None:
        prepare(topology)
        home, away = topology.url(), topology.url(topology.replica)
        super().__init__(
            topology,
            stack.enter_context(mysql.shim(name, home, **options)),
            stack.enter_context(mysql.shim(name, away, reads_from="replica", **options)),
        )

    def beside(self, key: str) -> int:
        query = "SELECT LENGTH(_ap) AS n FROM app.antipode_kv WHERE k = %s"
        return int(self.topology.execute(query, key)[0]["n"])

    def change(self, key: str, field: str, number: int, lineage: Lineage | None = None) -> Lineage:
        changed: Lineage = self.home.append(key, f"{field}={number};".encode(), lineage)
        return changed

    def parts(self, value: Any) -> dict[str, int]:
        items = (item.split("=") for item in value.decode().split(";") if item)
        return {field: int(number) for field, number in items}


class MongoStore(Store):
    """A field of the document; parts are fields of the value."""

    partial = True

    def __init__(self, topology: Any, name: str, stack: ExitStack) -> None:
        clients = [
            stack.enter_context(
                pymongo.MongoClient[Any](place.host, place.port, directConnection=True)
            )
            for place in (topology.primary, topology.replica)
        ]
        self._plain: Any = clients[0].xcy[name]
        super().__init__(
            topology,
            *(
                stack.enter_context(
                    mongodb.shim(
                        name,
                        client,
                        database="xcy",
                        collection=name,
                        reads_from="replica" if number else "primary",
                    )
                )
                for number, client in enumerate(clients)
            ),
        )

    def beside(self, key: str) -> int:
        import bson

        document: dict[str, Any] = self._plain.find_one({"_id": key})
        whole = len(bson.encode(document))
        del document["_ap"]
        return whole - len(bson.encode(document))

    def covers(self, lineage: Lineage, write: WriteId) -> bool:
        """What a majority has is one log, whatever the term in which it was written."""
        majority = replace(write, key=write.key.partition(".")[0])
        return super().covers(lineage, write) or super().covers(lineage, majority)

    def change(self, key: str, field: str, number: int, lineage: Lineage | None = None) -> Lineage:
        changed: Lineage = self.home.update(key, {field: number}, lineage)
        return changed

    def parts(self, value: Any) -> dict[str, int]:
        return dict(value)


class Messages(Store):
    """A topic that is published to in ``us`` and consumed in ``eu``."""

    def __init__(self, topology: Any, name: str, stack: ExitStack) -> None:
        self._exchange = f"geo.{uuid.uuid4().hex}"
        regions: tuple[Region, ...] = ("us", "eu")
        for region in regions:
            self._declare(topology.url(topology.address(region)))
            stack.callback(remove, topology, region, self._exchange)
        shims = [
            stack.enter_context(
                rabbitmq.shim(
                    name,
                    topology.url(topology.address(region)),
                    exchange=self._exchange,
                    queue=self._exchange,
                )
            )
            for region in regions
        ]
        topology.wait_federated(self._exchange)
        super().__init__(topology, *shims)

    def _declare(self, url: str) -> None:
        with pika.BlockingConnection(pika.URLParameters(url)) as connection:
            channel = connection.channel()
            channel.exchange_declare(self._exchange, "topic", durable=True)
            channel.queue_declare(self._exchange, durable=True)
            channel.queue_bind(self._exchange, self._exchange, "#")

    def get(self, key: str) -> tuple[bytes | None, Lineage]:
        """Take the next message; the test publishes no other key."""
        found: tuple[bytes | None, Lineage] = self.away.read(timeout=TIMEOUT_S)
        return found


KINDS: dict[str, Any] = {
    "embedded": EmbeddedStore,
    "redis": RedisStore,
    "mysql": SqlStore,
    "mariadb": SqlStore,
    "mongodb": MongoStore,
    "rabbitmq": Messages,
}


def over(*combinations: tuple[str, ...] | str) -> list[Any]:
    """Parameters of a test: the stores that it runs over."""
    return [
        pytest.param(names, marks=[pytest.mark.store(name) for name in names], id="-".join(names))
        for names in ((each,) if isinstance(each, str) else each for each in combinations)
    ]


@contextmanager
def opened(request: pytest.FixtureRequest, roles: dict[str, str]) -> Iterator[list[Any]]:
    """Stores by their roles, which name the datastores, on the session's servers."""
    with ExitStack() as stack:
        yield [
            KINDS[kind](request.getfixturevalue(f"antipode_{kind}"), role, stack)
            for role, kind in roles.items()
        ]


def at_once(*works: Callable[[], object]) -> None:
    """Run them in threads that start together; the first error is raised."""
    start = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        start.wait()
        work()

    with ThreadPoolExecutor(len(works)) as pool:
        for each in [pool.submit(run, work) for work in works]:
            each.result(TIMEOUT_S * 2)


def held_back(*stores: Store) -> None:
    """Assert that a barrier on the current lineage does not pass, because of these stores.

    On a busy machine there may be others that nobody has looked at by then.
    """
    with pytest.raises(BarrierTimeout) as caught:
        antipode.barrier(timeout=HELD_S)
    unmet = {outcome.write.datastore for outcome in caught.value.unmet}
    assert unmet >= {store.name for store in stores}, caught.value.result
