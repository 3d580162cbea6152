"""Random requests that share work, of two tenants, over a lagging store: compared with a model."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage, UnknownDatastore, WriteId
from antipode_shims import embedded
from antipode_shims.embedded import EmbeddedTopology

if TYPE_CHECKING:
    from collections.abc import Iterator

HOUR = 498_669
CALLERS = 24
SEEDS = range(4)


@dataclass
class Request:
    """One request: what it does, and what came of it."""

    number: int
    tenant: str
    #: Whether it depends on a datastore that nobody knows here.
    bad: bool
    #: Whether its item fails.
    fails: bool
    #: After how many steps of the event loop it is cancelled; None: never.
    cancelled: int | None
    outcome: Any = None
    before: Lineage = field(default_factory=Lineage)
    after: Lineage = field(default_factory=Lineage)

    @property
    def mark(self) -> WriteId:
        """What this request alone depends on."""
        return WriteId("marks", f"{self.tenant}-{self.number}", 1, HOUR)

    @property
    def unknown(self) -> WriteId:
        """What no shim can wait for."""
        return WriteId("elsewhere", f"{self.tenant}-{self.number}", 1, HOUR)


class Shop:
    """A store, the work that requests share, and the model of it."""

    def __init__(self, topology: EmbeddedTopology, seed: int) -> None:
        self.writer = embedded.shim("posts", topology.primary, reads_from="primary")
        self.reader = embedded.shim("posts", topology.replica, reads_from="replica")
        self.choice = random.Random(seed)
        self.counts: Counter[str] = Counter()
        #: By request: what the run that served it read.
        self.added: dict[int, Lineage] = {}

    def requests(self, *, cancels: bool) -> list[Request]:
        """As the seed has it."""
        draw = self.choice.random
        return [
            Request(
                number,
                self.choice.choice("ab"),
                bad=draw() < 0.15,
                fails=draw() < 0.15,
                cancelled=self.choice.randrange(1, 7) if cancels and draw() < 0.2 else None,
            )
            for number in range(CALLERS)
        ]

    def begin(self, request: Request) -> None:
        """It writes its item, and depends on what is its own alone."""
        self.writer.write(f"k{request.number}", str(request.number).encode())
        antipode.append(request.mark)
        if request.bad:
            antipode.append(request.unknown)
        request.before = antipode.current()

    def began(self, items: list[Request]) -> None:
        """A run depends on what its callers do, of one tenant."""
        self.counts["runs"] += 1
        marks = {each for each in antipode.current() if each.datastore == "marks"}
        assert marks == {each.mark for each in items}
        assert len({each.tenant for each in items}) == 1

    def read(self, items: list[Request]) -> list[Any]:
        """The items, at the replica."""
        found, added = [], Lineage()
        for each in items:
            value, lineage = self.reader.read(f"k{each.number}")
            found.append(KeyError(each.number) if each.fails else value)
            added = added.merge(lineage)
        self.added.update((each.number, added) for each in items)
        return found

    def check(self, request: Request) -> None:
        """What the model says of it."""
        if isinstance(request.outcome, asyncio.CancelledError):
            assert request.cancelled is not None
            self.counts["cancelled"] += 1
            return
        if request.bad:
            assert isinstance(request.outcome, UnknownDatastore)
            assert request.unknown in {each.write for each in request.outcome.unmet}
            assert {each.write for each in request.outcome.result.outcomes} <= {*request.before}
            assert request.after == request.before
            self.counts["bad"] += 1
            return
        if request.fails:
            assert repr(request.outcome) == f"KeyError({request.number})"
            self.counts["fails"] += 1
        else:
            assert request.outcome == str(request.number).encode()
            self.counts["read"] += 1
        assert request.after == request.before.merge(self.added[request.number])
        assert [w for w in request.after if w.datastore == "marks"] == [request.mark]


@pytest.fixture
def topology() -> Iterator[EmbeddedTopology]:
    """A primary, and a replica that is a little late."""
    with EmbeddedTopology(lag_ms=5) as one:
        yield one


@pytest.mark.parametrize("seed", SEEDS)
async def test_tasks_get_what_the_model_says(topology: EmbeddedTopology, seed: int) -> None:
    """Own writes at a replica, own errors, and no others' causes, whoever fails or leaves."""
    shop = Shop(topology, seed)

    @antipode.together(key=lambda request: request.tenant)
    async def load(items: list[Request]) -> list[Any]:
        shop.began(items)
        await antipode.barrier_async(timeout=30, exclude=["marks"], on_unknown="raise")
        return shop.read(items)

    async def run(request: Request) -> None:
        with antipode.scope():
            shop.begin(request)
            try:
                request.outcome = await load(request)
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - it is checked
                request.outcome = error
            request.after = antipode.current()

    requests = shop.requests(cancels=True)
    tasks = []
    for each in requests:
        tasks.append(asyncio.ensure_future(run(each)))
        if each.cancelled is not None:
            for _ in range(each.cancelled):
                await asyncio.sleep(0)
            tasks[-1].cancel()
        elif shop.choice.random() < 0.4:
            await asyncio.wait(tasks[-1:])
    await asyncio.wait(tasks)
    for each in requests:
        shop.check(each)
    assert shop.counts["read"] > CALLERS // 4, shop.counts
    assert shop.counts["runs"] < 2 * CALLERS, shop.counts


@pytest.mark.parametrize("seed", SEEDS)
def test_threads_get_what_the_model_says(topology: EmbeddedTopology, seed: int) -> None:
    """The same of threads."""
    shop = Shop(topology, seed)

    @antipode.together(key=lambda request: request.tenant)
    def load(items: list[Request]) -> list[Any]:
        shop.began(items)
        antipode.barrier(timeout=30, exclude=["marks"], on_unknown="raise")
        return shop.read(items)

    def run(request: Request) -> None:
        with antipode.scope():
            shop.begin(request)
            try:
                request.outcome = load(request)
            except Exception as error:  # noqa: BLE001 - it is checked
                request.outcome = error
            request.after = antipode.current()

    requests = shop.requests(cancels=False)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, requests))
    for each in requests:
        shop.check(each)
    assert shop.counts["read"] > CALLERS // 4, shop.counts
