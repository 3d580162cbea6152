"""Consuming with pika on a real broker: scopes of messages, redelivery, requeueing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pika
import pytest

import antipode
from antipode import Lineage, WriteId
from antipode_shims import rabbitmq
from antipode_testing import wait_until

from ._bench import CAUSES, NEWS, POST, TIMEOUT_S, Bench

if TYPE_CHECKING:
    from collections.abc import Callable


pytestmark = pytest.mark.store("rabbitmq")


def consume(
    bench: Bench, channel: Any, handle: Callable[..., None], until: Callable[[], bool]
) -> Any:
    """Consume with *handle* until a condition holds; the consumer stays."""
    tag = channel.basic_consume(bench.name, handle)

    def done() -> bool:
        channel.connection.process_data_events(0.05)
        return until()

    wait_until(done, what="deliveries", timeout_s=TIMEOUT_S)
    return tag


def test_callbacks_run_in_the_scope_of_their_message(bench: Bench, channel: Any) -> None:
    """Each callback sees its message's lineage and the message, none of what came before."""
    for number in range(3):
        with antipode.scope(Lineage([WriteId("posts", f"p{number}", 1, 498_669)])):
            channel.basic_publish(bench.name, "k", b"%d" % number)
    seen: list[Lineage] = []

    def handle(where: Any, method: Any, _properties: Any, body: bytes) -> None:
        assert where is channel
        seen.append(antipode.current())
        antipode.append(WriteId("mine", body.decode(), 1))
        channel.basic_ack(method.delivery_tag)

    consume(bench, channel, handle, lambda: len(seen) == 3)
    assert [{w.key for w in each if w.datastore == "posts"} for each in seen] == [
        {"p0"},
        {"p1"},
        {"p2"},
    ]
    assert [[w.version for w in each.only(NEWS)] for each in seen] == [[1], [2], [3]]
    assert not any(each.only("mine") for each in seen)
    assert antipode.current() == Lineage()


def test_a_callback_that_raises_ends_its_scope(bench: Bench, channel: Any) -> None:
    """The exception reaches the application, and no scope is left behind."""
    with antipode.scope(CAUSES):
        channel.basic_publish(bench.name, "k", b"")

    def handle(*_: Any) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        consume(bench, channel, handle, lambda: False)
    assert antipode.current() == Lineage()


def test_a_redelivered_message_has_the_same_lineage(bench: Bench, channel: Any) -> None:
    """Consumer gone without an acknowledgement: the next one depends on the same."""
    with antipode.scope(CAUSES):
        channel.basic_publish(bench.name, "k", b"")
        sent = antipode.current()
    other = bench.channel()
    first = bench.get(other, auto_ack=False)
    with rabbitmq.message(first) as held:
        assert held.lineage == sent
    other.connection.close()
    again = bench.get(channel)
    assert again[0].redelivered
    with rabbitmq.message(again) as held:
        assert held.lineage == sent


def test_a_consumer_requeues_what_is_not_visible_yet(bench: Bench, channel: Any) -> None:
    """``check()`` does not wait: the message goes back, comes again, and is handled when it can."""
    from antipode import Status
    from antipode.shim import Endpoint, Observation, Shim

    visible: set[WriteId] = set()

    class Posts(Shim):
        def open_endpoint(self, *, timeout_s: float) -> Endpoint:
            return Looks()

    class Looks(Endpoint):
        def observe(self, writes: Any, *, timeout_s: float) -> Observation:
            found = {write: Status.VISIBLE for write in writes if write in visible}
            return Observation("posts-server", found, eta_s=0.5)

        def close(self) -> None:
            pass

    antipode.shim.register(Posts("posts"))
    with antipode.scope(CAUSES):
        channel.basic_publish(bench.name, "k", b"")
    tried: list[antipode.BarrierResult] = []

    def handle(_channel: Any, method: Any, _properties: Any, _body: bytes) -> None:
        result = antipode.check()
        tried.append(result)
        if result.ok:
            channel.basic_ack(method.delivery_tag)
        else:
            visible.add(POST)
            channel.basic_nack(method.delivery_tag, requeue=True)

    consume(bench, channel, handle, lambda: len(tried) == 2)
    assert [result.ok for result in tried] == [False, True]
    assert tried[0].eta_s == 0.5
    assert [o.write for o in tried[0].unmet] == [POST]


def test_a_message_by_basic_get_and_by_generator(bench: Bench, channel: Any) -> None:
    """``basic_get`` and ``consume()`` hand out messages; ``message`` gives them a scope."""
    with antipode.scope(CAUSES):
        channel.basic_publish(bench.name, "k", b"1")
        channel.basic_publish(bench.name, "k", b"2")
    with rabbitmq.message(bench.get(channel)):
        assert POST in antipode.current()
    for msg in channel.consume(bench.name, inactivity_timeout=TIMEOUT_S):
        with rabbitmq.message(msg):
            assert POST in antipode.current()
        channel.basic_ack(msg[0].delivery_tag)
        break
    channel.cancel()
    assert antipode.current() == Lineage()


@pytest.mark.parametrize(
    "header",
    [b"\xff\xfe", 7, ["antipode=1"], {"antipode": "1"}, "antipode=1~~", "antipode=" + "x" * 70_000],
    ids=["bytes", "int", "list", "table", "malformed", "huge"],
)
def test_a_malformed_lineage_from_the_wire_is_incomplete(
    bench: Bench, channel: Any, header: object
) -> None:
    """Whatever a plain client put into the header, the callback runs, and its scope says so."""
    plain = bench.channel()
    plain.basic_publish(bench.name, "k", b"", pika.BasicProperties(headers={"baggage": header}))
    seen: list[Lineage] = []

    def handle(_channel: Any, method: Any, _properties: Any, _body: bytes) -> None:
        seen.append(antipode.current())
        channel.basic_ack(method.delivery_tag)

    consume(bench, channel, handle, lambda: bool(seen))
    assert seen == [Lineage(incomplete=[(NEWS, "unreadable")])]


def test_a_plain_message_starts_an_empty_scope(bench: Bench, channel: Any) -> None:
    """Published without the library: absent, so that barriers pass."""
    bench.channel().basic_publish(bench.name, "k", b"")
    seen: list[bool] = []

    def handle(_channel: Any, method: Any, _properties: Any, _body: bytes) -> None:
        seen.append(antipode.current() == Lineage() and antipode.barrier(timeout=1).ok)
        channel.basic_ack(method.delivery_tag)

    consume(bench, channel, handle, lambda: bool(seen))
    assert seen == [True]


def test_a_service_that_only_copies_baggage_passes_the_lineage_on(
    bench: Bench, channel: Any
) -> None:
    """A plain relay that forwards the header ``baggage`` keeps the causes."""
    with antipode.scope(CAUSES):
        channel.basic_publish(bench.name, "k", b"")
    plain = bench.channel()
    _, properties, _ = bench.get(plain)
    carried = {"baggage": properties.headers["baggage"]}
    plain.basic_publish(bench.name, "k", b"", pika.BasicProperties(headers=carried))
    with rabbitmq.message(bench.get(channel)) as held:
        assert held.lineage == CAUSES


def test_an_undone_consumer_goes_on_without_scopes(bench: Bench, channel: Any) -> None:
    """After ``uninstrument_channel`` callbacks that consume already run as without us."""
    seen: list[Lineage] = []

    def handle(_channel: Any, method: Any, _properties: Any, _body: bytes) -> None:
        seen.append(antipode.current())
        channel.basic_ack(method.delivery_tag)

    consume(bench, channel, handle, lambda: True)
    with antipode.scope(CAUSES):
        channel.basic_publish(bench.name, "k", b"")
    rabbitmq.uninstrument_channel(channel)
    wait_until(
        lambda: channel.connection.process_data_events(0.05) or bool(seen),
        what="a delivery",
        timeout_s=TIMEOUT_S,
    )
    assert seen == [Lineage()]
