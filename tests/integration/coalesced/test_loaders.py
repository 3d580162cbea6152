"""Data loaders that requests share: aiodataloader's and Strawberry's."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import BarrierResult, DependencyLost, Lineage, Status, WriteId
from antipode._setup import targets
from antipode.shim import Outcome, record_read
from antipode_shims import redis as redis_shims
from tests.integration.redis._clients import async_client

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from antipode_testing import RedisTopology

HOUR = 498_669
READ = Lineage([WriteId("users", "log", 9, HOUR, covering=True)])
LIBRARIES = {"aiodataloader": "aiodataloader", "strawberry": "strawberry.dataloader"}
PAGES, AT_ONCE, LAG_MS = 50, 10, 60


def post(number: int) -> WriteId:
    """A write that some request depends on."""
    return WriteId("posts", f"p{number}", 1, HOUR)


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A library's module; instrumented, and nothing stays there."""
    module = pytest.importorskip(LIBRARIES[request.param])
    ours: Any = import_module(f"antipode.integrations.{request.param}")
    ours.instrument()
    yield module
    ours.uninstrument()


class Work:
    """A loader's function that notes each batch: its keys, and what it depends on."""

    def __init__(self, gone: Lineage | None = None) -> None:
        self.runs: list[tuple[list[Any], Lineage]] = []
        self.gone = gone or Lineage()
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self.go.set()

    async def __call__(self, keys: list[Any]) -> list[Any]:
        """Ten times each key."""
        found = antipode.current()
        self.runs.append((list(keys), found))
        self.begun.set()
        await self.go.wait()
        record_read(READ)
        if missing := [each for each in found if each in self.gone]:
            outcomes = tuple(Outcome(each, Status.LOST) for each in missing)
            raise DependencyLost("gone", BarrierResult(outcomes))
        return [KeyError(each) if each < 0 else each * 10 for each in keys]


def loader_of(library: Any, work: Callable[[list[Any]], Awaitable[list[Any]]], **more: Any) -> Any:
    """A loader of *work*, which libraries want to be a coroutine function."""

    async def load(keys: list[Any]) -> list[Any]:
        return await work(keys)

    return library.DataLoader(load, **more)


async def asking(loader: Any, key: Any, *depends: WriteId) -> tuple[Any, Lineage]:
    """What a request gets that depends on *depends*, and what it depends on then."""
    with antipode.scope(Lineage(depends)):
        try:
            return await loader.load(key), antipode.current()
        except Exception as error:  # noqa: BLE001 - that is what it gets
            return error, antipode.current()


async def test_what_requests_load_at_once_depends_on_all_of_them(library: Any) -> None:
    """And each gets what was added, and none of the others' causes."""
    work = Work()
    loader = loader_of(library, work)
    found = list(await asyncio.gather(asking(loader, 1, post(1)), asking(loader, 2, post(2))))
    assert found == [(10, Lineage([post(1), *READ])), (20, Lineage([post(2), *READ]))]
    assert work.runs == [([1, 2], Lineage([post(1), post(2)]))]


async def test_a_cached_value_keeps_what_it_depends_on(library: Any) -> None:
    """Each request that gets it depends on that; one key of one request is one future."""
    work = Work()
    loader = loader_of(library, work)
    with antipode.scope():
        assert loader.load(1) is loader.load(1)
        await loader.load(1)
    assert await asking(loader, 1, post(2)) == (10, Lineage([post(2), *READ]))
    with antipode.scope(Lineage([post(3)])):
        loader.prime(5, 50)
    assert await asking(loader, 5) == (50, Lineage([post(3)]))
    assert len(work.runs) == 1


async def test_a_value_that_was_primed_while_it_was_asked_for() -> None:
    """Strawberry takes it off the batch: who asked depends on what who primed does."""
    library: Any = pytest.importorskip("strawberry.dataloader")
    ours: Any = import_module("antipode.integrations.strawberry")
    ours.instrument()
    try:
        loader = loader_of(library, Work())
        asked = asyncio.ensure_future(asking(loader, 5))
        await asyncio.sleep(0)
        with antipode.scope(Lineage([post(3)])):
            loader.prime(5, 50, force=True)
        assert await asked == (50, Lineage([post(3)]))
    finally:
        ours.uninstrument()


async def test_no_value_that_began_before_is_given(library: Any) -> None:
    """Nobody gets what is loaded for less than it depends on; who depends on no more does."""
    work = Work()
    work.go.clear()
    loader = loader_of(library, work)
    first = asyncio.ensure_future(asking(loader, 1, post(1)))
    await work.begun.wait()
    others = [asyncio.ensure_future(asking(loader, 1, *each)) for each in ([], [post(2)])]
    await asyncio.sleep(0)
    work.go.set()
    assert [result for result, _ in await asyncio.gather(first, *others)] == [10, 10, 10]
    assert work.runs == [([1], Lineage([post(1)])), ([1], Lineage([post(2)]))]


async def test_who_brought_what_is_lost_gets_its_error(library: Any) -> None:
    """Also where another one asked for the same key: that has its value, now and later."""
    work = Work(gone=Lineage([post(2)]))
    loader = loader_of(library, work)
    found = await asyncio.gather(
        asking(loader, 1, post(1)),
        asking(loader, 1, post(2)),
        asking(loader, 2, post(2)),
        asking(loader, 3),
    )
    assert [type(each) for each, _ in found] == [int, DependencyLost, DependencyLost, int]
    assert found[1][1] == Lineage([post(2)])
    assert [keys for keys, _ in work.runs] == [[1, 2, 3], [1, 3]]
    assert await asking(loader, 2) == (20, READ)


async def test_a_key_that_fails_fails_alone(library: Any) -> None:
    """Its caller has the exception of its result."""
    loader = loader_of(library, Work())
    found = await asyncio.gather(asking(loader, 1), asking(loader, -1))
    assert [repr(each) for each, _ in found] == ["10", "KeyError(-1)"]


async def test_a_cancelled_caller_leaves_the_others_theirs(library: Any) -> None:
    """Of the same key, too; what it depends on is no part of the batch."""
    work = Work()
    loader = loader_of(library, work)
    first, second = (asyncio.ensure_future(asking(loader, 1, post(n))) for n in (1, 2))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == (10, Lineage([post(2), *READ]))
    assert first.cancelled()


async def test_a_key_keeps_tenants_apart(library: Any) -> None:
    """They load at the same time, each without the other's causes."""
    ours: Any = import_module(f"antipode.integrations.{library.__name__.partition('.')[0]}")
    ours.instrument(key=lambda key: key % 2)
    work = Work()
    loader = loader_of(library, work)
    found = await asyncio.gather(*(asking(loader, n, post(n)) for n in (1, 2, 3)))
    assert [each for each, _ in found] == [10, 20, 30]
    assert sorted(work.runs, key=str) == [
        ([1, 3], Lineage([post(1), post(3)])),
        ([2], Lineage([post(2)])),
    ]


async def test_undone_it_leaves_loaders_alone(library: Any) -> None:
    """What two requests load is in the first one's scope, and futures are the loader's."""
    ours: Any = import_module(f"antipode.integrations.{library.__name__.partition('.')[0]}")
    ours.instrument()
    ours.uninstrument()
    ours.uninstrument()
    work = Work()
    loader = loader_of(library, work)
    await asyncio.gather(asking(loader, 1, post(1)), asking(loader, 2, post(2)))
    assert work.runs == [([1, 2], Lineage([post(1)]))]


async def test_setup_covers_it(library: Any) -> None:
    """Without a call of its own; ``teardown()`` undoes it."""
    name = library.__name__.partition(".")[0]
    ours: Any = import_module(f"antipode.integrations.{name}")
    ours.uninstrument()
    antipode.setup(skip=[each for each in targets.NAMES if each != name])
    try:
        assert ours.is_instrumented()
        work = Work()
        loader = loader_of(library, work)
        await asyncio.gather(asking(loader, 1, post(1)), asking(loader, 2, post(2)))
        assert work.runs == [([1, 2], Lineage([post(1), post(2)]))]
    finally:
        antipode.teardown()
    assert not ours.is_instrumented()


@pytest.mark.slow
@pytest.mark.store("redis")
async def test_a_page_over_a_shared_loader_shows_what_its_mutation_wrote(
    antipode_redis: RedisTopology,
) -> None:
    """GraphQL pages at a lagging replica, others of which ask first: 0 of 50 are wrong."""
    loaders: Any = pytest.importorskip("strawberry.dataloader")
    strawberry: Any = import_module("strawberry")
    ours: Any = import_module("antipode.integrations.strawberry")
    antipode.configure(barriers="auto", auto_timeout=20, on_stale="raise")
    primary, replica = async_client(antipode_redis.primary), async_client(antipode_redis.replica)
    redis_shims.instrument_client(primary, datastore="posts")
    redis_shims.instrument_client(replica, datastore="posts", reads_from="replica")

    async def load(keys: list[str]) -> list[str]:
        return [(each or b"").decode() for each in await replica.mget(keys)]

    loader = loaders.DataLoader(load, cache=False)

    async def shown(key: str) -> str:
        return str(await loader.load(key))

    async def written(key: str, value: str) -> bool:
        return bool(await primary.set(key, value))

    shown.__annotations__.update(key=str, **{"return": str})
    written.__annotations__.update(key=str, value=str, **{"return": bool})
    query = strawberry.type(type("Query", (), {"shown": strawberry.field(resolver=shown)}))
    mutation = strawberry.type(
        type("Mutation", (), {"written": strawberry.mutation(resolver=written)})
    )
    schema = strawberry.Schema(query, mutation)

    async def page(number: int) -> bool:
        with antipode.scope():
            await schema.execute(f'mutation {{ written(key: "k{number}", value: "{number}") }}')
            answer = await schema.execute(f'{{ shown(key: "k{number}") }}')
        return answer.errors is None and answer.data == {"shown": str(number)}

    async def visit() -> None:
        with antipode.scope():
            await schema.execute('{ shown(key: "other") }')

    ours.instrument()
    antipode_redis.set_lag(LAG_MS)
    try:
        right = 0
        for first in range(0, PAGES, AT_ONCE):
            pages = [page(n) for n in range(first, first + AT_ONCE)]
            found = await asyncio.gather(*pages, *(visit() for _ in range(AT_ONCE)))
            right += sum(each is True for each in found)
        assert right == PAGES
    finally:
        antipode_redis.set_lag(0)
        ours.uninstrument()
        for each in (primary, replica):
            redis_shims.uninstrument_client(each)
            await each.aclose()
