"""ASGI applications under a real server: each request has its own scope, each answer its own."""

from __future__ import annotations

import asyncio
import contextvars
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import antipode
from antipode import ConfigurationError, Lineage, WriteId
from antipode.integrations.asgi import AntipodeMiddleware, instrument_app, uninstrument_app
from antipode_testing import wait_until
from tests.integration._ingress import ADDED, CAME, asgi, ask, calling, late, sent

fastapi = pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
from fastapi import FastAPI, HTTPException, Request, Response, WebSocket  # noqa: E402
from fastapi.responses import StreamingResponse  # noqa: E402

SHARED = Response("shared", headers={"Antipode-Lineage": "1~forged"})


def make() -> FastAPI:
    """A service that writes."""
    app = FastAPI()

    @app.api_route("/", methods=["GET", "HEAD"])
    async def write() -> str:
        antipode.append(ADDED)
        return antipode.serialize()

    @app.get("/sync")
    def write_in_a_thread() -> str:
        antipode.append(ADDED)
        return antipode.serialize()

    @app.get("/read")
    async def read() -> str:
        return antipode.serialize()

    @app.get("/fail")
    async def fail() -> None:
        antipode.append(ADDED)
        raise ValueError

    @app.get("/refuse")
    async def refuse() -> None:
        antipode.append(ADDED)
        raise HTTPException(409)

    @app.get("/forge")
    async def forge() -> Response:
        return SHARED

    @app.get("/shared")
    async def shared() -> Response:
        antipode.append(ADDED)
        return SHARED

    return app


@pytest.mark.parametrize("path", ["/", "/sync"])
def test_an_answer_holds_what_was_added(path: str) -> None:
    """The handler has what came and what it wrote, in threads as well; the answer the latter."""
    with asgi(instrument_app(make())) as port:
        answer = ask(port, path, sent(CAME))
    assert answer.lineage == Lineage([ADDED])
    assert antipode.deserialize(answer.body.decode().strip('"')) == Lineage([CAME, ADDED])


def test_a_request_that_adds_nothing_is_answered() -> None:
    """One byte: its caller must not take it for an answer that lost its header."""
    with asgi(instrument_app(make())) as port:
        assert ("antipode-lineage", "1") in ask(port, "/read", sent(CAME)).headers
        assert ("antipode-lineage", "1") in ask(port, "/read", sent()).headers
        assert ("antipode-lineage", "1") in ask(port, "/read", {"antipode-sent": "1"}).headers


def test_who_did_not_ask_is_told_what_was_added_alone() -> None:
    """A request without a lineage, as those from outside, is answered as if we were not there."""
    with asgi(instrument_app(make())) as port:
        assert ask(port, "/read").lineage is None
        assert ask(port, "/read", {"baggage": "tenant=a"}).lineage is None
        assert ask(port, "/forge").lineage is None
        assert ask(port, "/fail").lineage == Lineage([ADDED])


@pytest.mark.parametrize(("path", "status"), [("/fail", 500), ("/refuse", 409), ("/none", 404)])
@pytest.mark.parametrize("explicit", [False, True])
def test_errors_are_answered(path: str, status: int, *, explicit: bool) -> None:
    """A request that failed may have written before: its answer says so, the server's 500 too."""
    app: Any = AntipodeMiddleware(make()) if explicit else instrument_app(make())
    with asgi(app) as port:
        answer = ask(port, path)
    assert answer.status == status
    assert answer.lineage == (None if status == 404 else Lineage([ADDED]))


def test_the_applications_own_header_is_replaced() -> None:
    """A response object that is sent many times does not collect headers."""
    with asgi(instrument_app(make())) as port:
        for _ in range(3):
            assert ask(port, "/shared").lineage == Lineage([ADDED])
    assert [name for name, _ in SHARED.raw_headers].count(b"antipode-lineage") == 1


def test_head_has_the_header() -> None:
    """HEAD is a request like any other."""
    with asgi(instrument_app(make())) as port:
        answer = ask(port, method="HEAD")
    assert answer.body == b""
    assert answer.lineage == Lineage([ADDED])


def test_http_1_0_has_the_header() -> None:
    """So is one of an old client, or of a proxy that talks like one, even without headers."""
    with (
        asgi(instrument_app(make())) as port,
        socket.create_connection(("127.0.0.1", port), timeout=30) as raw,
    ):
        raw.sendall(b"GET / HTTP/1.0\r\n\r\n")
        got = b""
        while piece := raw.recv(4096):
            got += piece
    assert b"\r\nantipode-lineage: 1" in got


async def test_informational_responses_have_no_answer() -> None:
    """The answer goes with the final response, which is made after them."""
    messages: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 103, "headers": []})
        antipode.append(ADDED)
        await send({"type": "http.response.start", "status": 204})

    async def collect(message: Any) -> None:
        messages.append(message)

    await AntipodeMiddleware(app)({"type": "http", "headers": []}, None, collect)
    assert messages[0]["headers"] == []
    ((_, text),) = messages[1]["headers"]
    assert antipode.deserialize(text.decode()) == Lineage([ADDED])


def test_a_lineage_that_was_taken_out_is_missed() -> None:
    """A proxy that removes baggage must not turn a lineage into an empty one."""
    with asgi(instrument_app(make())) as port:
        answer = ask(port, "/read", {"antipode-sent": "1", "baggage": "tenant=a"})
    found = antipode.deserialize(answer.body.decode().strip('"'))
    assert found.incomplete == {("baggage", "stripped")}


def test_several_baggage_headers_are_read() -> None:
    """Proxies and libraries add headers of their own before or behind ours."""
    with (
        asgi(instrument_app(make())) as port,
        socket.create_connection(("127.0.0.1", port), timeout=30) as raw,
    ):
        ours = sent(CAME)["baggage"]
        raw.sendall(f"GET /read HTTP/1.0\r\nBaggage: tenant=a\r\nBaggage: {ours}\r\n\r\n".encode())
        got = b""
        while piece := raw.recv(4096):
            got += piece
    body = got.partition(b"\r\n\r\n")[2].decode().strip('"')
    assert antipode.deserialize(body) == Lineage([CAME])


def test_requests_do_not_share_a_scope() -> None:
    """Neither on one connection that stays open, nor at once on one worker."""
    app = instrument_app(FastAPI())

    @app.get("/{number}")
    async def write(number: int) -> str:
        antipode.append(WriteId("orders", f"order:{number}", 1, written_hour=490_000))
        await asyncio.sleep(0.001)
        return antipode.serialize()

    def many(worker: int) -> None:
        with calling(port) as caller:
            for number in range(worker * 100, worker * 100 + 40):
                came = WriteId("posts", f"post:{number}", 1, written_hour=490_000)
                added = WriteId("orders", f"order:{number}", 1, written_hour=490_000)
                answer = caller.ask(f"/{number}", sent(came))
                assert answer.lineage == Lineage([added])
                had = antipode.deserialize(answer.body.decode().strip('"'))
                assert had == Lineage([came, added])

    with asgi(app) as port, ThreadPoolExecutor(8) as pool:
        assert list(pool.map(many, range(8))) == [None] * 8


def test_a_scope_around_the_server_is_not_the_requests() -> None:
    """What a process began at start-up neither gets what requests write nor is in their answers."""
    with antipode.scope(Lineage([CAME])) as around, asgi(instrument_app(make())) as port:
        assert ask(port).lineage == Lineage([ADDED])
        assert ask(port, "/read").body == b'"1"'
    assert around.lineage == Lineage([CAME])


async def test_an_in_process_call_is_a_request_of_its_own() -> None:
    """What it writes comes back with its answer, not by sharing the caller's scope."""
    httpx = pytest.importorskip("httpx")
    app = instrument_app(make())
    with antipode.scope() as around:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://in-process"
        ) as client:
            answer = await client.get("/", headers=sent(CAME))
        assert antipode.current() == around.lineage == Lineage()
    assert antipode.deserialize(answer.headers["antipode-lineage"]) == Lineage([ADDED])


def test_the_same_asgi_scope_may_be_served_twice() -> None:
    """Who tries one application after the other passes the same dictionary to both."""
    first, second = AntipodeMiddleware(make()), AntipodeMiddleware(make())

    async def either(scope: Any, receive: Any, send: Any) -> None:
        async def drop(message: Any) -> None:
            """The first application's answer is not wanted."""

        await first(scope, receive, drop)
        await second(scope, receive, send)

    with asgi(either) as port:
        assert ask(port).lineage == Lineage([ADDED])


def test_a_middleware_in_the_middle_passes_through() -> None:
    """The outer one serves the request; one more, of a mounted application too, changes nothing."""
    inner, outer = instrument_app(make()), FastAPI()
    outer.mount("/inner", AntipodeMiddleware(inner))
    outer.add_middleware(AntipodeMiddleware)
    with asgi(instrument_app(outer)) as port:
        assert ask(port, "/inner/").lineage == Lineage([ADDED])


def test_what_is_written_while_streaming_is_after_the_response() -> None:
    """Whoever got the header does not depend on it; it is counted."""
    app = instrument_app(FastAPI())

    @app.get("/")
    async def stream() -> StreamingResponse:
        async def parts() -> Any:
            yield b"begun "
            antipode.append(ADDED)
            yield antipode.serialize()

        antipode.append(CAME)
        return StreamingResponse(parts())

    before = late()
    with asgi(app) as port:
        answer = ask(port)
    assert answer.lineage == Lineage([CAME])
    written = antipode.deserialize(answer.body.partition(b" ")[2].decode())
    assert written == Lineage([CAME, ADDED])
    assert late() == before + 1


def test_a_request_whose_client_went_away_ends() -> None:
    """Its scope ends with it, and nothing stays for the next one."""
    app = instrument_app(FastAPI())
    scopes: list[antipode.shim.Scope] = []
    begun = threading.Event()

    @app.get("/")
    async def stream() -> StreamingResponse:
        async def parts() -> Any:
            scopes.append(antipode._request.context.scope_in())
            while True:
                begun.set()
                yield b"x" * 65536
                await asyncio.sleep(0)

        return StreamingResponse(parts())

    with asgi(app) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as raw:
            raw.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert begun.wait(30)
        wait_until(lambda: not scopes[0].open, what="the scope to end", timeout_s=30)


async def test_a_cancelled_request_ends() -> None:
    """A server that gives up on a request cancels it."""
    scopes: list[Any] = []
    begun = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        scopes.append(antipode._request.context.scope_in())
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(
        AntipodeMiddleware(app)({"type": "http", "headers": []}, None, None)  # type: ignore[arg-type]
    )
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not scopes[0].open


def test_a_request_that_was_dropped_is_collected_quietly(caplog: pytest.LogCaptureFixture) -> None:
    """A loop that stops leaves coroutines behind, which end in whatever context collects them."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0)

    serving = AntipodeMiddleware(app)({"type": "http", "headers": []}, None, None)  # type: ignore[arg-type]
    contextvars.copy_context().run(serving.send, None)
    serving.close()
    assert not caplog.records


def test_a_websocket_connection_has_one_scope() -> None:
    """Its messages share it; there is no response that could carry an answer."""
    pytest.importorskip("websockets")
    from websockets.sync.client import connect

    app = instrument_app(FastAPI())

    @app.websocket("/")
    async def talk(socket: WebSocket) -> None:
        await socket.accept()
        for number in range(2):
            antipode.append(WriteId("orders", f"order:{number}", 1, written_hour=490_000))
            await socket.send_text(antipode.serialize())

    with asgi(app, ws="auto") as port:
        where = f"ws://127.0.0.1:{port}/"
        with connect(where, additional_headers=sent(CAME), proxy=None) as connection:
            found = [antipode.deserialize(str(connection.recv(30))) for _ in range(2)]
    assert [len(each) for each in found] == [2, 3]
    assert all(CAME in each for each in found)


def test_an_application_is_instrumented_once_and_left_as_it_was() -> None:
    """Others of its class are not, and the class is as before in the end."""

    class Own(FastAPI):
        # Nothing is left around one of these by another test.
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await super().__call__(scope, receive, send)

    before = Own.__call__
    app, other = make(), make()
    app.__class__ = other.__class__ = Own
    assert instrument_app(instrument_app(app)) is app
    with asgi(app) as port, asgi(other) as another:
        assert ask(port).lineage == Lineage([ADDED])
        assert ask(another).lineage is None
        for _ in range(2):
            uninstrument_app(app)
        assert ask(port).lineage is None
    assert Own.__call__ is before


def test_a_function_is_refused() -> None:
    """There is nothing to change in it; the error says what to do."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        """An application that is a function."""

    with pytest.raises(ConfigurationError, match="AntipodeMiddleware"):
        instrument_app(app)


def test_a_starlette_application_is_instrumented() -> None:
    """FastAPI's base class, whose method FastAPI's own calls, is instrumented beside it."""
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def write(request: Request) -> PlainTextResponse:
        antipode.append(ADDED)
        return PlainTextResponse("")

    with (
        asgi(instrument_app(Starlette(routes=[Route("/", write)]))) as port,
        asgi(instrument_app(make())) as another,
    ):
        assert ask(port).lineage == ask(another).lineage == Lineage([ADDED])
