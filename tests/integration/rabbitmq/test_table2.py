"""The Table 2 face over a real broker: write, read, receive, wait."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import pika
import pytest

import antipode
from antipode import ConfigurationError, Lineage, Status
from antipode.shim import Unreachable
from antipode_shims import rabbitmq
from antipode_shims.rabbitmq._clients.channel_state import AROUND_PROPERTIES

from ._bench import (
    CAUSES,
    IN_DOUBT,
    NEWS,
    POST,
    TIMEOUT_S,
    Bench,
    once_asked,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import LagProxy, RabbitMQTopology

pytestmark = pytest.mark.store("rabbitmq")
#: The bytes of a frame, by default.
FRAME = 131_072
REFUSED = pytest.raises(ValueError, match="leave its lineage no room")


@pytest.fixture
def bench(antipode_rabbitmq: RabbitMQTopology) -> Iterator[Bench]:
    with contextlib.closing(Bench(antipode_rabbitmq)) as one:
        one.declare(one.channel())
        yield one


def shim_of(bench: Bench, *, via: LagProxy | None = None, **options: Any) -> rabbitmq.RabbitMQShim:
    """A shim on the test's exchange and queue."""
    parameters = pika.URLParameters(bench.topology.url())
    if via is not None:
        parameters.host, parameters.port = via.address
    options = {"exchange": bench.name, "queue": bench.name, **options}
    return bench.stack.enter_context(rabbitmq.shim(NEWS, parameters, **options))


@pytest.fixture
def shim(bench: Bench) -> rabbitmq.RabbitMQShim:
    return shim_of(bench)


@pytest.mark.parametrize(("spare", "sent"), [(220, True), (60, False)])
def test_headers_that_fill_a_frame(shim: rabbitmq.RabbitMQShim, *, spare: int, sent: bool) -> None:
    """The lineage is cut to what the frame has room for; where it has none, nothing is sent."""
    many = Lineage([antipode.WriteId("posts", f"log-{number}", 7) for number in range(20)])
    properties = pika.BasicProperties(headers={"mine": ""})
    used = sum(map(len, properties.encode())) + AROUND_PROPERTIES
    properties.headers["mine"] = "x" * (FRAME - used - spare)
    with antipode.scope(many), contextlib.nullcontext() if sent else REFUSED:
        shim.write("k", b"value", properties=properties)
    shim.write("k", b"next")
    value, lineage = shim.read(timeout=TIMEOUT_S)
    assert value == (b"value" if sent else b"next")
    assert bool(lineage.only("posts")) is sent
    assert (("posts", "size") in {tuple(mark) for mark in lineage.incomplete}) is sent


def test_write_and_read_carry_the_lineage(shim: rabbitmq.RabbitMQShim) -> None:
    """``write`` returns and enters the lineage with the publication; ``read`` gives it back."""
    with antipode.scope(CAUSES):
        written = shim.write("k", b"value")
        assert written == antipode.current()
        assert len(written) == 2
    with antipode.scope():
        assert shim.read() == (b"value", written)
        assert antipode.current() == written
        assert shim.read() == (None, Lineage())


def test_a_lineage_may_be_given(shim: rabbitmq.RabbitMQShim) -> None:
    """An explicit lineage is stored; the scope gains the publication alone."""
    with antipode.scope():
        written = shim.write("k", "text", CAUSES)
        assert written.only("posts") == CAUSES
        assert antipode.current() == written.only(NEWS)
    assert shim.read(timeout=TIMEOUT_S) == (b"text", written)


def test_reading_may_leave_the_scope_alone(bench: Bench) -> None:
    """``on_read="ignore"``: the lineage is returned and not merged."""
    shim = shim_of(bench, on_read="ignore")
    written = shim.write("k", b"", CAUSES)
    with antipode.scope():
        assert shim.read(timeout=TIMEOUT_S)[1] == written
        assert antipode.current() == Lineage()


def test_receive_acknowledges_at_the_end_and_requeues_on_an_error(
    shim: rabbitmq.RabbitMQShim,
) -> None:
    """Raised in the block: the message comes again; handled: it is gone."""
    written = shim.write("key", b"v", CAUSES)

    def fail() -> None:
        with shim.receive(timeout=TIMEOUT_S) as delivery:
            assert delivery is not None
            assert not delivery.redelivered
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    with antipode.scope(), shim.receive(timeout=TIMEOUT_S) as delivery:
        assert delivery is not None
        assert (delivery.value, delivery.key, delivery.redelivered) == (b"v", "key", True)
        assert delivery.lineage == antipode.current() == written
    with shim.receive() as delivery:
        assert delivery is None


def test_a_barrier_that_times_out_requeues(shim: rabbitmq.RabbitMQShim) -> None:
    """The block's error puts the message back: nothing is lost by waiting in vain."""
    shim.write("k", b"v", CAUSES)
    with pytest.raises(antipode.UnknownDatastore), shim.receive(timeout=TIMEOUT_S):
        antipode.barrier(timeout=0.1)
    assert shim.read(timeout=TIMEOUT_S)[0] == b"v"


def test_wait_without_receipts_reports(shim: rabbitmq.RabbitMQShim) -> None:
    """``wait`` on a datastore without receipts succeeds, with ``not_waitable``."""
    result = shim.wait(shim.write("k", b"", Lineage()), timeout=1)
    assert result.ok
    assert [o.status for o in result.outcomes] == [Status.NOT_WAITABLE]


def test_wait_with_receipts_waits(bench: Bench) -> None:
    """``wait`` is about this datastore alone."""
    shim = shim_of(bench, receipts=True)
    lineage = shim.write("k", b"", CAUSES)
    result = shim.wait(lineage, timeout=TIMEOUT_S)
    assert {o.write.datastore: o.status for o in result.outcomes} == {
        NEWS: Status.VISIBLE,
        "posts": Status.EXCLUDED,
    }


def test_the_applications_properties_are_sent_and_not_touched(shim: rabbitmq.RabbitMQShim) -> None:
    """Properties travel with ours beside; the object is as it was."""
    properties = pika.BasicProperties(headers={"mine": 1}, content_type="text/x")
    shim.write("k", b"", CAUSES, properties=properties)
    assert properties.headers == {"mine": 1}
    with shim.receive(timeout=TIMEOUT_S) as delivery:
        assert delivery is not None
        assert POST in delivery.lineage


def test_refusals_are_the_clients_errors(bench: Bench) -> None:
    """Returned: pika's error, nothing in the scope; nacked: another queue may have it."""
    shim = shim_of(bench, exchange="")
    full = f"{bench.name}.full"
    bench.channel().queue_declare(
        full, auto_delete=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"}
    )
    with antipode.scope():
        before = shim.write(full, b"fits")
        with pytest.raises(pika.exceptions.UnroutableError):
            shim.write("no-such-queue", b"", mandatory=True)
        assert antipode.current() == before
        with pytest.raises(pika.exceptions.NackError):
            shim.write(full, b"too many")
        assert antipode.current() == before.merge(Lineage(incomplete=IN_DOUBT))
    assert shim.read(full)[0] == b"fits"


def test_a_connection_that_died_while_idle_is_opened_anew(bench: Bench) -> None:
    """Nothing was sent, so nothing is in doubt: the write goes by a new connection and key."""
    proxy = bench.proxy()
    shim = shim_of(bench, via=proxy)
    with antipode.scope():
        first = shim.write("k", b"1")
        assert shim.read(timeout=TIMEOUT_S)[0] == b"1"
        proxy.cut()
        with pytest.raises(Unreachable):
            shim.write("k", b"lost")
        proxy.heal()
        shim.write("k", b"2")
        assert not antipode.current().incomplete
        assert len(antipode.current()) == len(first) + 1
    assert shim.read(timeout=TIMEOUT_S)[0] == b"2"


def test_a_connection_lost_before_the_confirm_is_in_doubt(bench: Bench) -> None:
    """Sent and not confirmed: pika's error, and an incomplete scope."""
    proxy = bench.proxy()
    shim = shim_of(bench, via=proxy)
    shim.write("k", b"opens")
    with antipode.scope():
        with once_asked(proxy, proxy.cut), pytest.raises(pika.exceptions.AMQPError):
            shim.write("k", b"doubtful")
        assert antipode.current() == Lineage(incomplete=IN_DOUBT)


def test_threads_share_a_shim(shim: rabbitmq.RabbitMQShim) -> None:
    """Writers in four threads: every message arrives with its own request's lineage."""

    def work(number: int) -> None:
        cause = antipode.WriteId("posts", f"p{number}", 1, 498_669)
        for _ in range(25):
            with antipode.scope(Lineage([cause])):
                shim.write("k", str(number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(100):
        value, lineage = shim.read(timeout=TIMEOUT_S)
        assert value is not None
        assert [w.key for w in lineage.only("posts")] == [f"p{value.decode()}"]


@pytest.mark.parametrize(
    ("connection", "options", "what"),
    [
        (5, {}, "URL or pika parameters"),
        ("http://[", {}, "malformed"),
        ("amqp://h", {"on_read": "x"}, "on_read"),
        ("amqp://h", {"receipts": "yes"}, "receipts"),
        ("amqp://h", {"reads_from": "x"}, "reads_from"),
        ("amqp://h", {"sequence_by": "x"}, "sequence_by"),
    ],
)
def test_bad_arguments_are_one_clear_error(
    connection: Any, options: dict[str, Any], what: str
) -> None:
    """Refused where they are given, before anything is opened or registered."""
    with pytest.raises(ConfigurationError, match=what):
        rabbitmq.shim(NEWS, connection, **options)


def test_a_queue_must_be_named(bench: Bench) -> None:
    """Neither the call nor the shim says which queue: an error that says so."""
    with pytest.raises(ConfigurationError, match="which queue"):
        shim_of(bench, queue=None).read()
