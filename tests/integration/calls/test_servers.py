"""Servers: an unsafe request is a call, by the name that it came with, or it is refused."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flask
import pytest
from fastapi import FastAPI
from starlette.middleware.base import BaseHTTPMiddleware

from antipode import ConfigurationError, calls
from antipode.integrations.asgi import instrument_app as carry_asgi
from antipode.integrations.wsgi import instrument_app as carry_wsgi
from tests.integration._ingress import asgi, ask, wsgi
from tests.integration.calls._django import caller

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ROOT = Path(__file__).resolve().parents[3]
NAME = "call:7Zb8"


def shown() -> dict[str, Any]:
    """What call this is."""
    call = calls.current()
    if call is None:
        return {}
    return {"name": call.name, "named": call.named, "caller": call.caller}


def refuse() -> None:
    """A handler that a call error leaves."""
    raise calls.DuplicateWaits("ask again")


def fail() -> None:
    """A handler that another error leaves."""
    raise LookupError


HANDLERS: dict[str, Callable[[], Any]] = {"call": shown, "refuse": refuse, "fail": fail}
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


def fastapi() -> FastAPI:
    """Handlers in threads."""
    app = FastAPI()
    for path, handler in HANDLERS.items():
        app.api_route(f"/{path}", methods=METHODS)(handler)
    return app


def flask_app() -> flask.Flask:
    """The same."""
    app = flask.Flask(__name__)
    app.logger.disabled = True
    for path, handler in HANDLERS.items():
        app.add_url_rule(
            f"/{path}", path, handler, methods=METHODS, provide_automatic_options=False
        )
    return app


async def plain_asgi(scope: Any, receive: Any, send: Any) -> None:
    """The same without a framework."""
    body = json.dumps(HANDLERS[scope["path"][1:]]()).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def plain_wsgi(environ: Any, start_response: Any) -> Iterable[bytes]:
    """The same; its body is made while it is sent."""
    handler = HANDLERS[environ["PATH_INFO"][1:]]
    if handler is shown:
        start_response("200 OK", [])
        return (json.dumps(shown()).encode() for _ in range(1))
    start_response("200 OK", [])
    return [json.dumps(handler()).encode()]


@contextmanager
def django(server: str) -> Iterator[int]:
    """A site in a process of its own: settings are made once in a process."""
    command = [sys.executable, "-W", "error", "-m", "tests.integration.calls._django", server]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin
        assert process.stdout
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()
            assert process.wait(30) == 0


SERVERS: dict[str, Callable[[], Any]] = {
    "fastapi": lambda: asgi(calls.instrument_server(fastapi(), caller=caller)),
    "fastapi with lineages": lambda: asgi(
        calls.instrument_server(carry_asgi(fastapi()), caller=caller)
    ),
    "asgi": lambda: asgi(calls.instrument_server(plain_asgi, caller=caller)),
    "flask": lambda: wsgi(calls.instrument_server(flask_app(), caller=caller)),
    "flask with lineages": lambda: wsgi(
        calls.instrument_server(carry_wsgi(flask_app()), caller=caller)
    ),
    "wsgi": lambda: wsgi(calls.instrument_server(plain_wsgi, caller=caller)),
    "django wsgi": lambda: django("wsgi"),
    "django asgi": lambda: django("asgi"),
}


@pytest.fixture(params=SERVERS, scope="module")
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    """Each kind of server."""
    with SERVERS[request.param]() as found:
        yield found


def call_of(port: int, headers: dict[str, str], method: str = "POST") -> dict[str, Any]:
    """What call a request with these headers is."""
    answer = ask(port, "/call", headers, method=method)
    assert answer.status == 200, answer
    found: dict[str, Any] = json.loads(answer.body)
    return found


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_request_is_the_call_that_it_says(port: int, method: str) -> None:
    """By our header before an ``Idempotency-Key``, and the caller whom the application knows."""
    key = {"Idempotency-Key": '"order-1"'}
    both = {**key, "antipode-call": f"{NAME};later=1", "x-user": "alice"}
    assert call_of(port, both, method) == {"name": NAME, "named": True, "caller": "alice"}
    assert call_of(port, key, method) == {"name": "key:order-1", "named": True, "caller": ""}


def test_a_request_without_a_name_is_a_call_of_its_own(port: int) -> None:
    """Its nested calls have names, which a repetition does not share."""
    first, second = (call_of(port, {}) for _ in range(2))
    assert not first["named"]
    assert first["name"] != second["name"]


def test_a_safe_request_is_no_call(port: int) -> None:
    """Whatever it says: it is answered as if we were not there."""
    for bad in ("x" * 10_000, NAME):
        assert call_of(port, {"antipode-call": bad}, "GET") == {}


@pytest.mark.parametrize(
    "headers",
    [
        {"antipode-call": "x" * 10_000},
        {"antipode-call": "x" * 265},
        {"antipode-call": ""},
        {"antipode-call": "a,b"},
        {"antipode-call": "a b"},
        {"antipode-call": "naïve"},
        {"antipode-call": "", "Idempotency-Key": "order-1"},
        {"Idempotency-Key": "x" * 10_000},
        {"Idempotency-Key": '""'},
    ],
    ids=["10 kB", "265", "empty", "two", "space", "latin-1", "empty, a key", "key", "empty key"],
)
def test_a_bad_name_is_refused(port: int, headers: dict[str, str]) -> None:
    """With 400, its code and what is wrong; the handler, which would fail, does not run."""
    answer = ask(port, "/fail", headers, method="POST")
    body = json.loads(answer.body)
    assert (answer.status, body["code"]) == (400, "call_name")
    assert body["message"]
    assert len(answer.body) < 500


def test_a_call_error_is_answered(port: int) -> None:
    """With its status, when to come again, and its code; the server goes on."""
    for _ in range(2):
        answer = ask(port, "/refuse", {"antipode-call": NAME}, method="POST")
        assert answer.status == 409
        assert ("retry-after", "1") in answer.headers
        assert ("content-type", "application/json") in answer.headers
        assert json.loads(answer.body) == {"code": "call_waits", "message": "ask again"}


@pytest.mark.parametrize("server", ["wsgi", "asgi"])
def test_djangos_own_middlewares_answer_first(server: str) -> None:
    """What they make of an error is the answer."""
    with django(server) as found:
        assert ask(found, "/teapot", method="POST").status == 418


def test_requests_at_once_are_calls_of_their_own() -> None:
    """Each handler, in its thread, has the name of its request."""
    names = [f"order-{number}" for number in range(40)]
    with asgi(calls.instrument_server(fastapi())) as port, ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda name: call_of(port, {"antipode-call": name})["name"], names)
        assert list(found) == names


def test_middlewares_that_come_later_are_outside() -> None:
    """One that authenticates puts the user where *caller* finds it; one inside has the call."""
    app = FastAPI()
    seen: list[Any] = []

    @app.post("/call")
    async def show() -> dict[str, Any]:
        return shown()

    async def inside(request: Any, call_next: Any) -> Any:
        seen.append(calls.current())
        return await call_next(request)

    async def authenticate(request: Any, call_next: Any) -> Any:
        request.scope["user"] = "alice"
        return await call_next(request)

    app.add_middleware(BaseHTTPMiddleware, dispatch=inside)
    calls.instrument_server(app, caller=lambda scope: scope["user"])
    app.add_middleware(BaseHTTPMiddleware, dispatch=authenticate)
    with asgi(app) as port:
        assert call_of(port, {"antipode-call": NAME})["caller"] == "alice"
    assert seen[0].name == NAME


@pytest.mark.parametrize("make", [fastapi, flask_app], ids=["fastapi", "flask"])
def test_the_applications_own_answer_to_a_call_error_stays(make: Callable[[], Any]) -> None:
    """Whether it is registered before or after."""
    app = make()
    if isinstance(app, FastAPI):
        app.add_exception_handler(calls.CallError, _teapot)
        served: Any = asgi(calls.instrument_server(app))
    else:
        app.register_error_handler(calls.CallError, lambda _: ("", 418))
        served = wsgi(calls.instrument_server(app))
    with served as port:
        assert ask(port, "/refuse", method="POST").status == 418


async def _teapot(*_: object) -> Any:
    from starlette.responses import Response

    return Response(status_code=418)


async def test_an_error_after_the_response_began_is_the_servers() -> None:
    """Nothing can be answered any more."""
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        refuse()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "headers": []}
    with pytest.raises(calls.DuplicateWaits):
        await calls.instrument_server(app)(scope, None, send)
    assert [each["status"] for each in sent] == [200]
    assert calls.current() is None


async def test_other_protocols_pass() -> None:
    """A WebSocket is no call, nor is the lifespan of a server."""
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope["type"], calls.current()))
        await asyncio.sleep(0)

    for kind in ("websocket", "lifespan"):
        await calls.instrument_server(app)({"type": kind}, None, None)
    assert seen == [("websocket", None), ("lifespan", None)]


@pytest.mark.parametrize("make", [fastapi, flask_app], ids=["fastapi", "flask"])
def test_instrumenting_is_idempotent(make: Callable[[], Any]) -> None:
    """Twice is once; what was instrumented is what is served."""
    app = make()
    assert calls.instrument_server(app) is app
    assert calls.instrument_server(app) is app
    wrapped = calls.instrument_server(plain_wsgi)
    assert calls.instrument_server(wrapped) is wrapped


@pytest.mark.parametrize("make", [fastapi, flask_app], ids=["fastapi", "flask"])
def test_who_serves_already_is_refused(make: Callable[[], Any]) -> None:
    """At once, and not by requests that are no calls."""
    app = make()
    with (asgi if isinstance(app, FastAPI) else wsgi)(app) as port:
        ask(port, "/call")
        with pytest.raises(ConfigurationError, match="already"):
            calls.instrument_server(app)


@pytest.mark.parametrize(
    "app", [object(), lambda scope: None, "app:app"], ids=["no", "two", "text"]
)
def test_what_is_no_application_is_refused(app: Any) -> None:
    """Neither protocol: an object, an application of ASGI 2, its name."""
    with pytest.raises(ConfigurationError, match="ASGI 3 or WSGI"):
        calls.instrument_server(app)
