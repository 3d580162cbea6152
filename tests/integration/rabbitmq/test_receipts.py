"""Receipts over two federated brokers: what barriers wait for, and what they never pass."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from typing import TYPE_CHECKING, Any

import pika
import pytest

import antipode
from antipode import BarrierTimeout, Lineage, Status
from antipode_shims import rabbitmq
from antipode_shims.rabbitmq import Receipts
from antipode_testing import wait_until
from antipode_testing.contract.base import in_time

from ._bench import CAUSES, NEWS, TIMEOUT_S, Bench, counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import LagProxy, RabbitMQTopology

pytestmark = pytest.mark.store("rabbitmq")

#: For tests of what is undecidable; the others have the patience of the default.
SOON = Receipts(gap_age_s=0.3)
PATIENT = Receipts()


class Regions(Bench):
    """A federated exchange: published to in ``us``, listened to in ``eu``."""

    def __init__(self, topology: RabbitMQTopology) -> None:
        super().__init__(topology)
        self.eu = self.channel("eu")
        self.us = self.publisher()
        self.us.exchange_declare(self.name, "topic", durable=True)
        self.eu.exchange_declare(self.name, "topic", durable=True)

    def publisher(self) -> Any:
        """An instrumented channel in ``us``."""
        return rabbitmq.instrument_channel(self.channel("us"), datastore=NEWS)

    def listen(self, receipts: Receipts = PATIENT, *, via: LagProxy | None = None) -> Any:
        """A shim in ``eu`` with receipts, once its tap is federated."""
        parameters = pika.URLParameters(self.topology.url(self.topology.replica))
        if via is not None:
            parameters.host, parameters.port = via.address
        shim = self.stack.enter_context(
            rabbitmq.shim(NEWS, parameters, exchange=self.name, receipts=receipts)
        )
        self.topology.wait_federated(self.name)
        return shim

    def publish(self, channel: Any = None) -> Lineage:
        """Publish one message as a request of its own; what depends on it."""
        with antipode.scope():
            (channel or self.us).basic_publish(self.name, "k", b"")
            return antipode.current()


@pytest.fixture
def regions(antipode_rabbitmq: RabbitMQTopology) -> Iterator[Regions]:
    with contextlib.closing(Regions(antipode_rabbitmq)) as one:
        yield one


def statuses(lineage: Lineage) -> set[Status]:
    """What a look shows."""
    return {outcome.status for outcome in antipode.check(lineage).outcomes}


def becomes(lineage: Lineage, status: Status) -> None:
    """Look until the one outcome is *status*."""
    wait_until(lambda: statuses(lineage) == {status}, what=str(status), timeout_s=TIMEOUT_S)


def test_a_barrier_waits_until_the_message_is_routed_here(regions: Regions) -> None:
    """With 200 ms of lag it waits about so long, and is woken rather than polling."""
    regions.listen()
    regions.topology.pause()
    lineage = regions.publish()
    assert statuses(lineage) == {Status.NOT_YET}
    regions.topology.resume()
    assert antipode.barrier(lineage, timeout=TIMEOUT_S).ok
    regions.topology.set_lag(200)

    def waits() -> None:
        began_s = time.monotonic()
        result = antipode.barrier(regions.publish(), timeout=TIMEOUT_S)
        assert time.monotonic() - began_s > 0.19
        assert result.ok
        assert [o.status for o in result.outcomes] == [Status.VISIBLE]

    assert in_time(2, waits)


def test_once_a_barrier_passed_the_message_is_in_the_queues_of_the_region(
    regions: Regions,
) -> None:
    """A hundred times: published there, waited for, and then found by ``basic_get`` here."""
    regions.eu.queue_declare(regions.name, durable=True)
    regions.eu.queue_bind(regions.name, regions.name, "#")
    regions.listen()
    for _ in range(100):
        lineage = regions.publish()
        assert antipode.barrier(lineage, timeout=TIMEOUT_S).ok
        method, properties, _ = regions.eu.basic_get(regions.name, auto_ack=True)
        assert method is not None
        with rabbitmq.message(properties) as held:
            assert held.lineage == lineage


def test_a_cut_link_is_a_timeout_and_healed_a_pass(regions: Regions) -> None:
    """Cut, the barrier ends at its deadline with ``not_yet``; healed, the next one passes."""
    regions.listen()
    assert antipode.barrier(regions.publish(), timeout=TIMEOUT_S).ok
    regions.topology.cut()
    lineage = regions.publish()
    with pytest.raises(antipode.BarrierTimeout) as caught:
        antipode.barrier(lineage, timeout=0.5)
    assert [o.status for o in caught.value.unmet] == [Status.NOT_YET]
    regions.topology.heal()
    assert antipode.barrier(lineage, timeout=TIMEOUT_S).ok


async def test_the_asyncio_barrier_waits_too(regions: Regions) -> None:
    """The same from an event loop."""
    regions.listen()
    regions.topology.set_lag(100)
    assert (await antipode.barrier_async(regions.publish(), timeout=TIMEOUT_S)).ok


def test_what_was_published_before_is_undecidable_never_passed(regions: Regions) -> None:
    """Listening begins after the publication: first not yet, then an unknown log, by an error."""
    regions.eu.queue_declare(regions.name, durable=True)
    regions.eu.queue_bind(regions.name, regions.name, "#")
    regions.topology.wait_federated(regions.name)
    lineage = regions.publish()
    regions.get(regions.eu)
    regions.listen(SOON)
    assert statuses(lineage) == {Status.NOT_YET}
    with pytest.raises(antipode.VisibilityCheckError) as caught:
        antipode.barrier(lineage, timeout=TIMEOUT_S)
    (outcome,) = caught.value.unmet
    assert outcome.status is Status.UNKNOWN_LOG
    assert "before this process listened" in outcome.cause
    assert antipode.barrier(lineage, timeout=TIMEOUT_S, on_unknown="report").ok
    after = regions.publish()
    becomes(after, Status.UNDECIDABLE)


def test_a_publisher_of_after_a_restart_of_the_reader_is_waited_for(regions: Regions) -> None:
    """A second reader cannot judge the old publisher, and judges a new one."""
    regions.listen().close()
    regions.publish()
    regions.listen()
    assert antipode.barrier(regions.publish(regions.publisher()), timeout=TIMEOUT_S).ok


def test_the_tap_connection_lost_is_unreachable_then_undecidable(regions: Regions) -> None:
    """What passed while nobody listened is not passed; what was seen before stays visible."""
    proxy = regions.proxy("eu")
    regions.listen(SOON, via=proxy)
    seen = regions.publish()
    assert antipode.barrier(seen, timeout=TIMEOUT_S).ok
    proxy.cut()
    becomes(missed := regions.publish(), Status.UNREACHABLE)
    with pytest.raises(antipode.BarrierTimeout, match="receipts"):
        antipode.barrier(missed, timeout=0.2)
    assert antipode.barrier(seen, timeout=TIMEOUT_S).ok
    regions.topology.wait_replicated()
    proxy.heal()
    becomes(missed, Status.UNDECIDABLE)
    regions.topology.wait_federated(regions.name)
    becomes(regions.publish(), Status.UNDECIDABLE)
    assert antipode.barrier(seen, timeout=TIMEOUT_S).ok
    becomes(regions.publish(regions.publisher()), Status.VISIBLE)


def test_a_connection_lost_and_nothing_missed_goes_on(regions: Regions) -> None:
    """The next number after the last one seen proves that nothing passed in between."""
    proxy = regions.proxy("eu")
    shim = regions.listen(via=proxy, receipts=Receipts(gap_age_s=30))
    assert antipode.barrier(regions.publish(), timeout=TIMEOUT_S).ok
    before = shim._tap.queue
    proxy.cut()
    proxy.heal()
    tap = shim._tap
    wait_until(lambda: tap.queue not in ("", before), what="the tap", timeout_s=TIMEOUT_S)
    regions.topology.wait_federated(regions.name)
    assert antipode.barrier(regions.publish(), timeout=TIMEOUT_S).ok


def test_two_publishers_at_once_are_waited_for_together(regions: Regions) -> None:
    """Two channels in two threads, fifty messages each: one barrier for both, by two entries."""
    regions.listen()
    found: list[Lineage] = []

    def publish(channel: Any) -> None:
        with antipode.scope():
            for _ in range(50):
                channel.basic_publish(regions.name, "k", b"")
            found.append(antipode.current())

    threads = [threading.Thread(target=publish, args=(regions.publisher(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    both = found[0].merge(found[1])
    assert [w.version for w in both] == [50, 50]
    assert antipode.barrier(both, timeout=TIMEOUT_S).ok


def test_a_refused_publication_leaves_no_gap(regions: Regions) -> None:
    """After an unroutable one the publisher goes on under another key: readers see no hole."""
    regions.listen()
    for _ in range(2):
        assert antipode.barrier(regions.publish(), timeout=TIMEOUT_S).ok
    with pytest.raises(pika.exceptions.UnroutableError):
        regions.us.basic_publish("", "no-such-queue", b"", mandatory=True)
    assert antipode.barrier(regions.publish(), timeout=TIMEOUT_S).ok


def test_a_lost_publication_is_undecidable_not_visible(regions: Regions) -> None:
    """Number 2 never comes: number 3, which did, is undecidable and says why."""
    regions.listen(SOON)
    regions.publish()
    state: Any = vars(regions.us)["_antipode"]
    state.publications.next(regions.name, "k")
    third = regions.publish()
    becomes(third, Status.UNDECIDABLE)
    (outcome,) = antipode.check(third).unmet
    assert "never arrived here" in outcome.cause


def test_a_consumed_message_is_satisfied_here(regions: Regions) -> None:
    """Its causes are waited for, it itself is met at once, whatever the tap saw."""
    regions.eu.queue_declare(regions.name, durable=True)
    regions.eu.queue_bind(regions.name, regions.name, "#")
    regions.topology.wait_federated(regions.name)
    regions.publish()
    with antipode.scope(CAUSES):
        regions.us.basic_publish(regions.name, "k", b"")
    regions.listen()
    regions.get(regions.eu)
    with rabbitmq.message(regions.get(regions.eu)):
        result = antipode.barrier(timeout=TIMEOUT_S, only=NEWS)
        assert [o.status for o in result.outcomes if o.write.datastore == NEWS] == [Status.VISIBLE]


def test_consumers_are_the_receipts_of_a_direct_queue(regions: Regions) -> None:
    """Without a tap: what wrapped consumers of this process received, in full, is visible."""
    queue = f"{regions.name}.direct"
    regions.us.queue_declare(queue, auto_delete=True)
    url = regions.topology.url()
    shim = regions.stack.enter_context(
        rabbitmq.shim(NEWS, url, queue=queue, receipts=Receipts(tap=False))
    )
    with antipode.scope():
        for _ in range(3):
            regions.us.basic_publish("", queue, b"")
        lineage = antipode.current()
    assert statuses(lineage) == {Status.NOT_YET}
    for _ in range(3):
        assert shim.read(timeout=TIMEOUT_S)[0] == b""
    assert statuses(lineage) == {Status.VISIBLE}
    assert antipode.barrier(lineage, timeout=TIMEOUT_S).outcomes[0].server == "consumers"


@pytest.mark.parametrize("known", ["here", "declared", "nowhere"])
def test_what_receipts_cannot_hear_is_not_waited_for(regions: Regions, known: str) -> None:
    """A channel publishes elsewhere, too: these publications carry lineages and enter none.

    The publisher knows from receipts in its process, because it was told, or by itself that no
    tap hears of the default exchange.
    """
    other = f"{regions.name}.other"
    queue = regions.us.queue_declare("", exclusive=True).method.queue
    regions.us.exchange_declare(other, "fanout", auto_delete=True)
    regions.us.queue_bind(queue, other)
    declared = {"exchange": regions.name} if known == "declared" else {}
    us = rabbitmq.instrument_channel(regions.channel("us"), datastore=NEWS, **declared)
    if known == "here":
        regions.listen()
    before = counted("unheard_publish")
    elsewhere = [("", queue)] if known == "nowhere" else [("", queue), (other, "k")]
    with antipode.scope(CAUSES):
        for exchange, key in elsewhere:
            us.basic_publish(exchange, key, b"")
        assert antipode.current() == CAUSES
        us.basic_publish(regions.name, "k", b"")
        (heard,) = antipode.current().only(NEWS)
        assert heard.version == 1
    assert counted("unheard_publish") == before + len(elsewhere)
    for _ in elsewhere:
        _, properties, _ = regions.us.basic_get(queue, auto_ack=True)
        with rabbitmq.message(properties) as held:
            assert held.lineage == CAUSES


def test_the_cause_names_the_exchange_that_is_listened_to(regions: Regions) -> None:
    """A publication to another exchange, of a publisher that knows no better, times out."""
    other = f"{regions.name}.other"
    regions.us.exchange_declare(other, "fanout", auto_delete=True)
    regions.us.queue_bind(regions.us.queue_declare("", exclusive=True).method.queue, other)
    with antipode.scope():
        regions.us.basic_publish(other, "k", b"")
        lineage = antipode.current()
    regions.listen()
    with pytest.raises(BarrierTimeout, match=re.escape(repr(regions.name))):
        antipode.barrier(lineage, timeout=0.1)


def test_a_direct_exchange_is_listened_to_by_key(regions: Regions) -> None:
    """Numbered by routing key and bound by it: other keys leave no gaps."""
    name = f"{regions.name}.direct"
    for channel in (regions.us, regions.eu):
        channel.exchange_declare(name, "direct", durable=True)
    us = rabbitmq.instrument_channel(
        regions.channel("us"), datastore=NEWS, sequence_by="routing_key"
    )
    receipts = Receipts(bindings=("mine",))
    url = regions.topology.url(regions.topology.replica)
    regions.stack.enter_context(rabbitmq.shim(NEWS, url, exchange=name, receipts=receipts))
    regions.topology.wait_federated(name)
    for key in ("mine", "other", "mine"):
        with antipode.scope():
            us.basic_publish(name, key, b"")
            lineage = antipode.current()
    assert antipode.barrier(lineage, timeout=TIMEOUT_S).ok


def test_a_broker_that_does_not_have_the_exchange_is_a_configuration_error(
    regions: Regions,
) -> None:
    """At once, naming the exchange; nothing is registered, no thread is left."""
    url = regions.topology.url(regions.topology.replica)
    with pytest.raises(antipode.ConfigurationError, match="no-such-exchange"):
        rabbitmq.shim(NEWS, url, exchange="no-such-exchange", receipts=True)
    with pytest.raises(antipode.ConfigurationError, match="default exchange"):
        rabbitmq.shim(NEWS, url, receipts=True)
    with pytest.raises(antipode.ConfigurationError, match="refuses the user"):
        rabbitmq.shim(
            NEWS, url.replace("guest:guest", "guest:wrong"), exchange=regions.name, receipts=True
        )
    assert not receipt_threads()


def test_a_broker_that_is_down_is_connected_to_when_it_is_up(regions: Regions) -> None:
    """Created while the broker cannot be reached: unreachable, then as ever."""
    proxy = regions.proxy("eu")
    proxy.cut()
    parameters = pika.URLParameters(regions.topology.url(regions.topology.replica))
    parameters.host, parameters.port = proxy.address
    shim = rabbitmq.shim(NEWS, parameters, exchange=regions.name, receipts=True)
    with shim:
        lineage = regions.publish()
        assert statuses(lineage) == {Status.UNREACHABLE}
        proxy.heal()
        wait_until(lambda: not shim._tap.deaf, what="the tap", timeout_s=TIMEOUT_S)
        regions.topology.wait_federated(regions.name)
        after = regions.publish(regions.publisher())
        assert antipode.barrier(after, timeout=TIMEOUT_S).ok
    assert not receipt_threads()


def test_closing_during_a_barrier_ends_it(regions: Regions) -> None:
    """A closed shim leaves no thread, and whoever waits gets an error, not a hang."""
    shim = regions.listen()
    regions.topology.cut()
    lineage = regions.publish()
    closing = threading.Timer(0.2, shim.close)
    closing.start()
    with pytest.raises(antipode.UnmetError):
        antipode.barrier(lineage, timeout=TIMEOUT_S)
    closing.join()
    assert not receipt_threads()


@pytest.mark.slow
def test_the_readers_broker_restarts(regions: Regions) -> None:
    """The tap is bound anew by itself; a publisher of after that is waited for."""
    shim = regions.listen()
    assert antipode.barrier(regions.publish(), timeout=TIMEOUT_S).ok
    regions.topology.restart_broker("eu", graceful=False)
    wait_until(lambda: not shim._tap.deaf, what="the tap", timeout_s=TIMEOUT_S)
    regions.topology.wait_federated(regions.name)
    assert antipode.barrier(regions.publish(regions.publisher()), timeout=TIMEOUT_S).ok


def receipt_threads() -> list[str]:
    """The threads of taps that run now."""
    return [t.name for t in threading.enumerate() if t.name.startswith("antipode-receipts")]


@pytest.mark.slow
def test_the_publishers_region_is_lost(regions: Regions) -> None:
    """What was routed here before stays visible; what was not ends in a timeout, never a pass."""
    regions.listen()
    before = regions.publish()
    assert antipode.barrier(before, timeout=TIMEOUT_S).ok
    regions.topology.pause()
    lost = regions.publish()
    regions.topology.failover(lose_unreplicated=True)
    assert antipode.barrier(before, timeout=TIMEOUT_S).ok
    with pytest.raises(antipode.BarrierTimeout):
        antipode.barrier(lost, timeout=0.5)
