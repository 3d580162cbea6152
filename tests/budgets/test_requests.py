"""What the library adds to a request: served by FastAPI, Flask or gRPC, and sent by clients."""

from __future__ import annotations

import contextvars
import queue
import threading
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

import antipode
from antipode import Lineage, WriteId
from tests.budgets._loop import OnLoop
from tests.budgets._profile import difference, steady_calls, uncounted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

THREE = Lineage(WriteId(name, f"log-{name}", 7, written_hour=490_000) for name in "abc")
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#: By what a request brings: its headers.
HEADERS = {
    "empty": {"traceparent": TRACE},
    "3 entries": {
        "traceparent": TRACE,
        "baggage": f"antipode={antipode.serialize(THREE)}",
        "antipode-sent": "1",
    },
}


@pytest.fixture
def loop() -> Iterator[OnLoop]:
    """What serves or sends asynchronously."""
    made = OnLoop()
    yield made
    made.end()


@pytest.mark.parametrize("request_of", HEADERS)
def test_a_request_to_fastapi_is_within_its_budget(
    hold: Callable[..., None], loop: OnLoop, request_of: str
) -> None:
    """Over OpenTelemetry's instrumentation, without a server around it."""
    from fastapi import FastAPI
    from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor

    from antipode.integrations.asgi import instrument_app, uninstrument_app

    # A class that was instrumented once is so for good: this one is the test's own.
    app = type("App", (FastAPI,), {})()

    @app.get("/")
    async def empty() -> None:
        """Do nothing."""

    FastAPIInstrumentor.instrument_app(app, tracer_provider=TracerProvider())
    call = partial(_asgi, loop, app, HEADERS[request_of])
    plain = steady_calls(call)
    antipode.instrument()
    instrument_app(app)
    packages = ("fastapi", "starlette", "opentelemetry-instrumentation-fastapi")
    ours = steady_calls(call)
    uninstrument_app(app)
    hold(difference(f"FastAPI: {request_of} request", ours, plain, packages))


def _asgi(loop: OnLoop, app: Any, headers: dict[str, str]) -> None:
    """One request, as a server makes it."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_: dict[str, Any]) -> None:
        pass

    loop.run(app(scope, receive, send))


@pytest.mark.parametrize("request_of", HEADERS)
def test_a_request_to_flask_is_within_its_budget(
    hold: Callable[..., None], request_of: str
) -> None:
    """Over OpenTelemetry's instrumentation, without a server around it."""
    from flask import Flask
    from opentelemetry.instrumentation.flask import FlaskInstrumentor
    from werkzeug.test import EnvironBuilder

    from antipode.integrations.wsgi import instrument_app, uninstrument_app

    app = type("App", (Flask,), {})("budgets")
    app.route("/")(lambda: "")
    FlaskInstrumentor().instrument_app(app, tracer_provider=TracerProvider())

    def call() -> None:
        environ = EnvironBuilder(headers=HEADERS[request_of]).get_environ()
        answer = app(environ, lambda *_: lambda _: None)
        for _ in answer:
            pass
        answer.close()

    plain = steady_calls(call)
    antipode.instrument()
    instrument_app(app)
    packages = ("Flask", "Werkzeug", "opentelemetry-instrumentation-flask")
    ours = steady_calls(call)
    uninstrument_app(app)
    hold(difference(f"Flask: {request_of} request", ours, plain, packages))


@pytest.mark.parametrize("lineage", [None, THREE], ids=HEADERS)
def test_a_request_by_httpx_is_within_its_budget(
    hold: Callable[..., None], request: pytest.FixtureRequest, lineage: Lineage | None
) -> None:
    """Whether it leaves with a lineage or without; a transport answers at once."""
    import httpx

    from antipode.integrations.httpx import instrument_client, uninstrument_client

    answer = httpx.MockTransport(lambda _: httpx.Response(200))
    with httpx.Client(transport=answer) as client:
        call, scope = partial(client.get, "http://service/"), partial(antipode.scope, lineage)
        plain = steady_calls(call, scope)
        antipode.instrument()
        instrument_client(client)
        ours = steady_calls(call, scope)
        uninstrument_client(client)
    hold(difference(f"httpx: {request.node.callspec.id} request", ours, plain, ("httpx",)))


class Answering(BaseHTTPRequestHandler):
    """Says that all is well, over a connection that stays open."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def service() -> Iterator[str]:
    """The URL of a service."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("lineage", [None, THREE], ids=HEADERS)
def test_a_request_by_requests_is_within_its_budget(
    hold: Callable[..., None],
    request: pytest.FixtureRequest,
    service: str,
    lineage: Lineage | None,
) -> None:
    """Whether it leaves with a lineage or without."""
    import requests

    from antipode.integrations.requests import instrument_client, uninstrument_client

    with requests.Session() as session:
        session.trust_env = False
        call, scope = partial(session.get, service), partial(antipode.scope, lineage)
        plain = steady_calls(call, scope)
        antipode.instrument()
        instrument_client(session)
        ours = steady_calls(call, scope)
        uninstrument_client(session)
    packages = ("requests", "urllib3")
    hold(difference(f"requests: {request.node.callspec.id} request", ours, plain, packages))


class Queued(Executor):
    """Runs what a gRPC server is asked for in the thread that counts."""

    def __init__(self) -> None:
        self._jobs: queue.Queue[Callable[[], object]] = queue.Queue()

    def submit(self, function: Any, /, *args: Any, **options: Any) -> Future[Any]:
        self._jobs.put(partial(function, *args, **options))
        return Future()

    def run(self) -> None:
        """Wait for one job and run it, in a context without a request."""
        with uncounted():
            job = self._jobs.get(timeout=10)
        contextvars.Context().run(job)


@contextmanager
def grpc_call() -> Iterator[Callable[[], object]]:
    """An empty call and what it runs at the server, both in this thread."""
    import grpc

    pool = Queued()
    server = grpc.server(pool)
    method = grpc.unary_unary_rpc_method_handler(lambda _request, _context: b"")
    handlers = grpc.method_handlers_generic_handler("budgets.Empty", {"Call": method})
    server.add_generic_rpc_handlers((handlers,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        grpc.channel_ready_future(channel).result(timeout=10)
        unary = channel.unary_unary("/budgets.Empty/Call")

        def call() -> None:
            calling = unary.future(b"")
            pool.run()
            with uncounted():
                calling.result(timeout=10)
            assert calling.result() == b""

        yield call
    server.stop(None).wait(10)


@pytest.mark.parametrize("lineage", [None, THREE], ids=HEADERS)
def test_a_call_of_grpc_is_within_its_budget(
    hold: Callable[..., None], request: pytest.FixtureRequest, lineage: Lineage | None
) -> None:
    """Of both sides together, with a lineage and without."""
    from antipode.integrations import grpc

    scope = partial(antipode.scope, lineage)
    with grpc_call() as call:
        plain = steady_calls(call, scope)
    antipode.instrument()
    grpc.instrument()
    try:
        with grpc_call() as call:
            ours = steady_calls(call, scope)
    finally:
        grpc.uninstrument()
    hold(difference(f"gRPC: {request.node.callspec.id} call", ours, plain, ("grpcio",)))
