"""Many barriers of every face over one store that is delayed, held, cut and promoted meanwhile."""

from __future__ import annotations

import asyncio
import random
import threading
import time
import traceback
import uuid
from collections import Counter, deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import antipode
from antipode import Lineage, Status, UnmetError

from ._stalls import LATE_S, Deadline, Stalls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode import BarrierResult, WriteId
    from antipode_testing import ContractStore

    from ._subject import Subject

THREADS = 3
TASKS = 30
KEYS = 20
#: How many of the youngest writes barriers are about.
RECENT = 64
WRITE_EVERY_S = 0.003
#: For how long a store may refuse every write, in seconds.
SILENT_S = 20.0
MOST_LAG_MS = 20
#: The share of barriers after which the reader's server is promoted.
PROMOTE_AT = 0.7


@dataclass(frozen=True)
class Written:
    """A write that the store acknowledged."""

    key: str
    number: int
    write: WriteId


@dataclass
class Tally:
    """What became of the barriers. Thread-safe."""

    ended: Counter[str] = field(default_factory=Counter)
    early: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def end(self, how: str, *, face: str, over_s: float = 0.0) -> None:
        """Note how a barrier ended, and by how much it outlived its deadline."""
        with self._lock:
            self.ended[how] += 1
            if over_s > LATE_S:
                self.late.append(f"{face} barrier: {how}, {over_s:.3f} s after its deadline")

    def check(self) -> None:
        """Fail where a barrier passed early or ended late, or the load itself came to grief."""
        assert not self.failures, "\n".join(self.failures)
        assert not self.early, "\n".join(self.early)
        assert not self.late, "\n".join(self.late)

    def __str__(self) -> str:
        ended = ", ".join(f"{count} {how}" for how, count in sorted(self.ended.items()))
        return f"{self.ended.total()} barriers ({ended})"


class Load:
    """Barriers over one pair of shims, from threads, tasks and callbacks at once."""

    def __init__(
        self, subject: Subject, store: ContractStore, tally: Tally, stalls: Stalls, *, seed: int
    ) -> None:
        """Put load on *store*, random as *seed* says."""
        self._subject = subject
        self._store = store
        self._tally = tally
        self._stalls = stalls
        self._seed = seed
        self._barriers = 0
        self._begun = 0
        self._recent: deque[Written] = deque(maxlen=RECENT)
        self._lock = threading.Lock()
        self._first = threading.Event()
        self._promoted = threading.Event()
        self._over = threading.Event()

    def run(self, barriers: int) -> None:
        """Run until *barriers* have ended, whatever they ended with."""
        self._barriers = barriers
        background = [self._thread(self._write), self._thread(self._disturb)]
        workers = [self._thread(self._work, self._seed + index) for index in range(THREADS)]
        workers.append(self._thread(lambda: asyncio.run(self._work_async())))
        for each in workers:
            each.join()
        self._over.set()
        for each in background:
            each.join()

    def _thread(self, work: Callable[..., None], *args: Any) -> threading.Thread:
        def run() -> None:
            try:
                work(*args)
            except Exception:  # noqa: BLE001 - the test asserts that there was none
                self._tally.failures.append(traceback.format_exc())

        thread = threading.Thread(target=run, name="load")
        thread.start()
        return thread

    # The writer's region, and what happens to the link between the two.

    def _write(self) -> None:
        """Write; after a promotion go on at the new primary, with keys of its own."""
        number, prefix, reconnected, written_s = 0, uuid.uuid4().hex, False, time.monotonic()
        while not self._over.wait(WRITE_EVERY_S):
            if self._promoted.is_set() and not reconnected:
                self._store.reconnect()
                prefix, reconnected = uuid.uuid4().hex, True
            key = f"{prefix}-{number % KEYS}"
            try:
                with antipode.scope() as scope:
                    self._store.write(key, b"%d" % (number + 1))
                    write = next(iter(scope.lineage))
            except Exception:
                # A store under faults refuses now and then, but not for ever.
                if time.monotonic() - written_s > SILENT_S:
                    raise
                continue
            written_s = time.monotonic()
            number += 1
            with self._lock:
                self._recent.append(Written(key, number, write))
            self._first.set()

    def _disturb(self) -> None:
        """Delay, hold and cut replication, and take the reader's server away; promote once."""
        chance = random.Random(self._seed)
        topology = self._store.topology
        while not self._over.wait(chance.uniform(0.05, 0.2)):
            promote = self._subject.promotes and self._begun > PROMOTE_AT * self._barriers
            if promote and not self._promoted.is_set():
                topology.failover(lose_unreplicated=True)
                self._promoted.set()
                continue
            topology.set_lag(chance.uniform(0, MOST_LAG_MS))
            with self._fault(chance.choice(self._subject.faults)):
                self._over.wait(chance.uniform(0.02, 0.15))

    @contextmanager
    def _fault(self, kind: str) -> Iterator[None]:
        topology = self._store.topology
        if kind == "gone":
            with self._store.unreachable():
                yield
        elif kind == "held":
            topology.pause()
            yield
            topology.resume()
        elif kind == "cut":
            topology.cut()
            yield
            topology.heal()
            self._over.wait(self._subject.back_s)
        else:
            yield

    # The reader's region.

    def _begin(self) -> bool:
        """Whether there is another barrier to begin."""
        with self._lock:
            self._begun += 1
            return self._begun <= self._barriers

    def _pick(self, chance: random.Random) -> tuple[Lineage, float, list[Written]]:
        """What a barrier is about, and its timeout in seconds."""
        with self._lock:
            picked = chance.sample(tuple(self._recent), min(len(self._recent), 3))
        timeout_s = chance.choice((0.001, 0.005, 0.02, 0.1, 0.3)) * chance.uniform(0.5, 1.5)
        return Lineage(each.write for each in picked), timeout_s, picked

    def _work(self, seed: int) -> None:
        """Barriers of one thread: most block, some are callbacks, some of those are cancelled."""
        chance = random.Random(seed)
        assert self._first.wait(2 * SILENT_S), "nothing was ever written"
        while self._begin():
            lineage, timeout_s, picked = self._pick(chance)
            deadline = Deadline(self._stalls, timeout_s)
            face = "callback" if chance.random() < 0.05 else "blocking"
            if face == "callback":
                cancel = chance.random() < 0.5
                result = self._call_back(lineage, timeout_s, deadline, cancel=cancel)
            else:
                try:
                    result = antipode.barrier(lineage, timeout=timeout_s)
                except UnmetError as error:
                    result = error.result
            over_s = deadline.passed_s()
            if result is None:
                self._tally.end("cancelled", face=face)
            else:
                self._judge(result, face, over_s, picked)

    def _call_back(
        self, lineage: Lineage, timeout_s: float, deadline: Deadline, *, cancel: bool
    ) -> BarrierResult | None:
        results: list[BarrierResult] = []
        done = threading.Event()

        def callback(result: BarrierResult) -> None:
            deadline.join()
            results.append(result)
            done.set()

        handle = antipode.barrier_callback(callback, lineage, timeout=timeout_s)
        if cancel:
            handle.cancel()
            return None
        assert done.wait(timeout_s + 10), "a callback was never called"
        return results[0]

    async def _work_async(self) -> None:
        """Barriers of one event loop; one in five is cancelled. No task is left at the end."""
        assert await asyncio.to_thread(self._first.wait, 2 * SILENT_S), "nothing was ever written"
        await asyncio.gather(*(self._task(random.Random(-index)) for index in range(TASKS)))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    async def _task(self, chance: random.Random) -> None:
        while self._begin():
            lineage, timeout_s, picked = self._pick(chance)
            deadline = Deadline(self._stalls, timeout_s)
            waiting = asyncio.ensure_future(
                antipode.barrier_async(lineage, timeout=timeout_s, on_unmet="return")
            )
            if chance.random() < 0.2:
                await asyncio.sleep(timeout_s * chance.random())
                waiting.cancel()
            try:
                result = await waiting
            except asyncio.CancelledError:
                self._tally.end("cancelled", face="asyncio")
                continue
            over_s = deadline.passed_s()
            await asyncio.to_thread(self._judge, result, "asyncio", over_s, picked)

    def _judge(
        self, result: BarrierResult, face: str, over_s: float, picked: list[Written]
    ) -> None:
        """A barrier that passed promised that the reader's server shows its writes."""
        if not result.ok:
            worst = min(outcome.status.name for outcome in result.unmet)
            self._tally.end(worst.lower(), face=face, over_s=over_s)
            return
        self._tally.end(Status.VISIBLE.name.lower(), face=face, over_s=over_s)
        promised = max(picked, key=lambda each: each.number)
        shown = self._subject.shown(promised.key)
        if shown < promised.number:
            self._tally.early.append(f"{promised} passed, and {shown} was shown")
