"""Instrumented connections of stomp.py: what enters the lineage, and what messages carry."""

from __future__ import annotations

import threading
import uuid
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest
import stomp

import antipode
from antipode import Lineage, WriteId
from antipode.shim import Incomplete
from antipode_shims import activemq
from antipode_shims.activemq._clients.stomp import Broker, Mailbox, close_quietly, connect
from antipode_shims.activemq._format import MOST_BYTES
from antipode_testing import LagProxy, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import ActiveMQTopology

pytestmark = pytest.mark.store("activemq")

NEWS = "news"
ELSEWHERE = WriteId("elsewhere", "log", 7, 490_000)


class Ends:
    """An instrumented connection to one broker, and what comes to a consumer of its."""

    def __init__(self, topology: ActiveMQTopology, stack: ExitStack) -> None:
        self.topic = f"/topic/{uuid.uuid4().hex}"
        self.box, self.inbox = Mailbox(), Mailbox()
        broker = Broker.parse(topology.url())
        self.consumer = connect(broker, self.inbox)
        stack.callback(close_quietly, self.consumer)
        self.connection = self.connected(broker, stack)
        self.subscribe(self.topic)

    def connected(self, broker: Broker, stack: ExitStack) -> Any:
        """A connection that is instrumented until the test ends."""
        made = connect(broker)
        made.set_listener("application", self.box)
        stack.callback(close_quietly, made)
        activemq.instrument_connection(made, datastore=NEWS, receipts=True)
        return made

    def subscribe(self, destination: str, ack: str = "auto") -> None:
        """Subscribe the consumer, and return when the broker knows."""
        name = uuid.uuid4().hex
        self.consumer.subscribe(destination, id=name, ack=ack, receipt=name)
        self.inbox.confirmed(name)

    def came(self) -> Any:
        """The next message."""
        return self.inbox.messages.get(timeout=10)


@pytest.fixture
def ends(antipode_activemq: ActiveMQTopology) -> Iterator[Ends]:
    """A connection and a consumer, which end with the test."""
    with ExitStack() as stack:
        yield Ends(antipode_activemq, stack)


def numbers() -> list[int]:
    """The numbers of the messages that the current scope depends on."""
    return sorted(int(write.version) for write in antipode.current().only(NEWS))


def test_a_message_enters_with_its_receipt(ends: Ends) -> None:
    """It does when the receipt comes, and carries what its request depends on."""
    with antipode.scope(Lineage([ELSEWHERE])):
        ends.connection.send(ends.topic, "1", receipt="r", persistent="true")
        ends.box.confirmed("r")
        wait_until(lambda: numbers() == [1], what="the message", timeout_s=10)
    with activemq.message(ends.came(), datastore=NEWS) as scope:
        assert ELSEWHERE in scope.lineage
        assert numbers() == [1]


def test_a_message_without_receipt_enters_as_it_is_sent(ends: Ends) -> None:
    """Readers have receipts: they can tell whether it came."""
    with antipode.scope():
        ends.connection.send(ends.topic, "1", headers={"persistent": "true"})
        assert numbers() == [1]


def test_a_transaction_enters_when_it_is_committed(ends: Ends) -> None:
    """A receipt within it proves nothing; an aborted one enters nothing."""
    with antipode.scope():
        ends.connection.begin("t")
        ends.connection.send(ends.topic, "1", transaction="t", receipt="within")
        ends.box.confirmed("within")
        assert numbers() == []
        ends.connection.commit("t", receipt="whole")
        ends.box.confirmed("whole")
        wait_until(lambda: numbers() == [1], what="the message", timeout_s=10)
    with antipode.scope():
        ends.connection.begin("u")
        ends.connection.send(ends.topic, "2", transaction="u")
        ends.connection.abort("u")
        assert antipode.current().empty


def test_a_broken_connection_leaves_doubt(ends: Ends, antipode_activemq: ActiveMQTopology) -> None:
    """What was sent without a receipt until then is in doubt; an open transaction is not."""
    with antipode.scope() as scope:
        ends.connection.begin("t")
        ends.connection.send(ends.topic, "1", transaction="t")
        antipode_activemq.suspend_broker("us")
        ends.connection.send(ends.topic, "2", receipt="never")
        antipode_activemq.kill_broker("us")
        wait_until(
            lambda: Incomplete(NEWS, "in_doubt") in scope.lineage.incomplete,
            what="the doubt",
            timeout_s=20,
        )
        assert numbers() == []
    antipode_activemq.restart_broker("us")


def test_a_connection_that_is_opened_again_has_another_publisher(ends: Ends) -> None:
    """A message that the broker lost without a word leaves no gap before the next one."""
    with antipode.scope():
        ends.connection.send(ends.topic, "1", headers={"persistent": "true"})
        reading = ends.connection.transport.io_thread
        close_quietly(ends.connection)
        reading.join()  # stomp.py's thread ends by closing what socket there is.
        ends.connection.connect(wait=True)
        ends.connection.send(ends.topic, "2", headers={"persistent": "true"})
        assert numbers() == [1, 1]


def test_a_shim_that_connects_again_has_another_publisher(
    antipode_activemq: ActiveMQTopology,
) -> None:
    """Its broker may have died, and lost what was not persistent."""
    with LagProxy(antipode_activemq.primary) as proxy, antipode.scope():
        before = set(threading.enumerate())
        shim = activemq.shim(NEWS, f"stomp://{proxy.address}", destination="/topic/again")
        with closing(shim):
            shim.write("1", b"1", persistent=False)
            receiving = set(threading.enumerate()) - before
            proxy.cut()
            for thread in receiving:
                thread.join(10)
            proxy.heal()
            shim.write("2", b"2", persistent=False)
            assert numbers() == [1, 1]


def test_messages_to_queues_carry_lineages_and_are_redelivered(ends: Ends) -> None:
    """Nobody waits for one; its lineage survives a redelivery to another consumer."""
    queue = f"/queue/{uuid.uuid4().hex}"
    with antipode.scope(Lineage([ELSEWHERE])):
        ends.connection.send(queue, "1", receipt="r")
        ends.box.confirmed("r")
        assert numbers() == []
    ends.subscribe(queue, ack="client-individual")
    first = ends.came()
    close_quietly(ends.consumer)
    with ExitStack() as stack:
        again = connect(
            Broker(*ends.connection.transport.current_host_and_port), inbox := Mailbox()
        )
        stack.callback(close_quietly, again)
        again.subscribe(queue, id="1", ack="auto")
        second = inbox.messages.get(timeout=10)
    assert first.headers["message-id"] == second.headers["message-id"]
    assert second.headers["redelivered"] == "true"
    with activemq.message(second, datastore=NEWS) as scope:
        assert ELSEWHERE in scope.lineage


def test_a_durable_subscription_misses_nothing(
    ends: Ends, antipode_activemq: ActiveMQTopology
) -> None:
    """What is published in the other region while it is away, and cut off, comes with lineages."""
    topology, numbered = antipode_activemq, {"id": "1", "activemq.subscriptionName": "durable"}

    def subscribed(box: Mailbox) -> Any:
        made = stomp.Connection12([tuple(topology.replica)], auto_content_length=False)
        made.set_listener("", box)
        made.connect(wait=True, headers={"client-id": ends.topic})
        made.subscribe(ends.topic, ack="auto", headers={**numbered, "receipt": "s"}, id="1")
        box.confirmed("s")
        return made

    close_quietly(subscribed(Mailbox()))
    topology.wait_forwarded(ends.topic)
    topology.cut()
    with antipode.scope(Lineage([ELSEWHERE])):
        ends.connection.send(ends.topic, "1", persistent="true", receipt="r")
        ends.box.confirmed("r")
    topology.heal()
    again = subscribed(box := Mailbox())
    frame = box.messages.get(timeout=20)
    while "antipode-probe" in frame.headers:  # Of `wait_forwarded`.
        frame = box.messages.get(timeout=20)
    with activemq.message(frame, datastore=NEWS) as scope:
        assert ELSEWHERE in scope.lineage
        assert numbers() == [1]
    again.unsubscribe(id="1", headers=numbered)
    close_quietly(again)


def test_full_headers_stay_as_they_are(ends: Ends) -> None:
    """A message whose headers leave no room goes as it was given, and is marked."""
    full = "x" * (MOST_BYTES - 20)
    with antipode.scope(Lineage([ELSEWHERE])) as scope:
        ends.connection.send(ends.topic, "1", full=full, receipt="r")
        ends.box.confirmed("r")
        assert Incomplete(NEWS, "unsampled") in scope.lineage.incomplete
    assert "baggage" not in ends.came().headers
    assert ends.connection.is_connected()


def test_a_long_lineage_is_cut_to_the_room(ends: Ends) -> None:
    """Beside long headers the lineage is shorter, says so, and the connection survives."""
    many = Lineage([WriteId(f"store-{at}", "log", 7, 490_000) for at in range(40)])
    with antipode.scope(many):
        ends.connection.send(ends.topic, "1", most="x" * (MOST_BYTES - 600), receipt="r")
        ends.box.confirmed("r")
    with activemq.message(ends.came(), datastore=NEWS) as scope:
        assert scope.lineage.incomplete
        assert 0 < len(scope.lineage) < len(many)


def test_uninstrumenting_leaves_a_plain_connection(ends: Ends) -> None:
    """Nothing enters any more, and messages are as they were given."""
    activemq.uninstrument_connection(ends.connection)
    with antipode.scope(Lineage([ELSEWHERE])):
        ends.connection.send(ends.topic, "1", receipt="r")
        ends.box.confirmed("r")
    assert "baggage" not in ends.came().headers


def test_receipts_need_a_topic() -> None:
    """A queue has one consumer for each message: the error says what to do instead."""
    with pytest.raises(antipode.ConfigurationError, match="VirtualTopic"):
        activemq.shim(NEWS, "stomp://127.0.0.1:1", destination="/queue/a", receipts=True)


def test_every_connection_by_its_address(
    antipode_activemq: ActiveMQTopology,
) -> None:
    """Made before or after; a call goes first, and the library's own connections stay plain."""
    broker = Broker.parse(antipode_activemq.url())
    hosts = [(broker.host, broker.port)]
    before, plain = stomp.Connection12(hosts), stomp.Connection12([("other.invalid", 61613)])
    activemq.instrument({NEWS: f"stomp://{broker.host}:{broker.port}?receipts=true"})
    after, own = stomp.Connection12(hosts), connect(broker)
    try:
        for connection in (before, after):
            connection.connect(broker.user, broker.password, wait=True)
            with antipode.scope():
                connection.send("/topic/by-address", "1", headers={"persistent": "true"})
                assert numbers()
        activemq.instrument_connection(after, datastore="others", receipts=True)
        with antipode.scope():
            after.send("/topic/by-address", "2", headers={"persistent": "true"})
            assert [*antipode.current().only("others")]
            assert not numbers()
        assert not any(hasattr(each, "_antipode") for each in (plain, own))
        activemq.uninstrument()
        with antipode.scope():
            before.send("/topic/by-address", "3", headers={"persistent": "true"})
            assert antipode.current().empty
        activemq.uninstrument_connection(after)
    finally:
        activemq.uninstrument()
        for each in (before, after, own):
            close_quietly(each)
