"""Messages of streams over a late replica: each takes along what its reader must wait for."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage, WriteId
from antipode.propagation import event_headers, event_scope
from antipode.telemetry import Metric, metrics
from antipode_shims import redis as redis_shims
from antipode_testing import wait_until
from tests.integration._ingress import asgi, ask
from tests.integration.redis._clients import client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from antipode_testing import RedisTopology

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "streams.md"
EVENTS, LAG_MS = 25, 40
POST, USER = (WriteId(name, "k", 1, 498_669) for name in ("posts", "users"))


class Shop:
    """The services of the guide: one that writes and tells, and one that reads a late replica."""

    def __init__(self, topology: RedisTopology) -> None:
        pytest.importorskip("fastapi")
        pytest.importorskip("uvicorn")
        self.primary, self.replica, self.plain = (
            client(each) for each in (topology.primary, topology.replica, topology.replica)
        )
        redis_shims.instrument_client(self.primary, datastore="orders")
        redis_shims.instrument_client(self.replica, datastore="orders", reads_from="replica")
        blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
        self.names: dict[str, Any] = {"__name__": __name__, "__file__": __file__}
        exec(compile("\n".join(blocks), str(GUIDE), "exec"), self.names)  # noqa: S102 - the guide's own
        self.names["look_up"] = lambda _: int(self.replica.get("order") or 0)
        #: How many events came, of how many the replica showed the old just before.
        self.came = self.late = 0

        async def save(order: int) -> None:
            await asyncio.to_thread(self.primary.set, "order", order)
            self.names["tell"](order)

        self.names["app"].post("/orders/{order}")(save)

    def check(self, event: int, shown: int) -> None:
        """What came shows what it tells."""
        self.came += 1
        assert event == shown == self.came

    def look(self) -> None:
        """Look as who waits for nothing does."""
        self.late += int(self.plain.get("order") or 0) < self.came + 1

    def wait_for_listener(self) -> None:
        """Return once somebody listens: who is not there is told nothing."""
        listeners = self.names["listeners"]
        wait_until(lambda: bool(listeners), what="a listener", timeout_s=30)


@pytest.fixture
def shop(antipode_redis: RedisTopology) -> Iterator[Shop]:
    """A replica that is late, and nothing in it."""
    made = Shop(antipode_redis)
    made.primary.delete("order")
    antipode_redis.set_lag(LAG_MS)
    yield made
    antipode_redis.set_lag(0)
    for each in (made.primary, made.replica, made.plain):
        redis_shims.uninstrument_client(each)
        each.close()


def played(shop: Shop, port: int, receive: Callable[[], None]) -> None:
    """Orders, each told to who reads the stream; its own request depends on nothing of them."""
    shop.wait_for_listener()
    with antipode.scope() as around:
        for order in range(1, EVENTS + 1):
            with antipode.scope():
                ask(port, f"/orders/{order}", method="POST")
            receive()
        assert around.lineage == Lineage()
    assert shop.came == EVENTS
    assert shop.late > EVENTS // 2, "the replica was not late"


@pytest.mark.store("redis")
@pytest.mark.slow
def test_server_sent_events(shop: Shop) -> None:
    """The guide's own services; a browser's parser sees the data alone."""
    with asgi(shop.names["app"]) as port, closing(HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("GET", "/changes")
        stream = connection.getresponse()
        seen: list[str] = []

        def lines() -> Iterator[str]:
            for line in stream:
                seen.append(line.decode().rstrip("\n"))
                if seen[-1].startswith("data"):
                    shop.look()
                yield seen[-1]

        found = shop.names["orders"](lines())
        played(shop, port, lambda: shop.check(*next(found)))
        stream.close()
    assert {line.partition(":")[0] for line in seen} == {"baggage", "data", ""}


@pytest.mark.store("redis")
@pytest.mark.slow
def test_a_websocket(shop: Shop) -> None:
    """Of Starlette, and a client of another library."""
    sockets: Any = pytest.importorskip("websockets.sync.client")
    with (
        asgi(shop.names["app"], ws="auto") as port,
        sockets.connect(f"ws://127.0.0.1:{port}/socket") as socket,
    ):

        def receive() -> None:
            text = socket.recv(timeout=60)
            shop.look()
            shop.check(*shop.names["handle"](text))

        played(shop, port, receive)


@pytest.mark.store("redis")
@pytest.mark.slow
def test_a_stream_of_grpc(shop: Shop) -> None:
    """A watch whose handler writes between its messages; it is an open branch meanwhile."""
    grpc: Any = pytest.importorskip("grpc")
    from antipode.integrations import grpc as ours

    wanted = threading.Semaphore(0)

    def watch(_: bytes, __: Any) -> Iterator[bytes]:
        for order in range(1, EVENTS + 1):
            wanted.acquire()
            shop.primary.set("order", order)
            yield json.dumps({"order": order, "headers": event_headers()}).encode()

    antipode.instrument()
    ours.instrument()
    handler = grpc.unary_stream_rpc_method_handler(watch)
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("W", {"watch": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel, antipode.scope() as around:
            call = channel.unary_stream("/W/watch")(b"", timeout=120)
            for order in range(1, EVENTS + 1):
                wanted.release()
                message = next(call)
                shop.look()
                if order < EVENTS:  # With the end comes what the call answers.
                    assert antipode.barrier(timeout=5).open_branches == 1
                    assert around.lineage == Lineage()
                shop.check(*shop.names["handle"](message.decode()))
            assert list(call) == []
    finally:
        server.stop(None).wait()
        ours.uninstrument()
    assert shop.late > EVENTS // 2, "the replica was not late"


def test_a_message_has_what_its_sender_depends_on_then() -> None:
    """Each its own; what is handled is apart from the scope around it, and of the next one."""
    with antipode.scope(Lineage([POST])):
        first = event_headers()
        antipode.append(USER)
        second = event_headers()
    with antipode.scope() as around:
        with event_scope(first) as held:
            assert held.lineage == Lineage([POST])
            antipode.append(WriteId("orders", "k", 1, 498_669))
        assert not held.open
        with event_scope({"Baggage": f"user=7,{second['baggage']}"}):
            assert antipode.current() == Lineage([POST, USER])
        assert around.open
        assert around.lineage == Lineage()


def test_without_a_lineage_a_message_has_an_empty_scope() -> None:
    """Sent outside of a scope, where the lineage was discarded, or by who has no library."""
    assert event_headers() == {}
    with antipode.scope(Lineage([POST])):
        antipode.stop()
        assert event_headers() == {}
    for headers in (None, {}, {"baggage": "user=7"}):
        with antipode.scope(Lineage([POST])), event_scope(headers):
            assert antipode.current() == Lineage()


@pytest.mark.parametrize(
    "headers",
    [
        {"baggage": "antipode=1~~"},
        {"baggage": 7},
        ["baggage"],
        "antipode=1",
        {"baggage": "antipode="},
    ],
    ids=["text", "number", "list", "str", "empty"],
)
def test_headers_that_cannot_be_read_make_it_incomplete(headers: Any) -> None:
    """Whoever made them: no error, and a barrier knows that something is missing."""
    with event_scope(headers):
        marks = [(mark.subject, mark.reason) for mark in antipode.current().incomplete]
        assert marks == [("baggage", "unreadable")]


def test_a_message_says_how_many_branches_run() -> None:
    """As every lineage that leaves."""
    with antipode.scope(Lineage([POST])) as held:
        held.began()
        headers = event_headers()
        held.finished()
    with event_scope(headers):
        assert antipode.current().open_branches == 1


def test_a_message_before_the_commit_is_counted() -> None:
    """There is no position yet: what is told leaves too early."""
    from antipode._request import open_writes

    class Connection:
        """What has a transaction."""

    connection, told = Connection(), Metric("sent_before_commit", "posts")
    before = metrics().get(told, 0)
    with antipode.scope(Lineage([USER])) as held:
        open_writes.wrote(held, "posts", connection)
        event_headers()
        open_writes.ended(id(connection))
    assert metrics()[told] == before + 1


@pytest.fixture
async def layer(antipode_redis: RedisTopology) -> AsyncIterator[Any]:
    """A channel layer of its own prefix."""
    channels: Any = pytest.importorskip("channels_redis.core")
    made = channels.RedisChannelLayer(
        hosts=[tuple(antipode_redis.primary)], prefix=f"antipode-{uuid.uuid4().hex[:8]}"
    )
    yield made
    await made.flush()
    await made.close_pools()


def guide() -> dict[str, Any]:
    """The guide's code for Channels: ``saved`` and ``Orders``."""
    section = GUIDE.read_text(encoding="utf-8").partition("\n## Django Channels\n")[2]
    names: dict[str, Any] = {
        "antipode": antipode,
        "event_headers": event_headers,
        "event_scope": event_scope,
        "Any": Any,
    }
    exec(section.partition("```python\n")[2].partition("```")[0], names)  # noqa: S102 - the guide's
    return names


@pytest.mark.store("redis")
@pytest.mark.slow
@pytest.mark.parametrize("headers", [False, True], ids=["without", "with"])
async def test_a_consumer_reads_what_it_was_told_of(
    antipode_redis: RedisTopology, layer: Any, *, headers: bool
) -> None:
    """By the headers in its message; without them its barrier has nothing to wait for."""
    names, right = guide(), 0
    consumer, mine = names["Orders"](), await layer.new_channel()
    await layer.group_add("orders", mine)
    antipode_redis.set_lag(LAG_MS)
    with (
        client(antipode_redis.primary) as primary,
        client(antipode_redis.replica) as replica,
    ):
        redis_shims.instrument_client(primary, datastore="orders")
        redis_shims.instrument_client(replica, datastore="orders", reads_from="replica")
        names["look_up"] = lambda _: int(replica.get("order") or 0)
        try:
            for order in range(1, EVENTS + 1):
                with antipode.scope():
                    primary.set("order", order)
                    await names["saved"](layer, order)
                event = await layer.receive(mine)
                if not headers:
                    del event["headers"]
                await consumer.order_saved(event)
                right += consumer.shown == event["order"] == order
        finally:
            antipode_redis.set_lag(0)
            redis_shims.uninstrument_client(primary)
            redis_shims.uninstrument_client(replica)
    assert right == EVENTS if headers else right < EVENTS // 2


@pytest.mark.store("redis")
async def test_each_channel_of_a_group_gets_the_lineage_of_who_sends(layer: Any) -> None:
    """With its own copy of the message."""
    channels = [await layer.new_channel() for _ in range(2)]
    for each in channels:
        await layer.group_add("orders", each)
    with antipode.scope(Lineage([POST])):
        await guide()["saved"](layer, 1)
    for each in channels:
        with event_scope((await layer.receive(each))["headers"]):
            assert antipode.current() == Lineage([POST])
