"""Random requests whose reads wait by themselves, and what may come of each of those reads.

A read shows the newest number that was written. Its request depends on one of the numbers, so that
a read has to show that number or a later one, or to be counted as answered stale. It may not take
longer than the time of automatic barriers and half a second.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar

import antipode
from antipode import Lineage, StaleSnapshot
from antipode._lineage.unmet_errors import UnmetError
from antipode._runtime import observers
from antipode.telemetry import Metric, metrics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest

    from antipode_testing import Topology

LATE_S = 0.5
#: No deadlock: no round of requests, and no fail-over, takes longer.
HANGS_S = 60.0
AT_ONCE = 4
_BUDGETS_S = (0.0, 0.05, 0.2)
_LAGS_MS = (0, 20, 100)
#: How long after it began a read is cancelled, if it is not over.
_CANCELS_S = (0.00005, 0.0001, 0.0001, 0.001, 0.01)
#: How much of a request are other statements, and writes of its own.
_OTHERS, _WRITES = 0.3, 0.1
_RAISING, _CANCELLED = 0.25, 0.3
_BEAT_S = 0.01

_served: ContextVar[list[str]] = ContextVar("served")


class Reader(ABC):
    """One client, instrumented, at the server that is read, for one request at a time."""

    @abstractmethod
    async def shown(self, choose: random.Random) -> int:
        """The newest number that the server shows, read in one way or another."""

    @abstractmethod
    async def other(self, choose: random.Random) -> None:
        """Whatever else an application may send."""

    @abstractmethod
    async def close(self) -> None:
        """The request is over, or its client failed."""


class Bench(ABC):
    """One store with an application's clients.

    Attributes:
        datastore: its name.
        topology: its servers.
        asynchronous: whether its clients are asyncio's: their calls are cancelled, too.
        errors: of the clients.
    """

    datastore: ClassVar[str] = "numbers"
    errors: ClassVar[tuple[type[Exception], ...]]

    def __init__(self, topology: Topology, *, asynchronous: bool) -> None:
        """Make what is read."""
        self.topology: Any = topology
        self.asynchronous = asynchronous

    @abstractmethod
    def write(self, number: int) -> None:
        """Write *number* at the primary, by an instrumented client."""

    @abstractmethod
    async def reader(self) -> Reader:
        """A client for one request."""

    @abstractmethod
    async def close(self) -> None:
        """Close all clients."""


class Judge:
    """Sends requests to a bench, and judges what their reads show.

    Attributes:
        counts: what became of the reads.
    """

    def __init__(self, bench: Bench, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin with one number that everybody shows."""
        self.counts: Counter[str] = Counter()
        self._bench, self._seed = bench, seed
        self._choose = random.Random(seed)
        self._number = 0
        self._known: list[tuple[int, Lineage]] = []
        self._writing = threading.Lock()
        self._settings = (0.0, "serve")
        monkeypatch.setattr(observers.telemetry, "served", self._note)
        self._write()
        bench.topology.wait_replicated()

    async def episode(self, rounds: int) -> Counter[str]:
        """Rounds of requests; a fail-over that loses writes during one of them; more rounds."""
        before = metrics().get(Metric("served_stale", self._bench.datastore), 0)
        topology = self._bench.topology
        try:
            for number in range(rounds):
                await self._round(fails=number == rounds * 2 // 3)
        finally:
            await self._bench.close()
        topology.resume()
        counted = metrics()[Metric("served_stale", self._bench.datastore)] - before
        assert counted == self.counts["counted"], self.counts
        return self.counts

    async def _round(self, *, fails: bool) -> None:
        topology, choose = self._bench.topology, self._choose
        self._settings = (choose.choice(_BUDGETS_S), "serve")
        if choose.random() < _RAISING:
            self._settings = (self._settings[0], "raise")
        antipode.configure(
            barriers="auto", auto_timeout=self._settings[0], on_stale=self._settings[1]
        )
        faults = [lambda: topology.set_lag(choose.choice(_LAGS_MS)), topology.pause]
        fault = self._fail_over if fails else choose.choice([*faults, topology.resume])
        async with lateness() as late:
            seeds = [choose.random() for _ in range(AT_ONCE)]
            requests = (self._request(random.Random(seed), late) for seed in seeds)
            await asyncio.wait_for(
                asyncio.gather(asyncio.to_thread(fault), *requests), timeout=HANGS_S
            )

    def _fail_over(self) -> None:
        """Lose what is on its way; nobody writes meanwhile."""
        with self._writing:
            self._bench.topology.failover(lose_unreplicated=True)

    def _write(self) -> tuple[int, Lineage]:
        with self._writing, antipode.scope() as scope:
            self._number += 1
            self._bench.write(self._number)
            self._known = [*self._known[-3:], (self._number, scope.lineage)]
            return self._known[-1]

    async def _request(self, choose: random.Random, late: list[float]) -> None:
        if choose.random() < 0.5:
            await asyncio.to_thread(self._write)
        number, lineage = choose.choice(self._known)
        reader = await self._bench.reader()
        with antipode.scope(lineage):
            for _ in range(choose.randint(1, 6)):
                what, fine = choose.random(), True
                if what < _OTHERS:
                    fine = await self._other(reader, choose)
                elif what < _OTHERS + _WRITES:
                    number, lineage = await asyncio.to_thread(self._write)
                    antipode.transfer(lineage)
                else:
                    fine = await self._read(reader, number, choose, late)
                if not fine:
                    await reader.close()
                    reader = await self._bench.reader()
        await reader.close()

    async def _other(self, reader: Reader, choose: random.Random) -> bool:
        try:
            await reader.other(choose)
        except UnmetError:
            assert self._settings[1] == "raise"
        except self._bench.errors:
            return choose.random() < 0.5  # Some go on with what is left of their session.
        return True

    async def _read(
        self, reader: Reader, number: int, choose: random.Random, late: list[float]
    ) -> bool:
        """Read, and judge; whether the client can be used for more."""
        codes: list[str] = []
        _served.set(codes)
        task = asyncio.create_task(reader.shown(choose))
        if self._bench.asynchronous and choose.random() < _CANCELLED:
            after_s = choose.choice(_CANCELS_S)
            asyncio.get_running_loop().call_later(after_s, self._cancel, task)
        started_s, before_s = time.monotonic(), sum(late)
        try:
            shown = await task
        except asyncio.CancelledError:
            outcome, fine = "cancelled", False
        except StaleSnapshot:
            raise
        except UnmetError:
            assert self._settings[1] == "raise"
            outcome, fine = "raised", True
        except self._bench.errors:
            outcome, fine = "failed", False
        else:
            outcome, fine = ("fresh" if shown >= number else "stale"), True
            assert outcome == "fresh" or codes, (self._seed, number, shown, self._settings)
        took_s = time.monotonic() - started_s - (sum(late) - before_s)
        assert took_s < self._settings[0] + LATE_S, (self._seed, outcome, took_s, self._settings)
        assert self._settings[1] == "serve" or set(codes) <= {"stale_snapshot"}, codes
        self.counts[outcome] += 1
        return fine

    def _cancel(self, task: asyncio.Task[int]) -> None:
        self.counts["cancels"] += task.cancel()  # Some clients answer all the same.

    def _note(self, datastore: str, code: str, _server: object) -> None:
        """A read of somebody was counted as answered stale."""
        assert datastore == self._bench.datastore
        _served.get([]).append(code)
        self.counts["counted"] += 1


@asynccontextmanager
async def lateness() -> AsyncIterator[list[float]]:
    """Seconds for which the event loop is late, as they pass: a busy machine makes no read hang."""
    late: list[float] = []

    async def beat() -> None:
        while True:
            started_s = time.monotonic()
            await asyncio.sleep(_BEAT_S)
            late.append(max(time.monotonic() - started_s - 2 * _BEAT_S, 0.0))

    task = asyncio.create_task(beat())
    try:
        yield late
    finally:
        task.cancel()
