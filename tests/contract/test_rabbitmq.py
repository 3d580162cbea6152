"""The RabbitMQ shim keeps the contract, on two federated brokers."""

from __future__ import annotations

import uuid
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, ClassVar

import pika
import pytest

from antipode_shims import rabbitmq
from antipode_testing import ContractStore, LagProxy, ShimContract
from tests.agent._shims.rabbitmq import LastMessages
from tests.contract._servers import declare
from tests.integration.rabbitmq._bench import Region, once_asked, remove

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode import Lineage, Promise
    from antipode_testing import RabbitMQTopology

pytestmark = pytest.mark.store("rabbitmq")


class RabbitMQContractStore(ContractStore):
    """Published to in ``us``; the reader in ``eu`` has receipts and a queue."""

    topology: RabbitMQTopology

    def __init__(self, topology: RabbitMQTopology, stack: ExitStack) -> None:
        self._stack = stack
        self._views: dict[Any, LastMessages] = {}
        self._exchange = f"geo.{uuid.uuid4().hex}"
        regions: tuple[Region, ...] = ("us", "eu")
        for region in regions:
            declare(topology.url(topology.address(region)), self._exchange)
            stack.callback(remove, topology, region, self._exchange)
        us, eu = (
            self._shim(
                topology.url(topology.address(region)),
                reads_from="replica" if region == "eu" else "primary",
            )
            for region in regions
        )
        super().__init__(topology, us, eu)
        topology.wait_federated(self._exchange)

    def _shim(self, url: str, **options: Any) -> Any:
        made = rabbitmq.shim(
            "news",
            url,
            exchange=self._exchange,
            queue=self._exchange,
            receipts=options["reads_from"] == "replica" or None,
            **options,
        )
        self._views[made] = LastMessages(made)
        return made

    def read(self, key: str) -> tuple[bytes | None, Lineage]:
        return self._views[self.reader].read(key)

    def read_primary(self, key: str) -> tuple[bytes | None, Lineage]:
        return self._views[self.writer].read(key)

    def refused_write(self, key: str, value: bytes) -> None:
        """Nobody takes it, and it must be taken."""
        with rabbitmq.shim("news", self.topology.url()) as direct:
            direct.write(key, value, mandatory=True)

    def doubtful_write(self, key: str, value: bytes) -> None:
        """The message arrives; its confirm does not."""
        with LagProxy(self.topology.address("us")) as proxy:
            url = self.topology.url().replace(str(self.topology.address("us")), str(proxy.address))
            with closing(self._shim(url, reads_from="primary")) as doubtful:
                with self.antipode.scope():
                    doubtful.write("opens the connection", b"")
                with once_asked(proxy, proxy.cut):
                    doubtful.write(key, value)

    def rolled_back(self, key: str, value: bytes, promise: Promise) -> None:
        """In a transaction of AMQP's own."""
        url = self.topology.url()
        with pika.BlockingConnection(pika.URLParameters(url)) as connection:
            channel = connection.channel()
            channel.tx_select()
            properties = pika.BasicProperties(headers=rabbitmq.fulfil(None, promise))
            channel.basic_publish(self._exchange, key, value, properties)
            channel.tx_rollback()

    def corrupt(self, key: str, text: str) -> None:
        """Publish such a message in the reader's region, without the library."""
        url = self.topology.url(self.topology.replica)
        with pika.BlockingConnection(pika.URLParameters(url)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            headers = {"baggage": f"antipode={text}"}
            channel.basic_publish(self._exchange, key, b"1", pika.BasicProperties(headers=headers))


class TestRabbitMQ(ShimContract):
    """Real brokers."""

    opt_outs: ClassVar[dict[str, str]] = {
        "abandonment": (
            "a broker keeps no records: that nothing was seen proves nothing, and a message that "
            "gives up could come after one that fulfils"
        ),
        "deletes": "a published message cannot be deleted",
        "failover": (
            "a message that a dead broker kept is told from a late one by nobody: the barrier "
            "ends at its deadline; tests/integration/rabbitmq/test_receipts.py shows it"
        ),
        "dry_run": "a queue hands out what it has: no read comes early, and none is judged",
        "automatic": "a queue hands out what it has: no read can be held back for what it lacks",
        "floors": "a queue hands out what it has: no read can be held back for what it lacks",
        "fences": "a broker keeps no log whose position a consumer could wait for",
        "partial_updates": "a message has no parts that are written alone",
        "unknown_writes": "nothing writes but publications, and the shim reads each",
        "reseed": "that a message was routed cannot be undone: receipts do not go back",
        "unreachable": (
            "what was seen stays visible while the broker is away; for what was not, "
            "tests/integration/rabbitmq/test_receipts.py shows unreachable"
        ),
    }

    @pytest.fixture
    def store(self, antipode_rabbitmq: RabbitMQTopology) -> Iterator[RabbitMQContractStore]:
        """A shim in each region."""
        with ExitStack() as stack:
            store = RabbitMQContractStore(antipode_rabbitmq, stack)
            yield store
            store.writer.close()
            store.reader.close()
