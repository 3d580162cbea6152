"""Real servers in this process, requests over real sockets, and what their answers say."""

from __future__ import annotations

import asyncio
import contextvars
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import antipode
from antipode import Lineage, WriteId
from antipode.telemetry import Metric
from antipode_testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiohttp import web

#: What a caller has written before, and what the service writes.
CAME = WriteId("posts", "post:1", 7, written_hour=490_000)
ADDED = WriteId("orders", "order:1", 3, written_hour=490_000)


def sent(*writes: WriteId, more: str = "") -> dict[str, str]:
    """The headers of a request that depends on *writes*."""
    member = f"antipode={antipode.serialize(Lineage(writes))}"
    return {"baggage": f"{member},{more}" if more else member, "antipode-sent": "1"}


@dataclass(frozen=True)
class Answer:
    """A response, the names of its headers in lower case."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def lineage(self) -> Lineage | None:
        """What the header says; None without one. More than one is an error."""
        texts = [value for name, value in self.headers if name == "antipode-lineage"]
        assert len(texts) < 2, texts
        return antipode.deserialize(texts[0]) if texts else None


class Caller(HTTPConnection):
    """A connection that stays open."""

    def ask(self, path: str, headers: dict[str, str] | None = None, method: str = "GET") -> Answer:
        """One request, and its whole answer."""
        self.request(method, path, headers=headers or {})
        response = self.getresponse()
        got = [(name.lower(), value) for name, value in response.getheaders()]
        return Answer(response.status, got, response.read())


@contextmanager
def asgi(app: Any, **options: Any) -> Iterator[int]:
    """Serve *app* by uvicorn in a thread; the port. The context is the one of the block."""
    import uvicorn

    config = uvicorn.Config(app, **{"log_config": None, "ws": "none", "lifespan": "off", **options})
    server = uvicorn.Server(config)
    # With the protocol named, asyncio turns the delay of small segments off.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        run = contextvars.copy_context().run
        thread = threading.Thread(target=run, args=(server.run, [listener]))
        thread.start()
        try:
            wait_until(lambda: server.started, what="uvicorn to start", timeout_s=30)
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


@contextmanager
def aiohttp(app: web.Application) -> Iterator[int]:
    """Serve *app* by aiohttp in a thread; the port. The context is the one of the block."""
    from aiohttp import web

    loop = asyncio.new_event_loop()
    runner = web.AppRunner(app, access_log=None)
    started = threading.Event()

    async def start() -> None:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(start())
        started.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,))
    thread.start()
    try:
        assert started.wait(30)
        yield runner.addresses[0][1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        assert not thread.is_alive()


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as it is named
        """Nothing is printed."""


@contextmanager
def wsgi(app: Any, server: str = "wsgiref") -> Iterator[int]:
    """Serve *app* by wsgiref's or werkzeug's server, of one thread; the port."""
    if server == "wsgiref":
        made: Any = make_server("127.0.0.1", 0, app, handler_class=_Quiet)
    else:
        from werkzeug.serving import WSGIRequestHandler as Handler
        from werkzeug.serving import make_server as make

        class Quiet(Handler):
            def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - as it is named
                """Nothing is printed."""

        made = make("127.0.0.1", 0, app, request_handler=Quiet)
    run = contextvars.copy_context().run
    thread = threading.Thread(target=run, args=(made.serve_forever, 0.01))
    thread.start()
    try:
        yield made.server_address[1]
    finally:
        made.shutdown()
        thread.join(30)
        made.server_close()
        assert not thread.is_alive()


@contextmanager
def calling(port: int) -> Iterator[Caller]:
    """A connection to *port*."""
    caller = Caller("127.0.0.1", port, timeout=30)
    try:
        yield caller
    finally:
        caller.close()


def ask(port: int, path: str = "/", headers: dict[str, str] | None = None, **more: Any) -> Answer:
    """One request over a connection of its own."""
    with calling(port) as caller:
        return caller.ask(path, headers, **more)


def late() -> int:
    """How many writes of the service came after their response."""
    return antipode.telemetry.metrics().get(Metric("after_response_write", ADDED.datastore), 0)
