"""A real service that notes the names it is called by, and HTTP clients that call it."""

from __future__ import annotations

import asyncio
import functools
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx
import requests
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, StreamingResponse
from starlette.routing import Route

from antipode import calls
from tests.integration._served import served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from starlette.requests import Request
    from starlette.responses import Response
    from typing_extensions import Self

CLIENTS = ["httpx", "httpx-async", "requests", "aiohttp"]
#: In place of a status: the response begins, and its connection is lost.
CUT = 0


class Callee:
    """A service whose answers a test chooses."""

    def __init__(self) -> None:
        """It answers 200 to whatever comes."""
        #: Where it is.
        self.url = ""
        #: The statuses of the next answers; 200 once there are none.
        self.plan: list[int] = []
        #: The name of each request, None where it had none, and all its headers.
        self.names: list[str | None] = []
        self.headers: list[dict[str, str]] = []

    @property
    def name(self) -> str | None:
        """Of the last request."""
        return self.names[-1]

    async def answer(self, request: Request) -> Response:
        """Note a request, and answer it."""
        await request.body()
        call = calls.current()
        self.names.append(call.name if call is not None and call.named else None)
        self.headers.append(dict(request.headers))
        if request.url.path == "/moved":
            return RedirectResponse("/charge", status_code=307)
        status = self.plan.pop(0) if self.plan else 200
        if status == CUT:
            return StreamingResponse(_cut(), headers={"content-length": "100"})
        return JSONResponse({}, status_code=status)


async def _cut() -> AsyncIterator[bytes]:
    yield b"{"
    # What the connection has is sent before it is closed.
    await asyncio.sleep(0)
    raise ConnectionAbortedError


@contextmanager
def callee() -> Iterator[Callee]:
    """A service, instrumented and served."""
    made = Callee()
    methods = ["GET", "POST", "PUT", "DELETE"]
    app = Starlette(routes=[Route("/{path:path}", made.answer, methods=methods)])
    with served(calls.instrument_server(app)) as made.url:
        yield made


class Client:
    """A client of one of the libraries; synchronous ones run in a thread, as handlers do."""

    def __init__(self, library: str, callee: Callee) -> None:
        """Nothing is made yet: the event loop is needed."""
        self.library = library
        self._callee = callee
        self._stack = AsyncExitStack()
        #: The library's own.
        self.own: Any = None

    async def __aenter__(self) -> Self:
        """Make it, without instrumentation."""
        if self.library == "httpx":
            self.own = self._stack.enter_context(httpx.Client(follow_redirects=True))
        elif self.library == "httpx-async":
            made = httpx.AsyncClient(follow_redirects=True)
            self.own = await self._stack.enter_async_context(made)
        elif self.library == "requests":
            self.own = self._stack.enter_context(requests.Session())
        else:
            self.own = await self._stack.enter_async_context(aiohttp.ClientSession())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self._stack.aclose()

    async def send(
        self, path: str = "/charge", body: Any = b"17", method: str = "POST", **options: Any
    ) -> int:
        """One request, and its whole answer: the status."""
        url = self._callee.url + path
        if body is not None:
            options["content" if self.library.startswith("httpx") else "data"] = body
        if self.library == "aiohttp":
            async with self.own.request(method, url, **options) as response:
                await response.read()
                return int(response.status)
        send: Callable[..., Any] = functools.partial(self.own.request, method, url, **options)
        if self.library == "httpx-async":
            return int((await send()).status_code)
        return int((await asyncio.to_thread(send)).status_code)
