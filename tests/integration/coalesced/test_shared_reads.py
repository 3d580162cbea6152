"""The dry run says where a task of one request reads for others, and nowhere else."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode_cli.report import load, plain, report, text_lines
from antipode_shims import embedded
from tests._lines import records_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the records of a dry run go."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path / "records")
    yield tmp_path / "records"
    antipode.configure(mode="enforce")


@pytest.fixture
def read(tmp_path: Path, folder: Path) -> Iterator[Callable[[], Awaitable[bytes]]]:
    """A read at a replica that takes a moment, in whose first other requests may come."""
    with embedded.shim("posts", tmp_path / "posts.db", reads_from="primary") as primary:
        primary.write("k", b"1")
        with embedded.shim("posts", tmp_path / "posts.db", reads_from="replica") as replica:

            async def read() -> bytes:
                await asyncio.sleep(0)
                found, _ = replica.read("k")
                await asyncio.sleep(0)
                return found or b""

            yield read


def shared(folder: Path) -> list[dict[str, Any]]:
    """The lints of reads that were made for others, too."""
    return [each for each in records_in(folder) if each.get("lint") == "shared-read"]


def places(folder: Path) -> list[tuple[str, list[str]]]:
    """The function of each such read, and the texts of the other lines that it names."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    found = []
    for each in shared(folder):
        assert each["datastore"] == "posts"
        said = each["detail"].split(", ")
        texts = [lines[int(one.rpartition(":")[2]) - 1].strip() for one in said]
        words = [one.partition(" at ")[0] for one in said]
        about = [f"{word}: {text}" for word, text in zip(words, texts, strict=True)]
        found.append((each["site"]["function"], about))
    return found


async def requests(number: int, handle: Callable[[int], Awaitable[object]]) -> None:
    """Handle several requests at once, each in a scope of its own."""

    async def request(one: int) -> None:
        with antipode.scope():
            await handle(one)

    await asyncio.gather(*map(request, range(number)))


async def test_a_single_flight(read: Any, folder: Path) -> None:
    """The line where the first request starts it, that of its read, and where the other waits."""
    flights: dict[str, asyncio.Task[Any]] = {}

    async def fly() -> Any:
        return await read()

    async def single(_: int) -> Any:
        if "k" not in flights:
            flights["k"] = asyncio.create_task(fly())
        return await flights["k"]

    await requests(2, single)
    said = ['started: flights["k"] = asyncio.create_task(fly())']
    said.append('awaited by another request: return await flights["k"]')
    assert places(folder) == [("read", said)]


async def test_the_report_says_what_to_do(read: Any, folder: Path) -> None:
    """The lint has its remedy, and the lines."""
    flights: list[asyncio.Task[bytes]] = []

    async def single(_: int) -> bytes:
        flights.append(flights[0] if flights else asyncio.create_task(read()))
        return await asyncio.shield(flights[0])

    await requests(2, single)
    antipode.configure(mode="enforce")
    text = plain(text_lines(report(load([folder]))))
    assert "antipode.together()" in text
    assert "(shared-read, 1 time)" in text
    assert "awaited by another request at tests/integration/coalesced" in text


async def test_a_loader_of_a_library_that_is_not_instrumented(read: Any, folder: Path) -> None:
    """No code of the application's starts its task: the line is that of its own request's wait."""
    library = pytest.importorskip("aiodataloader")

    async def batch(keys: list[int]) -> list[bytes]:
        return list(await asyncio.gather(*(read() for _ in keys)))

    loader = library.DataLoader(batch)

    async def page(number: int) -> object:
        return await loader.load(number)

    await requests(2, page)
    said = ["started: return await loader.load(number)"]
    said.append("awaited by another request: return await loader.load(number)")
    assert places(folder) == [("read", said)]


async def test_a_leader_that_reads_in_its_own_task(read: Any, folder: Path) -> None:
    """Whoever waits for a future that another request resolves is in the same place."""
    waiting: list[asyncio.Future[bytes]] = []

    async def handle(number: int) -> None:
        if number == 0:
            waiting.append(asyncio.get_running_loop().create_future())
            waiting[0].set_result(await read())
        else:
            await waiting[0]

    await requests(2, handle)
    assert [function for function, _ in places(folder)] == ["read"]


async def test_tasks_of_the_own_request(read: Any, folder: Path) -> None:
    """However they are started and awaited, in branches of the request, too."""

    async def handle(_: int) -> None:
        await asyncio.gather(read(), asyncio.create_task(read()))
        await asyncio.wait_for(asyncio.shield(read()), 60)
        done, _pending = await asyncio.wait({asyncio.ensure_future(read())})
        assert [each.result() for each in done] == [b"1"]
        if sys.version_info >= (3, 11):
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(read()) for _ in range(2)]
            assert [each.result() for each in tasks] == [b"1", b"1"]
        with antipode.scope(antipode.current()):
            task = asyncio.create_task(read())
        assert await task == b"1"

    await requests(3, handle)
    assert not shared(folder)


async def test_threads(read: Any, folder: Path) -> None:
    """Requests that share a pool share no work."""
    with ThreadPoolExecutor(1) as pool:

        async def handle(_: int) -> None:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(pool, antipode.branch(lambda: asyncio.run(read())))
            await asyncio.to_thread(lambda: asyncio.run(read()))

        await requests(3, handle)
    assert not shared(folder)


async def test_what_one_request_wakes_another_with(read: Any, folder: Path) -> None:
    """Locks, queues, semaphores and events hand over no value of a read."""
    lock, queue = asyncio.Lock(), asyncio.Queue[int]()
    limit, event = asyncio.Semaphore(1), asyncio.Event()
    queue.put_nowait(1)

    async def handle(number: int) -> None:
        async with lock, limit:
            await read()
        connection = await queue.get()
        await read()
        queue.put_nowait(connection)
        if number == 0:
            event.set()
        await event.wait()

    await requests(3, handle)
    assert not shared(folder)


async def test_what_together_runs(read: Any, folder: Path) -> None:
    """Its scope depends on what all callers do, also in tasks of its own and nested."""

    @antipode.together
    async def inner(keys: list[int]) -> list[bytes]:
        return [await read() for _ in keys]

    @antipode.together
    async def outer(keys: list[int]) -> list[bytes]:
        await asyncio.gather(*(read() for _ in keys))
        return list(await asyncio.gather(*map(inner, keys)))

    await requests(4, outer)
    assert not shared(folder)


@pytest.mark.parametrize("name", ["aiodataloader", "strawberry"])
async def test_what_instrumented_loaders_load(name: str, read: Any, folder: Path) -> None:
    """They load in a scope that depends on what all do."""
    module = {"strawberry": "strawberry.dataloader"}.get(name, name)
    library: Any = pytest.importorskip(module)
    ours: Any = import_module(f"antipode.integrations.{name}")
    ours.instrument()
    try:

        async def batch(keys: list[int]) -> list[bytes]:
            return list(await asyncio.gather(*(read() for _ in keys)))

        loader = library.DataLoader(batch)
        await requests(3, loader.load)
    finally:
        ours.uninstrument()
    assert not shared(folder)


def test_a_loop_is_left_as_it_was(read: Any, folder: Path) -> None:
    """Once the dry run is over, also of a loop that runs on."""

    async def program() -> None:
        with antipode.scope():
            await read()
        antipode.configure(mode="enforce")
        loop = asyncio.get_running_loop()
        assert not {"call_soon", "create_task"} & set(vars(loop))

    asyncio.run(program())
    assert not shared(folder)
