"""``mode="off"``: receipts, errors and messages are the plain client's, but for headers."""

from __future__ import annotations

import threading
import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
import stomp

import antipode
from antipode_shims import activemq
from antipode_shims.activemq._clients.stomp import Broker, close_quietly, connect
from antipode_testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode_testing import ActiveMQTopology

pytestmark = pytest.mark.store("activemq")

TIMEOUT_S = 20
#: What comes after everything else.
LAST = "last"


class Told(stomp.ConnectionListener):
    """All that an application hears, in its order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, ...]] = []
        self._over = threading.Event()

    def on_receipt(self, frame: Any) -> None:
        """The broker's receipt."""
        self.events.append(("receipt", frame.headers["receipt-id"]))
        if frame.headers["receipt-id"] == LAST:
            self._over.set()

    def on_error(self, frame: Any) -> None:
        """The broker's error, after which the connection ends."""
        self.events.append(("error", frame.headers["message"].partition(":")[0]))

    def on_message(self, frame: Any) -> None:
        """A message, with the headers that are the application's."""
        own = frame.headers.get("own", ""), frame.headers.get("correlation-id", "")
        self.events.append(("message", frame.body, *own))

    def on_disconnected(self) -> None:
        """The end."""
        self.events.append(("disconnected",))
        self._over.set()

    def wait(self) -> None:
        """Until the last receipt, or the end of the connection."""
        assert self._over.wait(TIMEOUT_S)


def confirmed(one: Any, to: str) -> None:
    """Messages with receipts, of which two have one id, and one without."""
    one.send(to, "a", receipt="1", own="header", **{"correlation-id": "7"})
    one.send(to, "b", receipt="2")
    one.send(to, "c", receipt="2", persistent="true")
    one.send(to, "d")


def transacted(one: Any, to: str) -> None:
    """A transaction that commits, and one that does not."""
    for end, body in (("abort", "lost"), ("commit", "kept")):
        transaction = one.begin()
        one.send(to, body, transaction=transaction, receipt=f"{body} 1", own="header")
        getattr(one, end)(transaction, receipt=f"{body} 2")


def refused(one: Any, to: str) -> None:
    """A transaction that there is not."""
    one.send(to, "before", receipt="1")
    one.send(to, "never", transaction="none", receipt="2")


def events(
    topology: ActiveMQTopology,
    script: Callable[[Any, str], None],
    messages: int,
    *,
    instrumented: bool,
) -> dict[str, list[tuple[str, ...]]]:
    """What an application hears that publishes, and one that consumes."""
    with ExitStack() as stack:
        to = f"/queue/{uuid.uuid4().hex}"
        broker, told, came = Broker.parse(topology.url()), Told(), Told()
        one, consumer = connect(broker), connect(broker)
        for each, listener in ((one, told), (consumer, came)):
            stack.callback(close_quietly, each)
            each.set_listener("told", listener)
        if instrumented:
            activemq.instrument_connection(one, datastore="news", receipts=True)
        with antipode.scope():
            script(one, to)
            if one.is_connected():
                one.send(to, LAST, receipt=LAST)
        told.wait()
        consumer.subscribe(to, id="1", ack="auto")
        wait_until(
            lambda: len(came.events) >= messages, timeout_s=TIMEOUT_S, what="all messages to come"
        )
        # What is persistent comes before what is not, or after it.
        return {"publisher": list(told.events), "consumer": sorted(came.events)}


@pytest.mark.parametrize(("script", "messages"), [(confirmed, 5), (transacted, 2), (refused, 2)])
def test_what_is_heard_is_the_plain_clients(
    antipode_activemq: ActiveMQTopology, script: Callable[[Any, str], None], messages: int
) -> None:
    """Receipts and errors in the same order, and messages with the same headers of their own."""
    antipode.configure(mode="off")
    plain = events(antipode_activemq, script, messages, instrumented=False)
    assert len(plain["consumer"]) == messages
    assert events(antipode_activemq, script, messages, instrumented=True) == plain
