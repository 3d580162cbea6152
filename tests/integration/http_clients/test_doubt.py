"""Calls whose outcome is not known leave a mark; those that were certainly not sent leave none."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import baggage
from opentelemetry import context as otel_context

import antipode
from antipode import Lineage
from tests.integration._ports import refused_port
from tests.integration.http_clients import _suite as _http_suite

from ._drivers import DRIVERS
from ._origin import write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._drivers import Driver
    from ._origin import Origin

client, driver, order, origin = (
    _http_suite.client,
    _http_suite.driver,
    _http_suite.order,
    _http_suite.origin,
)
FAILURE = Exception  # Each client's own.
SHORT = (5.0, 0.3)


@contextlib.contextmanager
def deaf() -> Iterator[int]:
    """A port that takes no connection and refuses none: its queue of them is full."""
    with socket.socket() as listening, contextlib.ExitStack() as others:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            other = others.enter_context(socket.socket())
            other.settimeout(0)
            other.connect_ex(listening.getsockname())
        yield listening.getsockname()[1]


def in_doubt(origin: Origin) -> set[tuple[str, str]]:
    return {(origin.service, "in_doubt")}


@pytest.mark.pairwise
def test_a_time_out_is_in_doubt(driver: Driver, order: str, origin: Origin) -> None:
    """The service got the request, and may have written."""
    with antipode.scope():
        with pytest.raises(FAILURE):
            driver.get(origin.url("slow?key=a"), timeouts=SHORT)
        assert antipode.current().incomplete == in_doubt(origin)


@pytest.mark.pairwise
def test_a_lost_connection_is_in_doubt(driver: Driver, order: str, origin: Origin) -> None:
    """It was lost after the request."""
    with antipode.scope():
        with pytest.raises(FAILURE):
            driver.get(origin.url("drop"))
        assert antipode.current().incomplete == in_doubt(origin)


@pytest.mark.pairwise
def test_what_was_refused_leaves_nothing(driver: Driver, order: str) -> None:
    """Nobody got the request."""
    with antipode.scope(), refused_port() as port:
        with pytest.raises(FAILURE):
            driver.get(f"http://127.0.0.1:{port}/")
        assert antipode.current() == Lineage()


@pytest.mark.parametrize("url", ["http://no-such-host.invalid/", "ftp://127.0.0.1/", "http:///x"])
def test_what_has_no_address_leaves_nothing(client: Driver, url: str) -> None:
    """Nor here."""
    with antipode.scope():
        with pytest.raises(FAILURE):
            client.get(url)
        assert antipode.current() == Lineage()


def test_who_takes_no_connection_leaves_nothing(client: Driver) -> None:
    """A time-out of the connection itself."""
    with antipode.scope(), deaf() as port:
        with pytest.raises(FAILURE):
            client.get(f"http://127.0.0.1:{port}/", timeouts=(0.3, 5.0))
        assert antipode.current() == Lineage()


@pytest.mark.parametrize("status", [502, 503, 504])
def test_the_error_of_a_proxy_is_in_doubt(client: Driver, origin: Origin, status: int) -> None:
    """Whether it reached the service is not known, where that was not heard of or takes part."""
    with antipode.scope():
        client.get(origin.url(f"status?status={status}"))
        assert antipode.current().incomplete == in_doubt(origin)
    client.get(origin.url("nothing"))
    with antipode.scope():
        client.get(origin.url(f"status?status={status}"))
        assert antipode.current().incomplete == in_doubt(origin)


@pytest.mark.parametrize("status", [500, 503])
def test_an_error_of_the_service_is_an_answer(client: Driver, origin: Origin, status: int) -> None:
    """It says what it wrote before it failed."""
    with antipode.scope():
        client.get(origin.url(f"status?status={status}&key=a"))
        assert antipode.current() == Lineage([write("a")])


def test_a_stranger_leaves_nothing(client: Driver, origin: Origin) -> None:
    """What a service does that answered without a lineage is unknown, however calls of it end."""
    with antipode.scope():
        client.get(origin.url("status?status=200"))
        client.get(origin.url("status?status=503"))
        with pytest.raises(FAILURE):
            client.get(origin.url("drop"))
        assert antipode.current() == Lineage()


def test_who_was_not_asked_is_no_stranger(client: Driver, origin: Origin) -> None:
    """Without a scope nothing is asked: an answer without the header does not say who gives it."""
    client.get(origin.url("status?status=200"))
    with antipode.scope():
        with pytest.raises(FAILURE):
            client.get(origin.url("drop"))
        assert antipode.current().incomplete == in_doubt(origin)


def test_who_was_not_asked_is_not_in_doubt(client: Driver, origin: Origin) -> None:
    """A service that takes part answers who asks; after ``baggage.clear()`` a call does not."""
    with antipode.scope():
        client.get(origin.url("nothing"))
        token = otel_context.attach(baggage.clear())
        try:
            client.get(origin.url("status?status=200"))
            assert antipode.current() == Lineage()
            client.get(origin.url("write?key=a"))
            assert antipode.current() == Lineage([write("a")])
        finally:
            otel_context.detach(token)


def test_who_stops_answering_is_in_doubt(client: Driver, origin: Origin) -> None:
    """Its header is lost on the way, or an instance without the library answered."""
    client.get(origin.url("nothing"))
    with antipode.scope():
        client.get(origin.url("status?status=200"))
        assert antipode.current().incomplete == in_doubt(origin)


#: Statuses that say that nothing was executed, of redirects, of servers and of gateways.
REFUSALS = [301, 304, 307, 308, 400, 401, 403, 404, 405, 413, 421, 429, 431, 501]


#: What an application answers, which may have written.
APPLICATION = [302, 303, 409, 422]


def statuses(origin: Origin, *numbers: int) -> list[str]:
    """Where answers with these statuses come from, without the header."""
    return [origin.url(f"status?status={number}") for number in numbers]


def test_a_refusal_without_the_header_leaves_nothing(client: Driver, origin: Origin) -> None:
    """A gateway gives it for a service that takes part: nothing of the service was executed."""
    client.get(origin.url("nothing"))
    with antipode.scope():
        client.get(*statuses(origin, *REFUSALS))
        assert antipode.current() == Lineage()


def test_a_refusal_does_not_say_who_takes_part(client: Driver, origin: Origin) -> None:
    """After it as a process's first answer, a POST that times out is in doubt all the same."""
    with antipode.scope():
        client.get(*statuses(origin, *REFUSALS, *APPLICATION))
        assert antipode.current() == Lineage()
        with pytest.raises(FAILURE):
            client.get(origin.url("slow?key=a"), method="POST", timeouts=SHORT)
        assert antipode.current().incomplete == in_doubt(origin)


def test_an_application_may_have_executed_what_it_refuses(client: Driver, origin: Origin) -> None:
    """Without the header, from a service that takes part, it lost what the service wrote."""
    client.get(origin.url("nothing"))
    for url in statuses(origin, *APPLICATION):
        with antipode.scope():
            client.get(url)
            assert antipode.current().incomplete == in_doubt(origin)


@pytest.mark.parametrize("status", [408, 500])
def test_a_server_answers_for_an_application_that_failed(
    client: Driver, origin: Origin, status: int
) -> None:
    """It may have written before: unless it takes no part, that is in doubt."""
    with antipode.scope():
        client.get(origin.url(f"status?status={status}"))
        assert antipode.current().incomplete == in_doubt(origin)
    with antipode.scope():
        client.get(*statuses(origin, 200, status))
        assert antipode.current() == Lineage()


def test_a_gateway_that_hides_the_header_is_seen_by_who_expects_it(
    client: Driver, origin: Origin
) -> None:
    """From the first answer on: ``auto`` takes the service for one that takes no part."""
    with antipode.scope():
        client.get(*statuses(origin, 200, 201, 204), method="POST")
        assert antipode.current() == Lineage()
    antipode.configure(peers={origin.service: "always"})
    with antipode.scope():
        client.get(*statuses(origin, 404))
        assert antipode.current() == Lineage()
        client.get(*statuses(origin, 200), method="POST")
        assert antipode.current().incomplete == in_doubt(origin)
    with antipode.scope():
        client.get(origin.url("write?key=a"))
        assert antipode.current() == Lineage([write("a")])


def test_who_is_known_never_to_answer_leaves_nothing(client: Driver, origin: Origin) -> None:
    """From the first call on, however it ends; what it answers all the same is merged."""
    antipode.configure(peers={origin.service: "never"})
    with antipode.scope():
        with pytest.raises(FAILURE):
            client.get(origin.url("drop"), method="POST")
        client.get(origin.url("nothing"), *statuses(origin, 200, 503))
        assert antipode.current() == Lineage()
        client.get(origin.url("write?key=a"))
        assert antipode.current() == Lineage([write("a")])


def test_services_behind_one_host_are_told_apart_by_their_paths(
    client: Driver, origin: Origin
) -> None:
    """A path that is named answers for itself; what is not below any answers for the host."""
    antipode.configure(
        peers={f"{origin.service}/status": "auto", f"{origin.service}/drop/often": "never"}
    )
    client.get(origin.url("nothing"))
    with antipode.scope():
        client.get(*statuses(origin, 200, 503))
        assert antipode.current() == Lineage()
        with pytest.raises(FAILURE):
            client.get(origin.url("drop"))
        assert antipode.current().incomplete == in_doubt(origin)


def _requests_with(retry: Any) -> Any:
    import requests
    from requests.adapters import HTTPAdapter

    session = requests.Session()
    session.mount("http://", HTTPAdapter(max_retries=retry))
    return session


def _retry(**more: Any) -> Any:
    from urllib3 import Retry

    return Retry(2, backoff_factor=0, status_forcelist=[503], **more)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("flaky?by=drop&key=a", Lineage([write("a")], incomplete=[("orders", "in_doubt")])),
        ("flaky?by=503&key=a", Lineage([write("a")], incomplete=[("orders", "in_doubt")])),
        ("flaky?by=503&first=b&key=a", Lineage([write("a"), write("b")])),
        ("write?key=a", Lineage([write("a")])),
    ],
)
def test_retries_inside_requests_are_judged_one_by_one(
    origin: Origin, path: str, found: Lineage
) -> None:
    """What the pool sends again is a call of its own, although requests shows the last alone."""
    ours = DRIVERS["requests"].ours
    with _requests_with(_retry()) as session, antipode.scope():
        ours.instrument_client(session, service="orders")
        assert session.get(origin.url(path), timeout=5).status_code == 200
        assert antipode.current() == found
        ours.uninstrument_client(session)


@pytest.mark.parametrize("raises", [True, False])
def test_retries_that_are_exhausted(origin: Origin, raises: bool) -> None:  # noqa: FBT001 - a case
    """The last attempt counts as well, whether or not it raises; each is judged once."""
    ours = DRIVERS["requests"].ours
    before = antipode.telemetry.metrics().get(antipode.telemetry.Metric("incomplete", "shop"), 0)
    with _requests_with(_retry(raise_on_status=raises)) as session, antipode.scope():
        ours.instrument_client(session, service="shop")
        with pytest.raises(FAILURE) if raises else contextlib.nullcontext():
            session.get(origin.url("status?status=503"), timeout=5)
        assert antipode.current().incomplete == {("shop", "in_doubt")}
        ours.uninstrument_client(session)
    assert len(origin.requests) == 3
    assert (
        antipode.telemetry.metrics()[antipode.telemetry.Metric("incomplete", "shop")] == before + 3
    )


def test_retries_that_reach_nobody(origin: Origin) -> None:
    """Connections that are refused, however often, leave nothing."""
    ours = DRIVERS["requests"].ours
    with _requests_with(_retry()) as session, antipode.scope(), refused_port() as port:
        ours.instrument_client(session)
        with pytest.raises(FAILURE):
            session.get(f"http://127.0.0.1:{port}/", timeout=5)
        assert antipode.current() == Lineage()
        ours.uninstrument_client(session)


class _Again:
    """A transport of an application's own that sends once more."""

    def __new__(cls) -> Any:
        import httpx

        class Again(httpx.BaseTransport):
            def __init__(self) -> None:
                self.inner = httpx.HTTPTransport(retries=1)

            def handle_request(self, request: httpx.Request) -> httpx.Response:
                try:
                    response = self.inner.handle_request(request)
                except httpx.RemoteProtocolError:
                    return self.inner.handle_request(request)
                if response.status_code < 500:
                    return response
                response.close()
                return self.inner.handle_request(request)

            def close(self) -> None:
                self.inner.close()

        return Again()


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("flaky?by=drop&key=a", Lineage([write("a")], incomplete=[("orders", "in_doubt")])),
        ("flaky?by=503&key=a", Lineage([write("a")], incomplete=[("orders", "in_doubt")])),
        ("flaky?by=503&first=b&key=a", Lineage([write("a"), write("b")])),
    ],
)
def test_retries_of_a_transport_are_judged_one_by_one(
    origin: Origin, path: str, found: Lineage
) -> None:
    """A transport tells of each attempt, whatever is around it; the user is told as well."""
    import httpx

    ours = DRIVERS["httpx"].ours
    told: list[str] = []
    with httpx.Client(transport=_Again()) as one, antipode.scope():
        ours.instrument_client(one, service="orders")
        one.get(origin.url(path), extensions={"trace": lambda name, info: told.append(name)})
        assert antipode.current() == found
        ours.uninstrument_client(one)
    assert told.count("http11.send_request_headers.started") == 2


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("flaky?by=503&key=a", Lineage([write("a")], incomplete=[("orders", "in_doubt")])),
        ("flaky?by=503&first=b&key=a", Lineage([write("a"), write("b")])),
    ],
)
async def test_retries_of_a_middleware_are_judged_one_by_one(
    origin: Origin, path: str, found: Lineage
) -> None:
    """In aiohttp, where retries are middlewares of the application."""
    import aiohttp

    async def again(request: Any, handler: Any) -> Any:
        response = await handler(request)
        if response.status < 500:
            return response
        response.release()
        return await handler(request)

    ours = DRIVERS["aiohttp"].ours
    async with aiohttp.ClientSession(middlewares=(again,)) as session:
        ours.instrument_client(session, service="orders")
        with antipode.scope():
            async with session.get(origin.url(path)) as response:
                assert response.status == 200
            assert antipode.current() == found
        ours.uninstrument_client(session)


@contextlib.asynccontextmanager
async def _session(name: str, *, one_connection: bool = False) -> Any:
    """An instrumented asynchronous session."""
    import aiohttp
    import httpx

    ours = DRIVERS[name].ours
    if name == "httpx":
        limits = httpx.Limits(max_connections=1 if one_connection else 100)
        made: Any = httpx.AsyncClient(limits=limits, timeout=httpx.Timeout(20, pool=0.3))
    else:
        connector = aiohttp.TCPConnector(limit=1 if one_connection else 100)
        waits = aiohttp.ClientTimeout(connect=1.0)
        made = aiohttp.ClientSession(connector=connector, timeout=waits)
    async with made as session:
        ours.instrument_client(session)
        yield session
        ours.uninstrument_client(session)


async def _get(session: Any, url: str) -> None:
    """One whole call."""
    answer = await session.get(url)
    await (answer.aread() if hasattr(answer, "aread") else answer.read())


async def _reached(origin: Origin) -> None:
    assert await asyncio.to_thread(origin.reached.wait, 10)


@pytest.mark.parametrize("name", ["httpx", "aiohttp"])
async def test_a_cancelled_call_is_in_doubt(name: str, origin: Origin) -> None:
    """It was sent, and its answer is not waited for."""
    async with _session(name) as session:
        with antipode.scope():
            call = asyncio.ensure_future(_get(session, origin.url("slow?key=a")))
            await _reached(origin)
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await call
            assert antipode.current().incomplete == in_doubt(origin)


@pytest.mark.parametrize("name", ["httpx", "aiohttp"])
async def test_a_hedged_call_counts_twice(name: str, origin: Origin) -> None:
    """The one that is given up may have written as well."""
    async with _session(name) as session:
        with antipode.scope():
            slow = asyncio.ensure_future(_get(session, origin.url("slow?key=a")))
            await _reached(origin)
            await _get(session, origin.url("write?key=b"))
            slow.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await slow
            found = Lineage([write("b")], incomplete=in_doubt(origin))
            assert antipode.current() == found


@pytest.mark.parametrize("how", ["cancelled", "timed out"])
@pytest.mark.parametrize("name", ["httpx", "aiohttp"])
async def test_who_waits_for_a_connection_sent_nothing(name: str, how: str, origin: Origin) -> None:
    """The pool has none free: whether that times out or is given up, nothing is in doubt."""
    async with _session(name, one_connection=True) as session:
        with antipode.scope():
            first = asyncio.ensure_future(_get(session, origin.url("slow?key=a")))
            await _reached(origin)
            second = asyncio.ensure_future(_get(session, origin.url("write?key=b")))
            if how == "cancelled":
                for _ in range(20):  # Wherever it has come to by then, it waits.
                    await asyncio.sleep(0)
                second.cancel()
            with pytest.raises(BaseException):  # noqa: B017, PT011 - each client's own
                await second
            assert antipode.current() == Lineage()
            origin.go_on.set()
            await first
            assert antipode.current() == Lineage([write("a")])
    assert len(origin.requests) == 1
