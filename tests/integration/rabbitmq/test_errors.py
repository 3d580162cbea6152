"""Errors of the broker reach the application as pika raises them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pika
import pytest

import antipode
from antipode_shims import rabbitmq
from tests.integration._errors import error_of
from tests.integration.rabbitmq._bench import CAUSES, NEWS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.rabbitmq._bench import Bench

pytestmark = pytest.mark.store("rabbitmq")
FULL = {"x-max-length": 1, "x-overflow": "reject-publish"}
TOO_LONG = pika.BasicProperties(headers={"mine": "x" * 200_000})
#: What a broker refuses, each on a channel of its own: some close it.
CALLS: dict[str, Callable[[Any, str], Any]] = {
    "nack": lambda channel, name: channel.basic_publish("", name, b"too many"),
    "return": lambda channel, name: channel.basic_publish("", "absent", b"", mandatory=True),
    "no exchange": lambda channel, name: channel.basic_publish("absent", name, b""),
    "no queue": lambda channel, name: channel.basic_get("absent"),
    "consume": lambda channel, name: channel.basic_consume("absent", lambda *_: None),
    "other kind": lambda channel, name: channel.queue_declare(name, durable=False),
    "reserved": lambda channel, name: channel.queue_declare("amq.mine"),
    "forbidden": lambda channel, name: channel.exchange_delete("amq.topic"),
    "ack": lambda channel, name: (channel.basic_ack(99), channel.basic_get(name)),
    "transaction": lambda channel, name: channel.tx_select(),
    "headers": lambda channel, name: channel.basic_publish("", name, b"", TOO_LONG),
    "key": lambda channel, name: channel.basic_publish("", "x" * 300, b""),
    "nothing": lambda channel, name: channel.basic_publish(),
    "expiration": lambda channel, name: channel.basic_publish(
        "", name, b"", pika.BasicProperties(expiration="never")
    ),
}


def told(found: Any) -> Any:
    """How a call ended; what was returned carries our headers, as it was sent with them."""
    if not isinstance(found, tuple) or not isinstance(found[0], type):
        return type(found)
    kind, args, text, attributes = found
    messages = [(each.method.reply_code, each.body) for each in attributes.pop("messages", ())]
    return kind, args, text, attributes, messages


def test_errors_are_the_plain_ones(bench: Bench) -> None:
    """Whatever the broker refuses: the same type, arguments and attributes."""
    first = bench.channel()
    first.queue_declare(bench.name, durable=True, arguments=FULL)
    first.basic_publish("", bench.name, b"fits")
    for name, call in CALLS.items():
        found = []
        for instrumented in (False, True):
            channel = bench.channel()
            if instrumented:
                rabbitmq.instrument_channel(channel, datastore=NEWS, exchange="")
            with antipode.scope(CAUSES):
                found.append(told(error_of(lambda: call(channel, bench.name))))  # noqa: B023
        assert found[1] == found[0], name
