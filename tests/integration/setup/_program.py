"""A service of one framework, without a line of instrumentation but ``setup()``.

python -m tests.integration.setup._program FRAMEWORK ORDER: prints, as JSON, what its handler found
in its scope and what its answer said.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import antipode
from tests.integration._ingress import ADDED, CAME, sent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Found = tuple[str, str | None]
HEADER = "antipode-lineage"


def handle() -> str:
    """What every handler does: write, and say what the request depended on."""
    came = antipode.serialize()
    antipode.append(ADDED)
    return came


def fastapi() -> Callable[[], Found]:
    """FastAPI, called as a server calls it."""
    from fastapi import FastAPI, Response

    app = FastAPI()

    @app.get("/")
    async def root() -> Response:
        return Response(handle())

    return lambda: called_by_asgi(app)


def starlette() -> Callable[[], Found]:
    """Starlette, likewise."""
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def root(request: Any) -> Response:
        del request
        return Response(handle())

    app = Starlette(routes=[Route("/", root)])
    return lambda: called_by_asgi(app)


def flask() -> Callable[[], Found]:
    """Flask, likewise."""
    from flask import Flask

    app = Flask("shop")
    app.add_url_rule("/", "root", handle)
    return lambda: called_by_wsgi(app)


def _django() -> None:
    import django
    from django.conf import settings
    from django.http import HttpResponse
    from django.urls import path

    urls = [path("", lambda request: HttpResponse(handle().encode()))]
    settings.configure(ROOT_URLCONF=type("Urls", (), {"urlpatterns": urls}), ALLOWED_HOSTS=["*"])
    django.setup()


def django_wsgi() -> Callable[[], Found]:
    """Django under WSGI."""
    _django()
    from django.core.wsgi import get_wsgi_application

    app = get_wsgi_application()
    return lambda: called_by_wsgi(app)


def django_asgi() -> Callable[[], Found]:
    """Django under ASGI."""
    _django()
    from django.core.asgi import get_asgi_application

    app = get_asgi_application()
    return lambda: called_by_asgi(app)


def aiohttp() -> Callable[[], Found]:
    """The server of aiohttp, on a port of its own."""
    from aiohttp import web

    async def root(request: web.Request) -> web.Response:
        del request
        return web.Response(text=handle())

    app = web.Application()
    app.router.add_get("/", root)

    async def served() -> Found:
        from aiohttp.test_utils import TestClient, TestServer

        async with TestClient(TestServer(app)) as client:
            answer = await client.get("/", headers=sent(CAME))
            return await answer.text(), answer.headers.get(HEADER)

    return lambda: asyncio.run(served())


def called_by_asgi(app: Any) -> Found:
    """One request, as an ASGI server makes it."""
    messages: list[dict[str, Any]] = []
    requests = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not requests:  # The client stays.
            await asyncio.Event().wait()
        return requests.pop()

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/",
        "raw_path": b"/",
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"shop")]
        + [(name.encode(), value.encode()) for name, value in sent(CAME).items()],
    }
    asyncio.run(app(scope, receive, send))
    headers = dict(messages[0]["headers"])
    body = b"".join(message.get("body", b"") for message in messages[1:])
    answered = headers.get(HEADER.encode())
    return body.decode(), None if answered is None else answered.decode()


def called_by_wsgi(app: Any) -> Found:
    """One request, as a WSGI server makes it."""
    from wsgiref.util import setup_testing_defaults

    environ: dict[str, Any] = {
        f"HTTP_{name.upper().replace('-', '_')}": value for name, value in sent(CAME).items()
    }
    setup_testing_defaults(environ)
    headers: dict[str, str] = {}

    def start_response(status: str, given: Iterable[tuple[str, str]], *_: Any) -> None:
        del status
        headers.update((name.lower(), value) for name, value in given)

    body = app(environ, start_response)
    text = b"".join(body).decode()
    if hasattr(body, "close"):
        body.close()
    return text, headers.get(HEADER)


FRAMEWORKS = {
    each.__name__: each for each in (fastapi, starlette, flask, django_wsgi, django_asgi, aiohttp)
}


def main(framework: str, order: str) -> None:
    """Serve one request, with ``setup()`` before the import and again, after it, or undone."""
    if order != "after":
        antipode.setup()
    serve = FRAMEWORKS[framework]()
    antipode.setup()
    if order == "undone":
        antipode.teardown()
    sys.stdout.write(json.dumps(serve()))


if __name__ == "__main__":
    main(*sys.argv[1:])
