"""Publishing through an instrumented pika channel, on a real broker: what enters, and what not."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pika
import pytest
from opentelemetry import baggage, propagate
from opentelemetry import context as otel_context

import antipode
from antipode import ConfigurationError, Lineage, Status
from antipode._request.context import context_with
from antipode_shims import rabbitmq
from antipode_shims.rabbitmq._clients.channel_state import AROUND_PROPERTIES

from ._bench import (
    CAUSES,
    IN_DOUBT,
    NEWS,
    POST,
    Bench,
    counted,
    once_asked,
)

pytestmark = pytest.mark.store("rabbitmq")


def news() -> tuple[antipode.WriteId, ...]:
    """The current scope's entries of the datastore under test."""
    return tuple(antipode.current().only(NEWS))


def test_a_confirmed_publication_enters_and_carries_its_causes(bench: Bench, channel: Any) -> None:
    """The message has the lineage of before it; the scope gains exactly the publication."""
    with antipode.scope(CAUSES):
        channel.basic_publish(bench.name, "k", b"one")
        (first,) = news()
        channel.basic_publish(bench.name, "k", b"two")
        (second,) = news()
    assert (first.version, second.version) == (1, 2)
    assert first.key == second.key
    with rabbitmq.message(bench.get(channel)) as one:
        assert one.lineage == CAUSES.append(first)
    with rabbitmq.message(bench.get(channel)) as two:
        assert two.lineage == CAUSES.append(second)


def test_a_receiver_that_only_knows_baggage_is_served(bench: Bench, channel: Any) -> None:
    """The stock propagator finds the lineage in the headers, beside the application's own."""
    with antipode.scope(CAUSES):
        channel.basic_publish(bench.name, "k", b"", pika.BasicProperties(headers={"mine": 1}))
    _, properties, _ = bench.get(channel)
    found = propagate.extract(properties.headers, context=otel_context.Context())
    assert antipode.deserialize(str(baggage.get_baggage("antipode", found))) == CAUSES
    assert properties.headers["mine"] == 1


def test_the_applications_properties_are_not_touched(bench: Bench, channel: Any) -> None:
    """BasicProperties and headers are the same before and after; other properties travel."""
    headers = {"mine": [1, {"deep": "x"}]}
    properties = pika.BasicProperties(headers=headers, content_type="text/x", priority=3)
    with antipode.scope(CAUSES):
        channel.basic_publish(bench.name, "k", b"", properties)
    assert properties.headers is headers
    assert headers == {"mine": [1, {"deep": "x"}]}
    _, got, _ = bench.get(channel)
    assert (got.content_type, got.priority, got.headers["mine"]) == ("text/x", 3, headers["mine"])


#: The bytes of a frame, by default.
FRAME = 131_072


def filled(spare: int) -> pika.BasicProperties:
    """Properties that leave *spare* bytes of their frame."""
    properties = pika.BasicProperties(headers={"mine": ""})
    used = sum(map(len, properties.encode())) + AROUND_PROPERTIES
    properties.headers["mine"] = "x" * (FRAME - used - spare)
    return properties


def test_a_lineage_is_cut_to_what_the_frame_has_room_for(bench: Bench, channel: Any) -> None:
    """The message is sent as without the library, with a lineage that says what it lost."""
    many = Lineage([antipode.WriteId("posts", f"log-{number}", 7) for number in range(20)])
    with antipode.scope(many):
        channel.basic_publish(bench.name, "k", b"", filled(spare=200))
        (entry,) = news()
    message = bench.get(channel)
    with rabbitmq.message(message) as held:
        assert entry in held.lineage
        assert ("posts", "size") in {tuple(mark) for mark in held.lineage.incomplete}
        assert 0 < len(held.lineage.only("posts")) < len(many)


def test_a_message_whose_headers_fill_its_frame_has_no_name(bench: Bench, channel: Any) -> None:
    """It is sent as the application gave it, and the scope says that its position is missing."""
    before = counted("baggage_dropped")
    with antipode.scope(CAUSES) as held:
        channel.basic_publish(bench.name, "k", b"", filled(spare=40))
        assert not news()
        assert (NEWS, "unsampled") in {tuple(mark) for mark in held.lineage.incomplete}
        channel.basic_publish(bench.name, "k", b"")
        assert len(news()) == 1
    _, properties, _ = bench.get(channel)
    assert list(properties.headers) == ["mine"]
    assert counted("baggage_dropped") == before + 1


@pytest.mark.parametrize("outer", ["stock", "ours"])
def test_a_stock_instrumentation_beside_ours(bench: Bench, outer: str) -> None:
    """OpenTelemetry's wrapper may come before or after ours: the lineage is current, once."""
    channel = bench.channel()
    bench.declare(channel)

    def stock() -> None:
        original = channel.basic_publish

        def publish(exchange: Any, key: Any, body: Any, properties: Any = None, *rest: Any) -> None:
            properties = properties or pika.BasicProperties(headers={})
            propagate.inject(properties.headers)
            original(exchange, key, body, properties, *rest)

        channel.basic_publish = publish

    if outer == "ours":
        stock()
    rabbitmq.instrument_channel(channel, datastore=NEWS)
    if outer == "stock":
        stock()
    with antipode.scope(CAUSES):
        token = otel_context.attach(baggage.set_baggage("tenant", "42"))
        channel.basic_publish(bench.name, "k", b"")
        otel_context.detach(token)
        (entry,) = news()
    _, properties, _ = bench.get(channel)
    assert sorted(m.split("=")[0] for m in properties.headers["baggage"].split(",")) == [
        "antipode",
        "tenant",
    ]
    with rabbitmq.message(properties) as held:
        assert held.lineage == CAUSES.append(entry)


def test_confirmed_publishing_costs_no_further_round_trip(bench: Bench) -> None:
    """Ten publications exchange as often with the broker with the shim as without it."""
    proxy = bench.proxy()
    channel = bench.channel(via=proxy)
    bench.declare(channel)

    def exchanges() -> int:
        before = proxy.traffic()
        with antipode.scope(CAUSES):
            for _ in range(10):
                channel.basic_publish(bench.name, "k", b"body")
        return (proxy.traffic() - before).exchanges

    bare = exchanges()
    rabbitmq.instrument_channel(channel, datastore=NEWS)
    assert exchanges() == bare == 10


def test_an_unconfirmed_publication_is_counted_and_mints_nothing(bench: Bench) -> None:
    """Without confirms nothing is known: the causes travel, the publication does not enter."""
    channel = bench.connection().channel()
    bench.declare(channel)
    rabbitmq.instrument_channel(channel, datastore=NEWS)
    before = counted("unconfirmed_publish")
    with antipode.scope(CAUSES):
        channel.basic_publish(bench.name, "k", b"")
        assert antipode.current() == CAUSES
    assert counted("unconfirmed_publish") == before + 1
    with rabbitmq.message(bench.get(channel)) as held:
        assert held.lineage == CAUSES


@pytest.mark.parametrize("given", [None, {}, {"mine": 1}], ids=str)
def test_headers_that_are_not_there_stay_away(bench: Bench, given: dict[str, Any] | None) -> None:
    """A consumer gets what it gets of a plain channel: None where nothing was to be said."""
    channel = bench.connection().channel()
    bench.declare(channel)
    rabbitmq.instrument_channel(channel, datastore=NEWS)
    channel.basic_publish(bench.name, "k", b"", pika.BasicProperties(headers=given))
    assert bench.get(channel)[1].headers == given
    if given is None:
        channel.basic_publish(bench.name, "k", b"")
        assert bench.get(channel)[1].headers is None


def test_an_unconfirmed_publication_enters_where_readers_have_receipts(bench: Bench) -> None:
    """``receipts=True``: readers can tell whether it came, so it enters, and is counted."""
    channel = bench.connection().channel()
    bench.declare(channel)
    rabbitmq.instrument_channel(channel, datastore=NEWS, receipts=True)
    before = counted("unconfirmed_publish")
    with antipode.scope():
        channel.basic_publish(bench.name, "k", b"")
        (entry,) = news()
    assert counted("unconfirmed_publish") == before + 1
    with rabbitmq.message(bench.get(channel)) as held:
        assert held.lineage == Lineage([entry])


def test_a_transaction_is_in_doubt(bench: Bench) -> None:
    """What is published in a transaction may be rolled back: never minted, and marked."""
    channel = bench.connection().channel()
    bench.declare(channel)
    rabbitmq.instrument_channel(channel, datastore=NEWS, receipts=True)
    channel.tx_select()
    with antipode.scope():
        channel.basic_publish(bench.name, "k", b"rolled back")
        channel.tx_rollback()
        channel.basic_publish(bench.name, "k", b"committed")
        channel.tx_commit()
        assert antipode.current() == Lineage(incomplete=[(NEWS, "in_doubt")])
    assert bench.get(channel)[2] == b"committed"


def test_a_nacked_publication_is_in_doubt(bench: Bench) -> None:
    """A full queue that rejects nacks it, while another queue has it; a new incarnation follows."""
    channel = bench.channel()
    bench.declare(channel, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    rabbitmq.instrument_channel(channel, datastore=NEWS)
    with antipode.scope():
        channel.basic_publish(bench.name, "k", b"fits")
        (fitted,) = antipode.current()
        roomy = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(roomy, bench.name, "#")
        with pytest.raises(pika.exceptions.NackError):
            channel.basic_publish(bench.name, "k", b"too many")
        assert channel.basic_get(roomy, auto_ack=True)[2] == b"too many"
        assert [*antipode.current()] == [fitted]
        assert antipode.current().incomplete == IN_DOUBT
        bench.get(channel)
        channel.basic_publish(bench.name, "k", b"fits again")
        (new,) = antipode.current().remove(fitted)
    assert new.key != fitted.key
    assert new.version == 1


def test_an_unroutable_publication_mints_nothing(bench: Bench, channel: Any) -> None:
    """Mandatory and returned: no entry, no doubt."""
    channel.queue_unbind(bench.name, bench.name, "#")
    with antipode.scope():
        with pytest.raises(pika.exceptions.UnroutableError):
            channel.basic_publish(bench.name, "k", b"", mandatory=True)
        assert antipode.current() == Lineage()


def test_an_exchange_that_is_not_there_mints_nothing(channel: Any) -> None:
    """The broker closes the channel instead; publishing on a closed channel sends nothing."""
    with antipode.scope():
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            channel.basic_publish("no-such-exchange", "k", b"")
        with pytest.raises(pika.exceptions.ChannelWrongStateError):
            channel.basic_publish("no-such-exchange", "k", b"")
        with pytest.raises(TypeError):
            channel.basic_publish()
        assert antipode.current() == Lineage()


def test_a_connection_lost_before_the_confirm_is_in_doubt(bench: Bench) -> None:
    """Sent and never confirmed: incomplete (in_doubt), no entry; a barrier says so."""
    proxy = bench.proxy()
    channel = bench.channel(via=proxy)
    bench.declare(channel)
    rabbitmq.instrument_channel(channel, datastore=NEWS)
    with antipode.scope():
        with once_asked(proxy, proxy.cut), pytest.raises(pika.exceptions.AMQPError):
            channel.basic_publish(bench.name, "k", b"")
        assert antipode.current() == Lineage(incomplete=IN_DOUBT)
        with pytest.raises(antipode.IncompleteLineage):
            antipode.barrier(timeout=1)


@pytest.mark.slow
def test_a_broker_killed_before_the_confirm_is_in_doubt(bench: Bench) -> None:
    """The broker dies with the confirm on its way; after its restart a new incarnation begins."""
    proxy = bench.proxy()
    channel = bench.channel(via=proxy)
    bench.declare(channel)
    rabbitmq.instrument_channel(channel, datastore=NEWS)

    def kill() -> None:
        bench.topology.kill_broker("us")
        proxy.resume()

    with antipode.scope():
        channel.basic_publish(bench.name, "k", b"before")
        (before,) = news()
        with once_asked(proxy, kill), pytest.raises(pika.exceptions.AMQPError):
            channel.basic_publish(bench.name, "k", b"doubtful")
        assert antipode.current() == Lineage([before], incomplete=IN_DOUBT)
    bench.topology.restart_broker("us")
    again = rabbitmq.instrument_channel(bench.channel(), datastore=NEWS)
    with antipode.scope():
        again.basic_publish(bench.name, "k", b"after")
        (after,) = news()
    assert (after.key != before.key, after.version) == (True, 1)


def test_an_interrupt_before_the_confirm_is_in_doubt(bench: Bench) -> None:
    """Ctrl-C while the broker is silent: the message may be there, so the lineage says so."""
    main = threading.main_thread().ident
    assert main is not None
    proxy = bench.proxy()
    channel = bench.channel(via=proxy)
    bench.declare(channel)
    rabbitmq.instrument_channel(channel, datastore=NEWS)

    def interrupt() -> None:
        signal.pthread_kill(main, signal.SIGINT)

    with antipode.scope():
        with pytest.raises(KeyboardInterrupt), once_asked(proxy, interrupt):
            channel.basic_publish(bench.name, "k", b"")
        assert antipode.current() == Lineage(incomplete=IN_DOUBT)
    proxy.resume()


def test_without_a_scope_it_is_counted(bench: Bench, channel: Any) -> None:
    """A publication outside a scope goes out as ever, and is counted; or raises if configured."""
    before = counted("unscoped_write")
    channel.basic_publish(bench.name, "k", b"")
    assert counted("unscoped_write") == before + 1
    assert bench.get(channel)[2] == b""


def test_requests_on_one_connection_do_not_mix(bench: Bench, channel: Any) -> None:
    """Two requests that take turns on one channel each gain their own publications alone."""
    scopes = [antipode.shim.Scope(), antipode.shim.Scope()]
    contexts = [context_with(held) for held in scopes]
    for turn in range(6):
        token = otel_context.attach(contexts[turn % 2])
        channel.basic_publish(bench.name, "k", b"%d" % turn)
        otel_context.detach(token)
    assert [max(int(w.version) for w in held.lineage) for held in scopes] == [5, 6]
    for turn in range(6):
        got = bench.get(channel)
        with rabbitmq.message(got) as held:
            versions = [int(w.version) for w in held.lineage]
        assert versions == [turn + 1]


def test_two_publishers_at_once_have_histories_of_their_own(bench: Bench) -> None:
    """Two channels in two threads: two keys, each numbered from 1 without holes."""
    bench.declare(bench.channel())
    entries: list[Lineage] = []

    def publish(channel: Any) -> None:
        with antipode.scope() as held:
            for _ in range(50):
                channel.basic_publish(bench.name, "k", b"")
            entries.append(held.lineage)

    channels = [rabbitmq.instrument_channel(bench.channel(), datastore=NEWS) for _ in range(2)]
    threads = [threading.Thread(target=publish, args=(channel,)) for channel in channels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(w.version for each in entries for w in each) == [50, 50]
    assert len({w.key for each in entries for w in each}) == 2


def test_instrumenting_is_idempotent_and_undoable(bench: Bench, channel: Any) -> None:
    """Twice is once; another datastore is refused; undone, nothing of ours is left."""
    assert rabbitmq.instrument_channel(channel, datastore=NEWS) is channel
    with pytest.raises(ConfigurationError, match=NEWS):
        rabbitmq.instrument_channel(channel, datastore="other")
    with antipode.scope():
        channel.basic_publish(bench.name, "k", b"")
        assert [w.version for w in news()] == [1]
        assert rabbitmq.uninstrument_channel(channel) is channel
        rabbitmq.uninstrument_channel(channel)
        channel.basic_publish(bench.name, "k", b"")
        assert [w.version for w in news()] == [1]
    assert bench.get(channel)[1].headers is not None
    assert not bench.get(channel)[1].headers
    assert not {"basic_publish", "basic_consume", "_antipode"} & vars(channel).keys()


def test_what_was_unregistered_can_be_instrumented_again(bench: Bench, channel: Any) -> None:
    """Barriers know the datastore again."""
    antipode.shim.unregister(NEWS)
    assert rabbitmq.instrument_channel(channel, datastore=NEWS) is channel
    with antipode.scope():
        channel.basic_publish(bench.name, "k", b"")
        (outcome,) = antipode.barrier(timeout=1, only=NEWS).outcomes
    assert outcome.status is Status.NOT_WAITABLE


def test_a_datastore_without_receipts_is_reported_and_never_unmet(
    bench: Bench, channel: Any
) -> None:
    """A barrier on a publication succeeds and says ``not_waitable``."""
    with antipode.scope():
        channel.basic_publish(bench.name, "k", b"")
        result = antipode.barrier(timeout=1)
    assert result.ok
    assert [outcome.status for outcome in result.outcomes] == [Status.NOT_WAITABLE]


def test_what_is_no_channel_is_refused() -> None:
    """A connection, or nothing at all, is an error that names what to pass and install."""
    with pytest.raises(ConfigurationError, match="antipode-xcy"):
        rabbitmq.instrument_channel(object(), datastore=NEWS)


def test_the_lineage_survives_federation(bench: Bench) -> None:
    """Published in one region, consumed in the other: causes and the message's own write."""
    us = rabbitmq.instrument_channel(bench.channel("us"), datastore=NEWS)
    eu = bench.channel("eu")
    us.exchange_declare(bench.name, "fanout", durable=True)
    bench.declare(eu)
    bench.topology.wait_federated(bench.name)
    with antipode.scope(CAUSES):
        us.basic_publish(bench.name, "k", b"", pika.BasicProperties(headers={"mine": 1}))
        sent = antipode.current()
    got = bench.get(eu)
    assert got[1].headers["mine"] == 1
    with rabbitmq.message(got) as held:
        assert held.lineage == sent
        assert POST in held.lineage
