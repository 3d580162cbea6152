"""Applications of aiohttp's server: each request has its own scope, each answer its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp as client
import httpx
import pytest
from aiohttp import web
from fastapi import FastAPI
from opentelemetry import propagate, trace

import antipode
from antipode import ConfigurationError, Lineage, WriteId
from antipode.integrations import asgi as on_asgi
from antipode.integrations import httpx as lineages
from antipode.integrations._outgoing import forget_services
from antipode.integrations.aiohttp_server import instrument_app, uninstrument_app
from tests.integration._ingress import ADDED, CAME, aiohttp, asgi, ask, late, sent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiohttp.typedefs import Handler

POST = WriteId("posts", "post:1", 1, written_hour=490_000)


async def read(_: web.Request) -> web.Response:
    return web.Response(text=antipode.serialize())


async def write(_: web.Request) -> web.Response:
    antipode.append(ADDED)
    return web.Response(text=antipode.serialize(), headers={"Antipode-Lineage": "1~forged"})


async def write_in_a_task(_: web.Request) -> web.Response:
    async def task() -> None:
        antipode.append(ADDED)

    await asyncio.create_task(task())
    await asyncio.to_thread(antipode.append, WriteId("orders", "order:2", 1, written_hour=490_000))
    return web.Response(text=antipode.serialize())


async def fail(_: web.Request) -> web.Response:
    antipode.append(ADDED)
    raise ValueError


async def refuse(_: web.Request) -> web.Response:
    antipode.append(ADDED)
    raise web.HTTPConflict


async def stream(request: web.Request) -> web.StreamResponse:
    antipode.append(ADDED)
    response = web.StreamResponse()
    await response.prepare(request)
    antipode.append(WriteId("orders", "order:2", 1, written_hour=490_000))
    await response.write(b"body")
    return response


async def talk(request: web.Request) -> web.StreamResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        antipode.append(WriteId("orders", message.data, 1, written_hour=490_000))
        await socket.send_str(antipode.serialize())
    return socket


HANDLERS = (read, write, write_in_a_task, fail, refuse, stream, talk)


def make(**options: Any) -> web.Application:
    """A service that writes."""
    app = web.Application(**options)
    for handler in HANDLERS:
        app.router.add_get(f"/{handler.__name__}", handler)
    return app


@pytest.fixture
def port() -> Iterator[int]:
    """Where it is served."""
    with aiohttp(instrument_app(make())) as found:
        yield found


def test_an_answer_holds_what_was_added(port: int) -> None:
    """The handler has what came and what it wrote; the answer the latter, in place of a forged."""
    answer = ask(port, "/write", sent(CAME))
    assert answer.lineage == Lineage([ADDED])
    assert antipode.deserialize(answer.body.decode()) == Lineage([CAME, ADDED])


def test_tasks_and_threads_of_a_handler_are_in_its_request(port: int) -> None:
    """Whatever runs in the handler's context writes into the scope of its request."""
    answer = ask(port, "/write_in_a_task", sent(CAME))
    assert answer.lineage is not None
    assert len(answer.lineage) == 2
    assert len(antipode.deserialize(answer.body.decode())) == 3


def test_a_request_that_adds_nothing(port: int) -> None:
    """It is answered by one byte where it came with a lineage, and not at all where it did not."""
    assert ("antipode-lineage", "1") in ask(port, "/read", sent(CAME)).headers
    assert ask(port, "/read").lineage is None


@pytest.mark.parametrize(
    ("path", "status", "lineage"),
    [
        ("/fail", 500, Lineage([ADDED])),
        ("/refuse", 409, Lineage([ADDED])),
        ("/nowhere", 404, Lineage()),
    ],
)
def test_errors_are_answered(port: int, path: str, status: int, lineage: Lineage) -> None:
    """A request that failed may have written before, whoever makes the response of its error."""
    answer = ask(port, path, sent(CAME))
    assert answer.status == status
    assert answer.lineage == lineage


def test_a_stream_is_answered_as_it_starts(port: int) -> None:
    """What is written while the body is sent is counted as late, and in no answer."""
    before = late()
    answer = ask(port, "/stream", sent(CAME))
    assert (answer.lineage, answer.body) == (Lineage([ADDED]), b"body")
    assert late() == before + 1


def test_a_web_socket_has_one_scope_and_no_answer(port: int) -> None:
    """Its messages are of one request."""

    async def talks() -> tuple[Any, list[str]]:
        async with (
            client.ClientSession(headers=sent(CAME)) as session,
            session.ws_connect(f"http://127.0.0.1:{port}/talk") as socket,
        ):
            texts = []
            for word in ("one", "two"):
                await socket.send_str(word)
                texts.append(await socket.receive_str())
            return socket._response.headers, texts

    headers, texts = asyncio.run(talks())
    assert "antipode-lineage" not in headers
    assert [len(antipode.deserialize(text)) for text in texts] == [2, 3]


def test_requests_do_not_see_each_other() -> None:
    """Nor the scope in which the server was started."""
    with antipode.scope(Lineage([POST])), aiohttp(instrument_app(make())) as port:
        ask(port, "/write", sent(CAME))
        assert antipode.deserialize(ask(port, "/read").body.decode()) == Lineage()
        assert antipode.current() == Lineage([POST])


def test_an_application_within_another_is_one_request() -> None:
    """The outer one opens the scope, and the response has one answer."""
    outer = web.Application()
    outer.add_subapp("/inner", instrument_app(make()))
    with aiohttp(instrument_app(outer)) as port:
        answer = ask(port, "/inner/write", sent(CAME))
    assert answer.lineage == Lineage([ADDED])
    assert antipode.deserialize(answer.body.decode()) == Lineage([CAME, ADDED])


def test_instrumenting_is_idempotent_and_can_be_undone() -> None:
    """What is being served cannot be instrumented, but left alone again."""
    app = make()
    assert instrument_app(instrument_app(app)) is app
    assert len(app.middlewares) == 1
    with aiohttp(app) as port:
        uninstrument_app(app)
        assert ask(port, "/read", sent(CAME)).lineage is None
        instrument_app(app)
        assert ask(port, "/read", sent(CAME)).lineage == Lineage()
    plain = make()
    uninstrument_app(plain)
    with aiohttp(plain), pytest.raises(ConfigurationError, match="before it is"):
        instrument_app(plain)


@web.middleware
async def span_alone(request: web.Request, handler: Handler) -> web.StreamResponse:
    """As OpenTelemetry's instrumentation of aiohttp's server: of what came it takes the span."""
    context = propagate.extract(request.headers)
    with trace.get_tracer("test").start_as_current_span("GET", context=context):
        return await handler(request)


@pytest.fixture
def _front() -> Iterator[None]:
    """This process calls with lineages."""
    antipode.instrument()
    lineages.instrument()
    yield
    lineages.uninstrument()
    forget_services()


@pytest.mark.usefixtures("_front")
@pytest.mark.parametrize("instrumented", [True, False], ids=["ours", "span-alone"])
def test_a_service_in_the_middle_of_a_chain(instrumented: bool) -> None:  # noqa: FBT001 - a case
    """It hands the lineage on and back; where something takes the span alone, nothing arrives."""
    last = FastAPI()

    @last.get("/")
    async def ends() -> str:
        came = antipode.serialize()
        antipode.append(ADDED)
        return came

    with asgi(on_asgi.instrument_app(last)) as last_port:

        async def hands_on(_: web.Request) -> web.Response:
            antipode.append(CAME)
            async with httpx.AsyncClient(trust_env=False) as http:
                answer = await http.get(f"http://127.0.0.1:{last_port}/")
            return web.json_response(answer.json())

        app = web.Application(middlewares=[span_alone])
        app.router.add_get("/", hands_on)
        antipode.configure(on_unscoped="report")
        with (
            aiohttp(instrument_app(app) if instrumented else app) as port,
            antipode.scope(Lineage([POST])),
            httpx.Client(trust_env=False) as http,
        ):
            came = antipode.deserialize(http.get(f"http://127.0.0.1:{port}/").json())
            after = antipode.current()
    if instrumented:
        assert came == Lineage([POST, CAME])
        assert after == Lineage([POST, CAME, ADDED])
    else:
        assert came == Lineage()
        assert after == Lineage([POST])
