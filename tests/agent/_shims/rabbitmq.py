"""RabbitMQ: the last message of each routing key, as a consumer keeps it that builds a table."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pika

import antipode
from antipode import Lineage
from antipode_shims import rabbitmq
from tests.agent._values import Unsupported

from ._open import Client, OpenShim, Table2, options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from antipode import Promise
    from antipode_shims.rabbitmq import RabbitMQShim

MARK_S = 20.0


class LastMessages:
    """The last message of each key of a shim's queue, of any broker.

    Where a broker hands messages out by itself, *mark* puts one into the queue and returns its key:
    a read takes all that comes before it.
    """

    def __init__(self, shim: Any, mark: Callable[[], str] | None = None) -> None:
        self._shim = shim
        self._mark = mark
        self._lock = threading.Lock()
        self._last: dict[str, Any] = {}

    def read(self, key: str) -> tuple[bytes | None, Lineage]:
        """Take in what the queue holds; the key's last value, whose lineage enters the scope."""
        with self._lock:
            self._take_all()
            found = self._last.get(key)
        if found is None:
            return None, Lineage()
        if not found.lineage.empty:
            antipode.transfer(found.lineage)
        return found.value, found.lineage

    def _take_all(self) -> None:
        if self._mark is None:
            while self._take_one() is not None:
                pass
            return
        mark = self._mark()
        while (key := self._take_one(timeout=MARK_S)) != mark:
            assert key is not None, f"no message in {MARK_S} s, not even the mark"

    def _take_one(self, **options: float) -> str | None:
        with self._shim.receive(**options) as delivery:
            if delivery is None:
                return None
            self._last[delivery.key] = delivery
        key: str = delivery.key
        return key


class _Messages(Table2):
    """Publications, which somebody must take, and the last of each key."""

    def __init__(self, shim: RabbitMQShim, url: str) -> None:
        super().__init__(shim, roll_back=self._roll_back_publication)
        self._last = LastMessages(shim)
        self._parameters = pika.URLParameters(url)

    def write(self, key: str, value: str, lineage: Lineage | None, fulfils: Promise | None) -> Any:
        return self.shim.write(key, value, lineage, fulfils=fulfils, mandatory=True)

    def delete(self, key: str, lineage: Lineage | None) -> Any:
        del key, lineage
        raise Unsupported("a published message cannot be deleted")

    def read(self, key: str) -> tuple[str | None, Lineage]:
        value, lineage = self._last.read(key)
        return None if value is None else value.decode(), lineage

    async def read_async(self, key: str) -> tuple[str | None, Any]:
        msg = f"no asynchronous consumer for {key}"
        raise Unsupported(msg)

    def _roll_back_publication(self, key: str, value: bytes, promise: Promise) -> None:
        with pika.BlockingConnection(self._parameters) as connection:
            channel = connection.channel()
            channel.tx_select()
            properties = pika.BasicProperties(headers=rabbitmq.fulfil(None, promise))
            channel.basic_publish(self.shim.exchange, key, value, properties)
            channel.tx_rollback()


def open_shim(given: Mapping[str, Any]) -> OpenShim:
    """A shim; one that reads from a replica listens for receipts."""
    server = given["server"]
    made = rabbitmq.shim(
        given["datastore"],
        server["url"],
        exchange=server["exchange"],
        queue=server["queue"],
        receipts=given.get("reads_from") == "replica" or None,
        **options(given),
    )
    return _Messages(made, server["url"])


def open_client(given: Mapping[str, Any]) -> OpenShim:
    """`basic_publish` with confirms, and `basic_get` of whatever message comes next."""
    server = given["server"]
    connection = pika.BlockingConnection(pika.URLParameters(server["url"]))
    channel = rabbitmq.instrument_channel(connection.channel(), datastore=given["datastore"])
    channel.confirm_delivery()

    def write(key: str, value: str) -> None:
        channel.basic_publish(server["exchange"], key, value.encode(), mandatory=True)

    def read(key: str) -> bytes | None:
        del key
        body: bytes | None = channel.basic_get(server["queue"], auto_ack=True)[2]
        return body

    return Client(write=write, delete=None, read=read, close=connection.close)
