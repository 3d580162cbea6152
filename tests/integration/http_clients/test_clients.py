"""requests, httpx and aiohttp: what their requests carry, and what their responses bring."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import baggage
from opentelemetry import context as otel_context

import antipode
from antipode import Lineage, WriteId, deserialize
from antipode.propagation import members
from tests.integration.http_clients import _suite as _http_suite

from ._drivers import DRIVERS
from ._origin import HEADER, write

if TYPE_CHECKING:
    from ._drivers import Driver
    from ._origin import Origin

client, driver, order, origin = (
    _http_suite.client,
    _http_suite.driver,
    _http_suite.order,
    _http_suite.origin,
)
POST = WriteId("posts", "post:1", 1, written_hour=490_000)
OTHER = WriteId("posts", "post:2", 1, written_hour=490_000)


def sent(origin: Origin, request: int = -1) -> Lineage:
    """The lineage that a request carried."""
    (text,) = members(origin.received("baggage", request))
    return deserialize(text)


def counted(name: str, subject: str = "") -> int:
    return antipode.telemetry.metrics().get(antipode.telemetry.Metric(name, subject), 0)


def test_a_request_carries_and_a_response_brings(
    driver: Driver, order: str, origin: Origin
) -> None:
    """Whatever OpenTelemetry's instrumentation of the client does, or does not."""
    # Every client in every order, which the other claims test in pairs.
    with antipode.scope(Lineage([POST])):
        driver.get(origin.url("write?key=a"))
        assert antipode.current() == Lineage([POST, write("a")])
    assert sent(origin) == Lineage([POST])
    assert origin.received("antipode-sent") == ["1"]
    assert len(origin.received("baggage")) == 1


@pytest.mark.pairwise
def test_without_a_scope_nothing_is_sent(driver: Driver, order: str, origin: Origin) -> None:
    """What comes back is counted: nobody waits for it."""
    before = counted("unscoped_response", origin.service)
    driver.get(origin.url("write?key=a"))
    assert origin.received("baggage") == origin.received("antipode-sent") == []
    assert counted("unscoped_response", origin.service) == before + 1


@pytest.mark.pairwise
def test_the_users_own_header_stays(driver: Driver, order: str, origin: Origin) -> None:
    """Its members keep their meaning, whoever adds ours to them."""
    with antipode.scope(Lineage([POST])):
        driver.get(origin.url("nothing"), headers={"Baggage": "tenant=acme,plan=pro;ttl=5"})
    (header,) = origin.received("baggage")
    assert set(header.split(",")[1:]) == {"tenant=acme", "plan=pro;ttl=5"}
    assert sent(origin) == Lineage([POST])


@pytest.mark.pairwise
def test_the_users_own_members_stay(driver: Driver, order: str, origin: Origin) -> None:
    """What is in the context's baggage is sent by OpenTelemetry's instrumentation alone."""
    with antipode.scope(Lineage([POST])):
        token = otel_context.attach(baggage.set_baggage("tenant", "acme"))
        try:
            driver.get(origin.url("nothing"))
        finally:
            otel_context.detach(token)
    (header,) = origin.received("baggage")
    assert ("tenant=acme" in header) is (order in ("before", "after"))
    assert sent(origin) == Lineage([POST])


@pytest.mark.pairwise
def test_the_header_of_another_request_is_added_to(
    driver: Driver, order: str, origin: Origin
) -> None:
    """Headers that are handed on from request to request never stand in for the lineage."""
    old = f"antipode={antipode.serialize(Lineage([OTHER]))},tenant=acme"
    with antipode.scope(Lineage([POST])):
        driver.get(origin.url("nothing"), headers={"baggage": old})
    assert POST in sent(origin)
    if order not in ("before", "after"):  # Those replace it.
        assert sent(origin) == Lineage([POST, OTHER])
    assert "tenant=acme" in origin.received("baggage")[0]


@pytest.mark.pairwise
def test_the_text_that_came_is_not_sent_on(driver: Driver, order: str, origin: Origin) -> None:
    """A stock extraction puts it where the live handle was; what the request added must go too."""
    with antipode.scope(Lineage([POST])):
        came = antipode.serialize()
        antipode.append(OTHER)
        token = otel_context.attach(baggage.set_baggage("antipode", came))
        try:
            driver.get(origin.url("nothing"))
        finally:
            otel_context.detach(token)
    assert sent(origin) == Lineage([POST, OTHER])


def test_each_hop_is_a_call_of_its_own(client: Driver, origin: Origin) -> None:
    """The lineage of a redirect is merged, and goes on to where it leads."""
    with antipode.scope(Lineage([POST])):
        assert client.get(origin.url(f"redirect?key=hop&to={origin.url('write?key=end')}")) == [200]
        assert antipode.current() == Lineage([POST, write("hop"), write("end")])
    assert sent(origin) == Lineage([POST, write("hop")])


def test_a_session_can_be_instrumented_alone(driver: Driver, origin: Origin) -> None:
    """Others carry nothing then; the marks of its calls have the name that it was given."""
    with antipode.scope(Lineage([POST])):
        driver.get(origin.url("write?key=a"))
        assert origin.received("baggage") == []
        driver.get(origin.url("write?key=b"), chosen=True, service="orders")
        assert antipode.current() == Lineage([POST, write("b")])
        driver.get(origin.url("status?status=503"), chosen=True, service="orders")
        assert antipode.current().incomplete == {("orders", "in_doubt")}


def test_a_session_can_be_left_out(client: Driver, origin: Origin) -> None:
    """After all were instrumented."""
    with antipode.scope(Lineage([POST])):
        client.get(origin.url("write?key=a"), chosen=False)
        assert antipode.current() == Lineage([POST])
    assert origin.received("baggage") == origin.received("antipode-sent") == []


def test_instrumenting_twice_is_as_once(driver: Driver, origin: Origin) -> None:
    """And undoing it undoes it."""
    for _ in range(2):
        driver.ours.instrument()
    driver.ours.uninstrument()
    with antipode.scope(Lineage([POST])):
        driver.get(origin.url("write?key=a"))
        assert antipode.current() == Lineage([POST])
    assert origin.received("baggage") == []


def test_a_body_that_is_lost_leaves_no_doubt(client: Driver, origin: Origin) -> None:
    """The header came: what the service did is known."""
    with antipode.scope():
        with pytest.raises(Exception):  # noqa: B017, PT011 - each client's own
            client.get(origin.url("cut?key=a"))
        assert antipode.current() == Lineage([write("a")])


@pytest.mark.parametrize("text", ["nonsense!", "", "1~"])
def test_an_unreadable_header_is_incomplete(client: Driver, origin: Origin, text: str) -> None:
    """It never counts as a response that brought nothing."""
    with antipode.scope():
        client.get(origin.url(f"header?text={text}" if text else "header?text=%20"))
        assert antipode.current().incomplete == {(origin.service, "unreadable")}


def test_a_header_that_came_twice_is_read(client: Driver, origin: Origin) -> None:
    """A proxy may repeat it."""
    text = antipode.serialize(Lineage([write("a")]))
    with antipode.scope():
        client.get(origin.url(f"header?text={text},%201"))
        assert antipode.current() == Lineage([write("a")])


def test_a_late_response_changes_nothing(client: Driver, origin: Origin) -> None:
    """The request is over when it comes; its lineage was sent already."""
    before = counted("late_response", origin.service)
    with antipode.scope() as scope:
        inside = copy_context()
        late = threading.Thread(target=inside.run, args=(client.get, origin.url("slow?key=a")))
        late.start()
        assert origin.reached.wait(10)
    origin.go_on.set()
    late.join(10)
    assert scope.lineage == Lineage()
    assert counted("late_response", origin.service) == before + 1


def test_concurrent_calls_of_one_scope(client: Driver, origin: Origin) -> None:
    """All their writes are in it afterwards."""
    with antipode.scope(), ThreadPoolExecutor(8) as pool:
        calls = [
            pool.submit(copy_context().run, client.get, origin.url(f"write?key={number}"))
            for number in range(40)
        ]
        assert all(call.result(20) == [200] for call in calls)
        assert antipode.current() == Lineage([write(str(number)) for number in range(40)])


def _in_scope(get: Any, key: str) -> Lineage:
    with antipode.scope():
        get(key)
        return antipode.current()


@pytest.mark.parametrize("name", ["requests", "httpx"])
def test_a_session_that_threads_share(name: str, origin: Origin) -> None:
    """Each request gets the lineage of its own response, and of no other."""
    import httpx
    import requests

    ours = DRIVERS[name].ours
    with requests.Session() if name == "requests" else httpx.Client() as session:
        ours.instrument_client(session)

        def get(key: str) -> None:
            session.get(origin.url(f"write?key={key}"))

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda key: _in_scope(get, key), map(str, range(100))))
        ours.uninstrument_client(session)
    assert found == [Lineage([write(str(number))]) for number in range(100)]


@pytest.mark.parametrize("name", ["httpx", "aiohttp"])
async def test_a_session_that_tasks_share(name: str, origin: Origin) -> None:
    """As in threads."""
    import aiohttp
    import httpx

    ours = DRIVERS[name].ours
    async with httpx.AsyncClient() if name == "httpx" else aiohttp.ClientSession() as session:
        ours.instrument_client(session)

        async def one(key: str) -> Lineage:
            with antipode.scope():
                answer: Any = await session.get(origin.url(f"write?key={key}"))
                await (answer.read() if name == "aiohttp" else answer.aread())
                return antipode.current()

        found = await asyncio.gather(*(one(str(number)) for number in range(100)))
        ours.uninstrument_client(session)
    assert found == [Lineage([write(str(number))]) for number in range(100)]


def test_streams_bring_their_header_at_once(origin: Origin) -> None:
    """Before anything of the body is read."""
    import httpx
    import requests

    for name in ("requests", "httpx"):
        ours = DRIVERS[name].ours
        ours.instrument()
        with antipode.scope():
            if name == "requests":
                with requests.get(origin.url("write?key=a"), stream=True, timeout=5):
                    assert antipode.current() == Lineage([write("a")])
            else:
                with httpx.stream("GET", origin.url("write?key=a")):
                    assert antipode.current() == Lineage([write("a")])
        ours.uninstrument()


def test_the_header_is_the_documented_one(origin: Origin) -> None:
    """Plain clients see it, and may read it."""
    import requests

    answer = requests.get(origin.url("write?key=a"), timeout=5)
    assert deserialize(answer.headers[HEADER]) == Lineage([write("a")])
