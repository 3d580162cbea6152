"""The ActiveMQ shim keeps the contract, on two brokers in a network."""

from __future__ import annotations

import uuid
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from antipode_shims import activemq
from antipode_shims.activemq._clients.stomp import Broker, Mailbox, close_quietly, connect
from antipode_shims.activemq._format import MOST_BYTES, PROMISE
from antipode_testing import ContractStore, LagProxy, ShimContract
from tests.agent._shims.rabbitmq import LastMessages
from tests.integration.rabbitmq._bench import once_asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode import Lineage, Promise
    from antipode_testing import ActiveMQTopology

pytestmark = pytest.mark.store("activemq")


class ActiveMQContractStore(ContractStore):
    """Published to a virtual topic in ``us``; the reader in ``eu`` has receipts and a queue."""

    topology: ActiveMQTopology

    def __init__(self, topology: ActiveMQTopology, stack: ExitStack) -> None:
        self.topology = topology
        self._name = f"VirtualTopic.{uuid.uuid4().hex}"
        self._views: dict[Any, LastMessages] = {}
        us = self._shim(topology.url(topology.primary), "us", reads_from="primary")
        eu = self._shim(topology.url(topology.replica), "eu", reads_from="replica")
        super().__init__(topology, us, eu)
        stack.callback(eu.close)
        stack.callback(us.close)
        for each in (us, eu):
            self._subscribe(each)
        topology.wait_forwarded(f"/topic/{self._name}")

    def _shim(self, url: str, application: str, **options: Any) -> Any:
        made = activemq.shim(
            "news",
            url,
            destination=f"/topic/{self._name}",
            queue=f"/queue/Consumer.{application}.{self._name}",
            receipts=options["reads_from"] == "replica" or None,
            **options,
        )
        server = self.topology.replica if application == "eu" else self.topology.primary
        self._views[made] = LastMessages(made, lambda: self._mark(server, made.queue))
        return made

    def _mark(self, server: Any, queue: str) -> str:
        """Put a message into the queue itself; its key."""
        key = uuid.uuid4().hex
        with self._plain(server) as connection:
            connection.send(queue, b"", headers={"correlation-id": key, "receipt": key})
        return key

    def _subscribe(self, shim: Any) -> None:
        """Let the queue of *shim* be there: it is from the first subscription on."""
        shim.read()

    def read(self, key: str) -> tuple[bytes | None, Lineage]:
        return self._views[self.reader].read(key)

    def read_primary(self, key: str) -> tuple[bytes | None, Lineage]:
        return self._views[self.writer].read(key)

    def refused_write(self, key: str, value: bytes) -> None:
        """In a transaction that never began."""
        box = Mailbox()
        connection = connect(Broker.parse(self.topology.url()), box)
        activemq.instrument_connection(connection, datastore="news")
        headers = {"correlation-id": key, "transaction": "never", "receipt": "refused"}
        try:
            connection.send(f"/topic/{self._name}", value, headers=headers)
            box.confirmed("refused")
        finally:
            close_quietly(connection)

    def doubtful_write(self, key: str, value: bytes) -> None:
        """The message arrives; its receipt does not."""
        with LagProxy(self.topology.primary) as proxy:
            url = f"stomp://{proxy.address}"
            with closing(self._shim(url, "doubtful", reads_from="primary")) as doubtful:
                with self.antipode.scope():
                    doubtful.write("opens the connection", b"")
                with once_asked(proxy, proxy.cut):
                    doubtful.write(key, value)

    def rolled_back(self, key: str, value: bytes, promise: Promise) -> None:
        """In a transaction that is aborted."""
        headers = {"correlation-id": key, PROMISE: promise.token}
        with self._plain(self.topology.primary) as connection:
            connection.begin("t")
            connection.send(f"/topic/{self._name}", value, headers=headers, transaction="t")
            connection.abort("t", receipt="aborted")

    def corrupt(self, key: str, text: str) -> None:
        """Publish such a message in the reader's region, without the library."""
        if len(text) > MOST_BYTES:  # The broker would end the connection.
            text = text[: MOST_BYTES // 2] + "!"
        headers = {"correlation-id": key, "baggage": f"antipode={text}"}
        with self._plain(self.topology.replica) as connection:
            connection.send(f"/topic/{self._name}", b"1", headers=headers, receipt="sent")

    @contextmanager
    def _plain(self, server: Any) -> Iterator[Any]:
        """A connection of stomp.py, whose last receipt is waited for."""
        box = Mailbox()
        connection = connect(Broker.parse(self.topology.url(server)), box)
        try:
            yield connection
            assert box.receipts.get(timeout=10)
        finally:
            close_quietly(connection)


class TestActiveMQ(ShimContract):
    """Real brokers."""

    opt_outs: ClassVar[dict[str, str]] = {
        "abandonment": (
            "a broker keeps no records: that nothing was seen proves nothing, and a message that "
            "gives up could come after one that fulfils"
        ),
        "deletes": "a published message cannot be deleted",
        "failover": "brokers of a network have messages of their own: none takes another's place",
        "dry_run": "a queue hands out what it has: no read comes early, and none is judged",
        "automatic": "a queue hands out what it has: no read can be held back for what it lacks",
        "floors": "a queue hands out what it has: no read can be held back for what it lacks",
        "fences": "a broker keeps no log whose position a consumer could wait for",
        "partial_updates": "a message has no parts that are written alone",
        "unknown_writes": "nothing writes but publications, and the shim reads each",
        "reseed": "that a message came cannot be undone: receipts do not go back",
        "unreachable": "what was seen stays visible while the broker is away",
    }

    @pytest.fixture
    def store(self, antipode_activemq: ActiveMQTopology) -> Iterator[ActiveMQContractStore]:
        """A shim in each region."""
        with ExitStack() as stack:
            yield ActiveMQContractStore(antipode_activemq, stack)
