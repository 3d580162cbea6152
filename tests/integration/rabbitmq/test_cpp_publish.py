"""What the C++ publisher makes of refusals, of doubt and of what other languages consume."""

from __future__ import annotations

import uuid
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pika
import pytest

from antipode import Lineage, Promise, WriteId
from antipode_shims import rabbitmq
from antipode_testing import LagProxy
from tests.agent.client import RemoteAntipode, RemoteShim, StoreError
from tests.integration.rabbitmq._bench import CAUSES, IN_DOUBT, once_asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import RabbitMQTopology
    from tests.agent.lending import Lend

pytestmark = [pytest.mark.store("rabbitmq"), pytest.mark.slow]


class Bench:
    """An agent of C++, and a queue of the default exchange."""

    def __init__(
        self, topology: RabbitMQTopology, remote: RemoteAntipode, stack: ExitStack
    ) -> None:
        self.antipode = remote
        self.queue = f"cpp.{uuid.uuid4().hex}"
        self.url = topology.url()
        self._stack = stack
        connection = stack.enter_context(pika.BlockingConnection(pika.URLParameters(self.url)))
        self.channel: Any = connection.channel()
        self.channel.queue_declare(self.queue)
        stack.callback(self.channel.queue_delete, self.queue)

    def publisher(self, url: str = "", exchange: str = "") -> RemoteShim:
        server = {"url": url or self.url, "exchange": exchange, "queue": self.queue}
        made = RemoteShim(self.antipode, "rabbitmq", "news", server)
        return self._stack.enter_context(closing(made))

    def consumed(self) -> tuple[bytes, Lineage]:
        """The next message, and what its consumer in Python depends on."""
        *_, properties, body = self.channel.basic_get(self.queue, auto_ack=True)
        with rabbitmq.message(properties) as held:
            return body, held.lineage


@pytest.fixture
def bench(antipode_rabbitmq: RabbitMQTopology, lend: Lend) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(antipode_rabbitmq, lend("cpp"), stack)


def test_python_consumes_it(bench: Bench) -> None:
    """The message carries what it depends on, and names itself; both languages read it alike."""
    publisher = bench.publisher()
    with bench.antipode.scope() as scope:
        written = publisher.write(bench.queue, b"1", CAUSES)
        (own,) = set(written) - set(CAUSES)
        assert own in scope.lineage
    assert bench.consumed() == (b"1", written)
    publisher.write(bench.queue, b"2", CAUSES)
    value, lineage = publisher.read(bench.queue)
    assert value == b"2"
    assert {each.key for each in lineage} == {each.key for each in written}


def test_publications_are_numbered(bench: Bench) -> None:
    """One publisher counts what it publishes; the key states when it began."""
    publisher = bench.publisher()
    names: list[WriteId] = [
        each for _ in range(3) for each in publisher.write(bench.queue, b"", Lineage())
    ]
    assert [each.version for each in names] == [1, 2, 3]
    assert {uuid.UUID(each.key).version for each in names} == {7}
    assert len({each.key for each in names}) == 1


def test_unroutable_message_enters_nothing(bench: Bench) -> None:
    """It came back: the broker has none, and the numbers begin anew."""
    publisher = bench.publisher()
    with bench.antipode.scope() as scope:
        with pytest.raises(StoreError, match="no queue takes"):
            publisher.write("no such queue", b"1")
        assert scope.lineage.empty
        assert len(publisher.write(bench.queue, b"2")) == 1


def test_missing_exchange_enters_nothing(bench: Bench) -> None:
    """The broker closes the channel, which is opened again."""
    publisher = bench.publisher(exchange="no.such.exchange")
    with bench.antipode.scope() as scope:
        for _ in range(2):
            with pytest.raises(StoreError, match="NOT_FOUND"):
                publisher.write(bench.queue, b"1")
        assert scope.lineage.empty


def test_lost_confirm_is_in_doubt(bench: Bench, antipode_rabbitmq: RabbitMQTopology) -> None:
    """The message arrives, its confirm does not; the publisher goes on, under a new name."""
    address = antipode_rabbitmq.address("us")
    with LagProxy(address) as proxy:
        publisher = bench.publisher(bench.url.replace(str(address), str(proxy.address)))
        before = publisher.write(bench.queue, b"1", Lineage())
        with bench.antipode.scope() as scope:
            with once_asked(proxy, proxy.cut), pytest.raises(StoreError):
                publisher.write(bench.queue, b"2")
            assert scope.lineage == Lineage(incomplete=IN_DOUBT)
        proxy.resume()
        proxy.heal()
        after = publisher.write(bench.queue, b"3", Lineage())
        assert {each.key for each in before}.isdisjoint(each.key for each in after)


def test_message_fulfils_a_promise(bench: Bench) -> None:
    """It has the promise's token, as other languages read it."""
    promise = Promise("news", "0" * 31 + "1", 4_000_000_000)
    bench.publisher().write(bench.queue, b"1", fulfils=promise)
    *_, properties, _ = bench.channel.basic_get(bench.queue, auto_ack=True)
    assert properties.headers["antipode-promise"] == promise.token
