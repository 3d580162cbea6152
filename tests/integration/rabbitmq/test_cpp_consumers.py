"""Consumers in C++: a scope for each message, by the shim and by librabbitmq itself."""

from __future__ import annotations

import subprocess
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pika
import pytest

import antipode
from antipode import Lineage
from antipode_shims import rabbitmq
from tests.conformance._agents import command
from tests.integration.rabbitmq._bench import CAUSES, NEWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import RabbitMQTopology

pytestmark = [pytest.mark.store("rabbitmq"), pytest.mark.slow]


class Queue:
    """One of the default exchange, to which Python publishes and from which C++ consumes."""

    def __init__(self, topology: RabbitMQTopology, stack: ExitStack) -> None:
        self.name = f"cpp.{uuid.uuid4().hex}"
        self._url, self._port = topology.url(), str(topology.address("us").port)
        connection = stack.enter_context(pika.BlockingConnection(pika.URLParameters(self._url)))
        self.channel = connection.channel()
        self.channel.queue_declare(self.name)
        stack.callback(self.channel.queue_delete, self.name)
        self._publisher = stack.enter_context(rabbitmq.shim(NEWS, self._url))

    def publish(self, value: str) -> Lineage:
        """What the message's consumer depends on."""
        with antipode.scope():
            return self._publisher.write(self.name, value.encode(), CAUSES)

    def consumed(self, way: str) -> list[list[str]]:
        """What the consumer prints, in words."""
        program = Path(command("cpp")[0]).with_name("antipode_rabbitmq_consumer")
        ran = subprocess.run(
            [program, self._url, self._port, self.name, way],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return [line.split(" ") for line in ran.stdout.splitlines()]


@pytest.fixture
def queue(antipode_rabbitmq: RabbitMQTopology) -> Iterator[Queue]:
    with ExitStack() as stack:
        yield Queue(antipode_rabbitmq, stack)


def test_each_message_is_handled_in_its_scope_until_its_handler_returns(queue: Queue) -> None:
    """A handler that throws has its message again; one that returns has acknowledged it."""
    lineage = queue.publish("1")
    *attempts, after = queue.consumed("shim")
    first, failed, again = attempts
    assert [first[:2], failed, again[:2]] == [["1", "first"], ["failed"], ["1", "again"]]
    assert {antipode.deserialize(first[2]), antipode.deserialize(again[2])} == {lineage}
    assert antipode.deserialize(after[1]).empty, "the scope ends with its message"
    assert queue.consumed("shim") == [after], "it was acknowledged"


def test_a_message_of_an_own_connection_begins_a_scope(queue: Queue) -> None:
    """By its headers as librabbitmq has them."""
    lineage = queue.publish("1")
    message, after = queue.consumed("own")
    assert message[:2] == ["1", "first"]
    assert antipode.deserialize(message[2]) == lineage
    assert antipode.deserialize(after[1]).empty
