"""Sessions of stomp.py over two brokers in a network: receipts, transactions, lost connections."""

from __future__ import annotations

import contextlib
import threading
import uuid
from typing import TYPE_CHECKING, Any, ClassVar

import stomp

from antipode_shims import activemq
from antipode_testing import ActiveMQTopology, LagProxy, wait_until

from .bench import DATASTORE, OFTEN, Bench, Fault, step
from .connected import AsCalls

if TYPE_CHECKING:
    import random

    from typing_extensions import Self

TOPIC = "/topic/VirtualTopic.session"
QUEUE = "/queue/session"
#: Nobody's, for frames that show that those before them were taken.
ASIDE = "/queue/aside"
ANSWERS_S = 10.0
LAG_MS = 1_500.0
#: What all headers of a message have, together.
HEADERS = 8_192


class Heard(stomp.ConnectionListener):
    """The messages and receipts that came to one connection."""

    def __init__(self) -> None:
        self.bodies: list[str] = []
        self.marks: set[str] = set()
        self.receipts: set[str] = set()
        self._changed = threading.Condition()

    def on_message(self, frame: Any) -> None:
        """Keep it, apart from marks and from what showed that the network forwards."""
        mark = frame.headers.get("mark")
        with self._changed:
            if mark:
                self.marks.add(mark)
            elif frame.body:
                self.bodies.append(frame.body)
            self._changed.notify_all()

    def on_receipt(self, frame: Any) -> None:
        """Keep its id."""
        with self._changed:
            self.receipts.add(frame.headers["receipt-id"])
            self._changed.notify_all()

    def wait(self, of: set[str], one: str) -> bool:
        """Whether *one* came among *of* in time."""
        with self._changed:
            return self._changed.wait_for(lambda: one in of, ANSWERS_S)


class StompPy(AsCalls, Bench):
    """A connection that publishes to a topic in one region; the other one listens."""

    refusals: ClassVar[tuple[type[BaseException], ...]] = (
        stomp.exception.StompException,
        OSError,
    )

    def __init__(self) -> None:
        super().__init__()
        self.topology = ActiveMQTopology()

    def __enter__(self) -> Self:
        self.topology.start()
        self._stack = contextlib.ExitStack()
        self._near, self._near_heard = self._subscribed(self.topology.primary)
        _, self._far_heard = self._subscribed(self.topology.replica)
        shim = activemq.shim(
            DATASTORE,
            self.topology.url(self.topology.replica),
            destination=TOPIC,
            receipts=True,
            reads_from="replica",
        )
        self._stack.enter_context(shim)
        self.topology.wait_forwarded(TOPIC)
        self._proxy = self._stack.enter_context(LagProxy(self.topology.primary))
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()
        self.topology.close()

    def _connected(self, server: Any) -> tuple[Any, Heard]:
        connection, heard = stomp.Connection12([(server.host, server.port)]), Heard()
        connection.set_listener("heard", heard)
        connection.connect(wait=True)
        return connection, heard

    def _subscribed(self, server: Any) -> tuple[Any, Heard]:
        connection, heard = self._connected(server)
        self._stack.callback(self._end, connection)
        connection.subscribe(TOPIC, id="1", ack="auto")
        return connection, heard

    def _end(self, connection: Any) -> None:
        with contextlib.suppress(*self.refusals):
            connection.disconnect()

    def open(self, choose: random.Random) -> None:
        """Connect by a proxy."""
        self._transaction = ""
        self._connect()

    def _connect(self) -> None:
        self.session, self._heard = self._connected(self._proxy.address)
        activemq.instrument_connection(self.session, datastore=DATASTORE, receipts=True)

    def whole(self) -> Any:
        """The session's connection; another where it is gone."""
        if not self.session.is_connected():
            self.trace.append("-- reconnect")
            self._transaction = ""
            self._connect()
        return self.session

    def settle(self) -> None:
        """Abort what is open."""
        if self._transaction and self.session.is_connected():
            with contextlib.suppress(*self.refusals):
                self.session.abort(self._transaction)
        self._transaction = ""
        self.whole()

    def close(self) -> None:
        """Close the connection."""
        self._end(self.session)

    def committed(self) -> object:
        """The messages that subscribers in the session's region have; their order means nothing."""
        with contextlib.suppress(*self.refusals):
            receipt = uuid.uuid4().hex
            # Not by the instrumented call: nobody asked for that message.
            self.session.transport.transmit(
                stomp.utils.Frame("SEND", {"destination": ASIDE, "receipt": receipt}, "")
            )
            self._heard.wait(self._heard.receipts, receipt)
        return self._committed()

    def _committed(self) -> object:
        mark = uuid.uuid4().hex
        self._near.send(TOPIC, "", mark=mark)
        if not self._near_heard.wait(self._near_heard.marks, mark):
            raise Fault("broken", "the broker gives its subscriber nothing")
        return sorted(self._near_heard.bodies)

    def shown(self) -> object:
        """Those of the other region."""
        return sorted(self._far_heard.bodies)

    def hold(self) -> None:
        """Delay what is forwarded: brokers that hear nothing for four seconds are apart."""
        self.topology.set_lag(LAG_MS)

    def release(self) -> None:
        """Forward at once."""
        self.topology.set_lag(0)

    def publish(self, destination: str = TOPIC, **headers: Any) -> None:
        """A message that there was not."""
        session, body = self.whole(), str(self.number())
        if self._transaction:
            headers["transaction"] = self._transaction
        self.trace.append(f"send {destination} {body} {headers or ''}")
        session.send(destination, body, headers=headers)

    @step(OFTEN)
    async def message(self, choose: random.Random) -> None:
        """One message with a receipt, persistent or not."""
        self.publish(receipt=self._receipt(choose), persistent=choose.choice(("true", "false")))

    @staticmethod
    def _receipt(choose: random.Random) -> str:
        """Of few ids, so that several frames have one at a time."""
        return choose.choice("abc")

    @step(4)
    async def unconfirmed(self, choose: random.Random) -> None:
        """One without a receipt."""
        self.publish()

    @step(4)
    async def messages(self, choose: random.Random) -> None:
        """Several, some of them with receipts."""
        for _ in range(choose.randrange(2, 5)):
            self.publish(**({"receipt": self._receipt(choose)} if choose.random() < 0.5 else {}))

    @step(4)
    async def begin(self, choose: random.Random) -> None:
        """Begin a transaction, where none is open."""
        if not self._transaction:
            session = self.whole()
            self._transaction = session.begin()
            self.trace.append("begin")

    @step(OFTEN)
    async def commit(self, choose: random.Random) -> None:
        """Commit it, perhaps with a receipt."""
        session, transaction = self.whole(), self._transaction
        if transaction:
            self._transaction = ""
            headers = {"receipt": self._receipt(choose)} if choose.random() < 0.7 else {}
            self.trace.append(f"commit {headers or ''}")
            session.commit(transaction, headers=headers)

    @step(4)
    async def abort(self, choose: random.Random) -> None:
        """Abort it."""
        session, transaction = self.whole(), self._transaction
        if transaction:
            self._transaction = ""
            self.trace.append("abort")
            session.abort(transaction)

    @step(2)
    async def to_a_queue(self, choose: random.Random) -> None:
        """Which nobody in the other region hears."""
        self.publish(QUEUE, receipt=self._receipt(choose))

    @step()
    async def no_transaction(self, choose: random.Random) -> None:
        """In a transaction that there is not: the broker refuses it."""
        session = self.whole()
        self.trace.append("send in a transaction that there is not")
        session.send(TOPIC, str(self.number()), headers={"transaction": "none", "receipt": "a"})

    @step()
    async def full_headers(self, choose: random.Random) -> None:
        """Headers that leave no room for ours."""
        self.publish(mine="x" * (HEADERS - choose.choice((300, 600, 1_200))))

    @step()
    async def lost_answer(self, choose: random.Random) -> None:
        """The connection is lost after the broker took the message, and before its receipt came."""
        self.whole()
        self._proxy.set_lag(ANSWERS_S * 1000)
        try:
            self.trace.append("-- the connection is lost meanwhile")
            before = len(self._near_heard.bodies)
            self.publish(receipt=self._receipt(choose))
            if not self._transaction:
                wait_until(
                    lambda: len(self._near_heard.bodies) > before,
                    timeout_s=ANSWERS_S,
                    what="the message to arrive",
                )
        finally:
            self._proxy.cut()
            wait_until(
                lambda: not self.session.is_connected(),
                timeout_s=ANSWERS_S,
                what="the connection to end",
            )
            self._proxy.heal()
            self._proxy.set_lag(0)

    @step(2)
    async def disconnected(self, choose: random.Random) -> None:
        """The application ends its connection in order, and makes another."""
        self.trace.append("disconnect")
        self._end(self.whole())

    @step(2)
    async def receive(self, choose: random.Random) -> None:
        """The messages of a queue, each in a scope of its own; unanswered, they come again."""
        self.whole()
        reader, heard = self._connected(self.topology.primary)
        try:
            found: list[Any] = []

            class Listener(stomp.ConnectionListener):
                def on_message(self, frame: Any) -> None:
                    with activemq.message(frame, datastore=DATASTORE) as held:
                        found.append(held.lineage)

            reader.set_listener("app", Listener())
            reader.subscribe(QUEUE, id="2", ack="client-individual")
            receipt = uuid.uuid4().hex
            reader.send(ASIDE, "", receipt=receipt)
            heard.wait(heard.receipts, receipt)
            if any(each is None for each in found):
                raise Fault("broken", "a message without a scope")
        finally:
            self._end(reader)
