"""pika's Channel of callbacks on a real broker: confirms that come later, matched to requests."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pika
import pytest
from opentelemetry import context as otel_context

import antipode
from antipode import ConfigurationError, Lineage
from antipode._request.context import context_with
from antipode.shim import Scope
from antipode_shims import rabbitmq

from ._bench import CAUSES, IN_DOUBT, NEWS, TIMEOUT_S, Bench, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import LagProxy

pytestmark = pytest.mark.store("rabbitmq")


class Loop:
    """A SelectConnection that the test turns by hand, and its channel."""

    def __init__(self, bench: Bench, *, via: LagProxy | None = None) -> None:
        parameters = pika.URLParameters(bench.topology.url())
        if via is not None:
            parameters.host, parameters.port = via.address
        self.closed: list[object] = []
        self.settled: list[object] = []
        self.returned: list[object] = []
        self.connection = pika.SelectConnection(
            parameters, on_close_callback=lambda _, why: self.closed.append(why)
        )
        self.until(lambda: self.connection.is_open)
        opened: list[Any] = []
        self.connection.channel(on_open_callback=opened.append)
        self.until(lambda: bool(opened))
        self.channel = opened[0]
        self.channel.add_on_return_callback(lambda *got: self.returned.append(got))

    def until(self, condition: Callable[[], bool]) -> None:
        """Turn the loop until a condition holds, at the end of the longest wait at the latest."""
        deadline_s = time.monotonic() + TIMEOUT_S

        def tick() -> None:
            if condition() or time.monotonic() > deadline_s:
                self.connection.ioloop.stop()
            else:
                self.connection.ioloop.call_later(0.005, tick)

        tick()
        self.connection.ioloop.start()
        assert condition()

    def confirms(self) -> None:
        """Instrument, and ask for confirms."""
        rabbitmq.instrument_channel(self.channel, datastore=NEWS)
        selected: list[object] = []
        self.channel.confirm_delivery(self.settled.append, callback=selected.append)
        self.until(lambda: bool(selected))

    def close(self) -> None:
        """Close the connection and its loop."""
        if self.connection.is_open:
            self.connection.close()
        if not self.connection.is_closed:
            self.until(lambda: bool(self.connection.is_closed))
        self.connection.ioloop.close()


@pytest.fixture
def loop(bench: Bench) -> Iterator[Loop]:
    bench.declare(bench.channel())
    with contextlib.closing(Loop(bench)) as one:
        yield one


@contextlib.contextmanager
def within(held: Scope) -> Iterator[None]:
    """Run a block as a part of a request that goes on afterwards."""
    token = otel_context.attach(context_with(held))
    yield
    otel_context.detach(token)


def test_a_publication_enters_its_own_request_when_it_is_confirmed(
    bench: Bench, loop: Loop
) -> None:
    """Two requests in flight on one channel: nothing enters before, each gets its own after."""
    loop.confirms()
    scopes = [Scope(CAUSES), Scope()]
    for turn in range(10):
        if turn == len(scopes):  # A further message of a request names those before.
            assert [held.known for held in scopes] == [CAUSES, Lineage()]
        with within(scopes[turn % 2]):
            loop.channel.basic_publish(bench.name, "k", b"%d" % turn)
    loop.until(lambda: bool(loop.settled) and all(held.lineage.only(NEWS) for held in scopes))
    loop.until(lambda: [max(w.version for w in h.lineage.only(NEWS)) for h in scopes] == [9, 10])
    assert loop.settled
    got = bench.get(bench.channel())
    with rabbitmq.message(got) as held:
        assert CAUSES.merge(held.lineage) == held.lineage


def test_a_publication_is_in_the_lineage_that_is_used_next(bench: Bench, loop: Loop) -> None:
    """The loop's own thread cannot wait for confirms: it names what it published."""
    loop.confirms()
    with antipode.scope() as held:
        loop.channel.basic_publish(bench.name, "k", b"")
        assert [write.version for write in antipode.current()] == [1]
    with ThreadPoolExecutor(1) as pool:
        used = pool.submit(lambda: held.lineage)
        loop.until(lambda: bool(loop.settled) and used.done())
        assert [write.version for write in used.result()] == [1]


def test_nacked_and_returned_publications_do_not_enter(bench: Bench, loop: Loop) -> None:
    """Returned as unroutable: nothing; nacked by a full queue: its request is in doubt."""
    full, empty = f"{bench.name}.full", f"{bench.name}.empty"
    plain = bench.channel()
    plain.queue_declare(full, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    plain.basic_publish("", full, b"fills it")
    for exchange in (full, empty):
        plain.exchange_declare(exchange, "fanout")
    for queue in (full, bench.name):
        plain.queue_bind(queue, full)
    loop.confirms()
    nacked, returned, fine = Scope(), Scope(), Scope()
    for held, exchange in ((nacked, full), (returned, empty), (fine, bench.name)):
        with within(held):
            loop.channel.basic_publish(exchange, "k", b"", mandatory=True)
    loop.until(lambda: bool(fine.known and loop.returned and nacked.known.incomplete))
    assert [len(held.lineage) for held in (nacked, returned, fine)] == [0, 0, 1]
    assert nacked.lineage.incomplete == IN_DOUBT
    assert not returned.lineage.incomplete
    assert not fine.lineage.incomplete
    plain.queue_delete(full)
    for exchange in (full, empty):
        plain.exchange_delete(exchange)


def test_a_publication_that_is_not_heard_is_counted_among_the_confirms(
    bench: Bench, loop: Loop
) -> None:
    """One to the default exchange enters nothing; the confirm of the next one is its own."""
    loop.confirms()
    with antipode.scope() as held:
        loop.channel.basic_publish("", bench.name, b"")
        loop.channel.basic_publish("", "no-such-queue", b"", mandatory=True)
    with antipode.scope() as other:
        loop.channel.basic_publish(bench.name, "k", b"")
    loop.until(lambda: bool(other.lineage))
    assert held.lineage.empty
    assert [write.version for write in other.lineage] == [1]


def test_a_connection_lost_before_the_confirms_is_in_doubt(bench: Bench) -> None:
    """Each request with an unconfirmed publication says that it is in doubt; others do not."""
    bench.declare(bench.channel())
    proxy = bench.proxy()
    with contextlib.closing(Loop(bench, via=proxy)) as loop:
        loop.confirms()
        scopes = [Scope(), Scope(), Scope()]
        proxy.pause()
        for held in scopes[:2]:
            with within(held):
                loop.channel.basic_publish(bench.name, "k", b"")
        proxy.cut()
        loop.until(lambda: bool(loop.closed))
    assert [held.lineage.incomplete for held in scopes] == [IN_DOUBT, IN_DOUBT, frozenset()]


def test_without_confirms_it_is_counted(bench: Bench, loop: Loop) -> None:
    """No confirm mode: the causes travel, nothing enters."""
    rabbitmq.instrument_channel(loop.channel, datastore=NEWS)
    before = counted("unconfirmed_publish")
    with antipode.scope(CAUSES):
        loop.channel.basic_publish(bench.name, "k", b"")
        assert antipode.current() == CAUSES
    assert counted("unconfirmed_publish") == before + 1
    done: list[object] = []
    loop.channel.basic_qos(prefetch_count=1, callback=done.append)
    loop.until(lambda: bool(done))
    with rabbitmq.message(bench.get(bench.channel())) as held:
        assert held.lineage == CAUSES


def test_callbacks_run_in_the_scope_of_their_message(bench: Bench, loop: Loop) -> None:
    """A consumer of callbacks sees the message's lineage, and its channel as first argument."""
    publisher = rabbitmq.instrument_channel(bench.channel(), datastore=NEWS)
    with antipode.scope(CAUSES):
        publisher.basic_publish(bench.name, "k", b"")
        sent = antipode.current()
    rabbitmq.instrument_channel(loop.channel, datastore=NEWS)
    seen: list[Lineage] = []

    def handle(where: Any, method: Any, _properties: Any, _body: bytes) -> None:
        seen.append(antipode.current())
        where.basic_ack(method.delivery_tag)

    loop.channel.basic_consume(bench.name, handle)
    loop.until(lambda: bool(seen))
    assert seen == [sent]


def test_a_channel_in_confirm_mode_already_is_refused(loop: Loop) -> None:
    """Its confirms cannot be counted any more: an error that says what to do first."""
    done: list[object] = []
    loop.channel.confirm_delivery(lambda _: None, callback=done.append)
    loop.until(lambda: bool(done))
    with pytest.raises(ConfigurationError, match="before its confirm_delivery"):
        rabbitmq.instrument_channel(loop.channel, datastore=NEWS)
