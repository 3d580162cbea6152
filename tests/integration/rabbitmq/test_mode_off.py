"""``mode="off"``: no reply, error or message differs from the plain client's, but for headers."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from pika import BasicProperties

import antipode
from antipode_shims import rabbitmq
from antipode_testing import wait_until
from tests.integration._played import played

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.rabbitmq._bench import Bench

pytestmark = pytest.mark.store("rabbitmq")
QUEUE = "played"
GIVEN = BasicProperties(content_type="text/plain", correlation_id="7", headers={"own": "header"})


def rejected(channel: Any) -> None:
    """Give back what was received: there is no reply, and a queue counts before it takes it."""
    channel.basic_nack(0, multiple=True)
    wait_until(
        lambda: channel.queue_declare(QUEUE).method.message_count,
        what="the message to be back",
        timeout_s=10,
    )


#: What an application may do with a channel, what closes it last.
CALLS: dict[str, Callable[[Any], Any]] = {
    "declare": lambda channel: channel.queue_declare(QUEUE).method.message_count,
    "publish": lambda channel: channel.basic_publish("", QUEUE, b"body", GIVEN),
    "bare": lambda channel: channel.basic_publish("", QUEUE, b"bare"),
    "unroutable": lambda channel: channel.basic_publish("", "absent", b"", mandatory=True),
    "get": lambda channel: channel.basic_get(QUEUE),
    "ack": lambda channel: channel.basic_ack(0, multiple=True),
    "reject": rejected,
    "select": lambda channel: channel.tx_select(),
    "commit": lambda channel: channel.tx_commit(),
    "rollback": lambda channel: channel.tx_rollback(),
    "no exchange": lambda channel: channel.basic_publish("absent", QUEUE, b""),
    "empty": lambda channel: channel.queue_purge(QUEUE).method.message_count,
}
CONFIRMED = (
    *("declare", "publish", "get", "ack", "bare", "get", "reject", "get", "ack", "get"),
    *("publish", "unroutable", "declare", "get", "ack", "no exchange", "declare"),
)
TRANSACTED = (
    *("declare", "select", "publish", "rollback", "get", "publish", "commit", "get", "ack"),
    *("commit", "bare", "commit", "empty", "get", "no exchange", "commit"),
)


class OneChannel:
    """pika's blocking channel."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.heard: list[str] = []

    def execute(self, statement: str) -> Any:
        found = CALLS[statement](self.channel)
        if statement != "get":
            return repr(found)
        method, properties, body = found
        headers = dict(getattr(properties, "headers", None) or {})
        own = {name: headers[name] for name in headers if name == "own"}
        again = getattr(method, "redelivered", None)
        return body, again, own, getattr(properties, "correlation_id", None)

    def state(self) -> Any:
        return self.channel.is_open

    def close(self) -> None:
        self.channel.close()


@pytest.mark.parametrize("confirms", [True, False])
@pytest.mark.parametrize("scoped", [True, False])
def test_a_channel_is_the_plain_one(bench: Bench, *, confirms: bool, scoped: bool) -> None:
    """Every step ends as it does without the library, and leaves as many messages."""
    antipode.configure(mode="off")
    scripts = []
    for instrumented in (False, True):
        observer = bench.channel()
        observer.queue_delete(QUEUE)

        def left(observer: Any = observer) -> Any:
            return observer.queue_declare(QUEUE).method.message_count

        channel = bench.channel() if confirms else bench.connection().channel()
        if instrumented:
            rabbitmq.instrument_channel(channel, datastore="news")
        with ExitStack() as stack:
            if scoped:
                stack.enter_context(antipode.scope())
            steps = CONFIRMED if confirms else TRANSACTED
            scripts.append(played(OneChannel(channel), steps, left))
        observer.queue_delete(QUEUE)
    for plain, ours in zip(*scripts, strict=True):
        assert ours == plain
