"""Background work beside OpenTelemetry's instrumentations of threads and asyncio."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import baggage, context
from opentelemetry.instrumentation.asyncio import AsyncioInstrumentor
from opentelemetry.instrumentation.threading import ThreadingInstrumentor

import antipode
from antipode import Lineage, WriteId
from antipode.integrations import asyncio as antipode_asyncio
from antipode.integrations import threads
from antipode.shim import scope_in
from antipode_testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode.shim import Scope

POST = WriteId("posts", "log", 7, written_hour=490_000)


@pytest.fixture(params=["ours first", "theirs first"])
def _threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """Threads under both instrumentations, in both orders."""
    theirs = ThreadingInstrumentor()
    if request.param == "ours first":
        threads.instrument()
        theirs.instrument()
    else:
        theirs.instrument()
        threads.instrument()
    yield
    threads.uninstrument()
    theirs.uninstrument()


def running(held: Scope) -> int:
    """How many branches what leaves now says that run."""
    return antipode.deserialize(held.text()).open_branches


def look() -> tuple[Any, ...]:
    """A job: what it finds of the user's baggage, and a write."""
    antipode.append(POST)
    return baggage.get_baggage("user"), scope_in()


@pytest.mark.usefixtures("_threads")
def test_threads_have_the_whole_context_and_are_counted_once() -> None:
    """The user's baggage by OpenTelemetry, the count by us, the scope by either."""
    seen: list[tuple[Any, ...]] = []
    with antipode.scope() as held:
        token = context.attach(baggage.set_baggage("user", "7"))
        thread = threading.Thread(target=lambda: seen.append(look()))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(1) as pool:
            seen.append(pool.submit(look).result())
        context.detach(token)
        assert seen == [("7", held)] * 2
        assert held.lineage == Lineage([POST])
        assert running(held) == 0


@pytest.mark.usefixtures("_threads")
def test_a_pools_thread_does_not_keep_the_request_that_started_it() -> None:
    """The job of the next request, or of none, has nothing of the first."""
    with ThreadPoolExecutor(1) as pool:
        with antipode.scope() as held:
            assert pool.submit(scope_in).result() is held
            gone = weakref.ref(held)
        del held
        assert pool.submit(scope_in).result() is None

        def collected() -> bool:
            gc.collect()
            return gone() is None

        wait_until(collected, what="the scope to be collected", timeout_s=5)


@pytest.mark.parametrize("first", [True, False], ids=["ours first", "theirs first"])
async def test_tasks_are_counted_once(first: bool) -> None:  # noqa: FBT001 - a parameter
    """The coroutine that OpenTelemetry wraps is the user's work."""
    theirs = AsyncioInstrumentor()
    if first:
        antipode_asyncio.instrument()
    theirs.instrument()
    antipode_asyncio.instrument()
    go = asyncio.Event()

    async def work() -> None:
        await go.wait()
        antipode.append(POST)

    with antipode.scope() as held:
        task = asyncio.create_task(work())
        assert running(held) == 1
        go.set()
        await task
        assert running(held) == 0
        assert held.lineage == Lineage([POST])
    antipode_asyncio.uninstrument()
    theirs.uninstrument()


async def test_a_response_through_starlettes_middlewares_has_no_open_branch() -> None:
    """The task that Starlette runs the application in is the request itself."""
    import httpx
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    left: list[asyncio.Task[Any]] = []
    go = asyncio.Event()

    async def plain(_request: Any) -> PlainTextResponse:
        return PlainTextResponse(str(running(held)))

    async def leaves(_request: Any) -> PlainTextResponse:
        left.append(asyncio.create_task(go.wait()))
        return PlainTextResponse(str(running(held)))

    async def through(request: Any, call_next: Any) -> Any:
        return await call_next(request)

    app = Starlette(
        routes=[Route("/plain", plain), Route("/leaves", leaves)],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=through)],
    )
    antipode_asyncio.instrument()
    with antipode.scope() as held:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            assert (await client.get("/plain")).text == "0"
            assert (await client.get("/leaves")).text == "1"
    go.set()
    await asyncio.gather(*left)
    antipode_asyncio.uninstrument()
