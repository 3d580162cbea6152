"""An instrumented publisher of librabbitmq: what messages carry, and what enters the scope."""

from __future__ import annotations

import os
import subprocess
import uuid
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pika
import pytest

import antipode
from antipode import Lineage
from antipode_shims import rabbitmq
from antipode_testing import LagProxy
from tests.conformance._agents import command
from tests.integration._dry_run import dry_run_into, lints
from tests.integration.rabbitmq._bench import CAUSES, IN_DOUBT, once_asked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from antipode_testing import RabbitMQTopology

pytestmark = [pytest.mark.store("rabbitmq"), pytest.mark.slow]

EXCHANGE = "amq.direct"
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


class Queue:
    """One to which C++ publishes, and from which Python consumes."""

    def __init__(self, topology: RabbitMQTopology, stack: ExitStack) -> None:
        self.name = f"cpp.{uuid.uuid4().hex}"
        self.port = topology.address("us").port
        url = pika.URLParameters(topology.url())
        self.channel: Any = stack.enter_context(pika.BlockingConnection(url)).channel()
        self.channel.queue_declare(self.name)
        self.channel.queue_bind(self.name, EXCHANGE)
        stack.callback(self.channel.queue_delete, self.name)

    def starts(
        self,
        check: str,
        exchange: str = EXCHANGE,
        port: int = 0,
        variables: Mapping[str, str] = NO_VARIABLES,
    ) -> subprocess.Popen[str]:
        """The publisher of cpp/tests/rabbitmq/client_program.cc."""
        program = Path(command("cpp")[0]).with_name("antipode_rabbitmq_client")
        words = [
            program,
            str(port or self.port),
            exchange,
            self.name,
            check,
            antipode.serialize(CAUSES),
        ]
        pipe = subprocess.PIPE
        environment = {**os.environ, **variables}
        return subprocess.Popen(
            words, text=True, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        )

    def runs(
        self, check: str, exchange: str = EXCHANGE, variables: Mapping[str, str] = NO_VARIABLES
    ) -> list[str]:
        """What it prints, with more *variables* in its environment."""
        with self.starts(check, exchange, variables=variables) as publisher:
            said, errors = publisher.communicate(timeout=60)
        assert publisher.returncode == 0, errors
        return said.splitlines()

    def consumed(self) -> tuple[Any, bytes, Lineage]:
        """The next message, and what its consumer in Python depends on."""
        *_, properties, body = self.channel.basic_get(self.name, auto_ack=True)
        with rabbitmq.message(properties) as held:
            return properties, body, held.lineage


@pytest.fixture
def queue(antipode_rabbitmq: RabbitMQTopology) -> Iterator[Queue]:
    with ExitStack() as stack:
        yield Queue(antipode_rabbitmq, stack)


def test_a_message_carries_the_lineage_and_its_name(queue: Queue) -> None:
    """The application's headers stay, and a lineage among them counts; a copied name goes."""
    (scope,) = map(antipode.deserialize, queue.runs("headers"))
    properties, body, lineage = queue.consumed()
    assert body == b"1"
    assert lineage == CAUSES.merge(scope)
    assert len(scope) == 1
    assert properties.headers["own"] == "kept"
    assert "theirs=1" in properties.headers["baggage"]
    assert properties.content_type == "text/plain"


def test_one_wait_confirms_several(queue: Queue) -> None:
    """They are numbered, and each is in the scope; one publisher's last says all of the earlier."""
    (scope,) = map(antipode.deserialize, queue.runs("several"))
    consumed = [queue.consumed() for _ in range(3)]
    assert [body for _, body, _ in consumed] == [b"1", b"2", b"3"]
    (last,) = scope
    assert last.version == 3
    assert last in consumed[2][2]


def test_what_leaves_before_a_confirm_is_in_doubt(queue: Queue) -> None:
    """The next message of the request names the one before it instead."""
    first, both, confirmed = map(antipode.deserialize, queue.runs("unconfirmed"))
    assert (list(first), set(first.incomplete)) == ([], IN_DOUBT)
    ((before,), (last,)) = both, confirmed
    assert set(both.incomplete) == IN_DOUBT
    assert (before.version, last.version, before.key == last.key) == (1, 2, True)
    assert not confirmed.incomplete
    _, (_, _, carried) = queue.consumed(), queue.consumed()
    assert last in carried
    assert not carried.incomplete


def test_what_comes_back_enters_nothing(queue: Queue) -> None:
    """The other message does, and the next one has a publisher of its own."""
    why, first, then = queue.runs("unroutable")
    assert "no queue takes" in why
    (one,) = antipode.deserialize(first)
    assert one.version == 1
    assert not antipode.deserialize(first).incomplete
    assert {each.version for each in antipode.deserialize(then)} == {1}
    assert len(antipode.deserialize(then)) == 2


def test_a_missing_exchange_enters_nothing(queue: Queue) -> None:
    """The broker closes the channel, and says why; then no more is published there."""
    why, scope, again = queue.runs("missing", "no.such.exchange")
    assert "NOT_FOUND" in why
    assert antipode.deserialize(scope).empty
    assert "closed" in again


def test_what_no_receipts_hear_enters_nothing(queue: Queue) -> None:
    """It goes to another exchange than the shim's."""
    (scope,) = map(antipode.deserialize, queue.runs("unheard"))
    assert scope.empty
    assert queue.consumed()[1] == b"1"


def test_a_lineage_is_cut_to_what_the_frame_has_room_for(queue: Queue) -> None:
    """The application's headers stay; what is missing is marked, there or in the scope."""
    *scopes, why, last = queue.runs("crowded")
    *cut, none, after = map(antipode.deserialize, [*scopes, last])
    for before, bytes_, room in zip(cut, ("3800", "3900"), (276, 176), strict=True):
        properties, body, lineage = queue.consumed()
        assert body == bytes_.encode()
        assert len(properties.headers["own"]) == int(bytes_)
        assert len(properties.headers["baggage"]) < room
        assert "size" in {mark.reason for mark in lineage.incomplete}, lineage
        assert len(lineage) < len(before)
        assert not before.incomplete
    properties, body, lineage = queue.consumed()
    assert (body, set(properties.headers)) == (b"4060", {"own"})
    assert lineage.empty
    assert none == cut[-1].merge(Lineage(incomplete=[("news", "unsampled")]))
    assert "nothing was sent" in why
    _, body, lineage = queue.consumed()
    assert body == b"after"
    assert lineage == after.merge(none)


def test_what_cannot_be_sent_enters_nothing(queue: Queue) -> None:
    """A routing key of over 255 bytes is refused by both publishers, and they go on."""
    client, shim, scope, then = queue.runs("refused")
    assert "nothing was sent" in client
    assert "nothing was sent" in shim
    assert antipode.deserialize(scope).empty
    (one,) = antipode.deserialize(then)
    assert one.version == 1
    assert not antipode.deserialize(then).incomplete
    assert queue.consumed()[1] == b"2"


def test_a_consumer_on_the_connection_is_warned_of(queue: Queue) -> None:
    """Nobody gets what arrives for it, which is said once; publications go on."""
    with queue.starts("consumed") as publisher:
        said, errors = publisher.communicate(timeout=60)
    assert publisher.returncode == 0, errors
    (last,) = antipode.deserialize(said.strip())
    assert last.version == 3
    assert errors.count("Consume on another connection") == 1


def test_a_lost_confirm_is_in_doubt(queue: Queue, antipode_rabbitmq: RabbitMQTopology) -> None:
    """The message arrives, its confirm does not."""
    with (
        LagProxy(antipode_rabbitmq.address("us")) as proxy,
        queue.starts("lost", port=proxy.address.port) as publisher,
    ):
        assert publisher.stdout is not None
        before = antipode.deserialize(publisher.stdout.readline().strip())
        with once_asked(proxy, proxy.cut):
            said, errors = publisher.communicate("\n", timeout=60)
        assert publisher.returncode == 0, errors
        after = antipode.deserialize(said.splitlines()[-1])
    assert not before.incomplete
    assert after == before.merge(Lineage(incomplete=IN_DOUBT))


def test_what_is_published_within_a_transaction_is_a_lint(queue: Queue, tmp_path: Path) -> None:
    """Each message counts as sent, whatever lineage it carries, and none after the end."""
    queue.runs("uncommitted", variables=dry_run_into(tmp_path))
    assert lints(tmp_path) == [("in-transaction", "posts")] * 4


def test_a_child_process_publishes_and_waits(queue: Queue) -> None:
    """After a fork both processes publish under names of their own, and their barriers pass."""
    queue.runs("forked")
    publishers: dict[bytes, str] = {}
    for _ in range(5):
        properties, body, _ = queue.consumed()
        (named,) = antipode.deserialize(properties.headers["antipode-write"])
        publishers[body] = named.key
    assert set(publishers) == {b"1", b"2", b"3", b"4", b"5"}
    assert publishers[b"1"] == publishers[b"2"] == publishers[b"5"]
    assert publishers[b"3"] == publishers[b"4"] != publishers[b"1"]
