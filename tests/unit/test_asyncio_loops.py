"""Event loops of another make than asyncio's: their tasks are branches like any other."""

from __future__ import annotations

import asyncio
import importlib.util
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode.integrations import asyncio as antipode_asyncio
from antipode.integrations.asgi import AntipodeMiddleware

if TYPE_CHECKING:
    from collections.abc import Iterator


class OtherLoop(asyncio.SelectorEventLoop):
    """A loop that makes its tasks itself, as a loop that is not written in Python does."""

    def create_task(self, coro: Any, **options: Any) -> Any:
        """Make a task, by the task factory if there is one."""
        factory: Any = self.get_task_factory() or (
            lambda loop, coro, **more: asyncio.Task(coro, loop=loop, **more)
        )
        return factory(self, coro, **options)


@pytest.fixture(params=["uvloop", "another"])
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that does not run yet."""
    if request.param == "another":
        made: asyncio.AbstractEventLoop = OtherLoop()
    elif importlib.util.find_spec("uvloop") is None:
        pytest.skip("not installed: uvloop")
    else:
        import uvloop

        made = uvloop.new_event_loop()
    yield made
    antipode_asyncio.uninstrument()
    made.close()


async def branches() -> int:
    """How many branches a request says that run, of one that is awaited and one that is not."""
    with antipode.scope() as held:
        go = asyncio.Event()
        await asyncio.create_task(asyncio.sleep(0))
        task = asyncio.create_task(go.wait())
        found = antipode.deserialize(held.text()).open_branches
        go.set()
        await task
        assert not antipode.deserialize(held.text()).open_branches
        return found


def test_the_loop_that_runs_is_counted(loop: asyncio.AbstractEventLoop) -> None:
    """From ``instrument()`` on, until ``uninstrument()``."""

    async def main() -> tuple[int, ...]:
        found = [await branches()]
        antipode_asyncio.instrument()
        antipode_asyncio.instrument()
        found.append(await branches())
        antipode_asyncio.uninstrument()
        found.append(await branches())
        antipode_asyncio.follow_running_loop()  # As a middleware does for each request.
        return (*found, await branches())

    assert loop.run_until_complete(main()) == (0, 1, 0, 0)


def test_the_loop_that_serves_requests_is_counted(loop: asyncio.AbstractEventLoop) -> None:
    """The ASGI middleware sees it, however long before it ran ``instrument()`` was called."""
    antipode_asyncio.instrument()
    found: list[int] = []

    async def app(*_: object) -> None:
        found.append(await branches())

    async def nothing(*_: object) -> Any:
        return {}

    async def request() -> None:
        await AntipodeMiddleware(app)({"type": "http", "headers": []}, nothing, nothing)

    loop.run_until_complete(request())
    assert found == [1]


def test_loops_of_uvloop_are_counted_wherever_they_run() -> None:
    """Without a middleware, made before or after ``instrument()``."""
    uvloop = pytest.importorskip("uvloop")
    before = uvloop.new_event_loop()
    antipode_asyncio.instrument()
    after = uvloop.new_event_loop()
    try:
        assert before.run_until_complete(branches()) == 1
        assert after.run_until_complete(branches()) == 1
        antipode_asyncio.uninstrument()
        assert before.run_until_complete(branches()) == 0
        assert "create_task" not in vars(uvloop.Loop)
    finally:
        antipode_asyncio.uninstrument()
        before.close()
        after.close()
