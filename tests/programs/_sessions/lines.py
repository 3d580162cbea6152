"""One line for each client: steps, lost, early, broken, alarms, and what shows the faults again."""

from __future__ import annotations

import logging
import time
import warnings
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from antipode.shim import unregister
from tests.programs._line import Line

from .bench import DATASTORE
from .play import play, program, shrunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .bench import Bench
    from .play import Step

#: Steps of one session.
LENGTH = 25


def sessions(make: Callable[[], Bench], steps: int, seed: int) -> Line:
    """Play sessions of one client until they had so many steps."""
    unregister(DATASTORE)  # What another program left in this process.
    faults = Counter(lost=0, early=0, broken=0)
    began, notes = time.monotonic(), []
    with _quiet(), make() as bench:
        notes += [f"left out: {kind}: {why}" for kind, why in bench.known.items()]
        for number, length in _lengths(steps):
            session = program(bench, seed + number, length)
            found = play(bench, seed + number, session)
            if found is not None:
                faults[found.kind] += 1
                notes += [f"seed {seed + number}: {found}"]
                if faults[found.kind] == 1:
                    notes += _shortest(bench, seed + number, session, found.kind)
        alarms = Counter(bench.alarms)
    unregister(DATASTORE)  # Also what connections that were ended left.
    if alarms.total():
        notes.append(f"alarms: {dict(alarms.most_common(5))}")
    return Line(steps, faults, time.monotonic() - began, alarms.total(), seed, tuple(notes))


@contextmanager
def _quiet() -> Iterator[None]:
    """Nothing is said of what is meant here."""
    loggers = [logging.getLogger(name) for name in ("antipode", "psycopg", "asyncpg")]
    levels = [each.level for each in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each in loggers:
            each.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            for each, level in zip(loggers, levels, strict=True):
                each.setLevel(level)


def _lengths(steps: int) -> Iterator[tuple[int, int]]:
    """The number of each session, and its length."""
    for number, done in enumerate(range(0, steps, LENGTH)):
        yield number, min(LENGTH, steps - done)


def _shortest(bench: Bench, seed: int, session: list[Step], kind: str) -> Iterator[str]:
    """What the shortest session that shows the fault has sent; or this one, if it comes no more."""
    sent, alarms = list(bench.trace), bench.alarms.copy()
    steps = shrunk(bench, seed, session, kind)
    shown = play(bench, seed, steps)
    bench.alarms.clear()
    bench.alarms.update(alarms)
    if shown is None:
        yield "  not shown again: it depends on the moment"
    else:
        yield f"  steps: {', '.join(step.kind for step in steps)}"
    yield from (f"  {line}" for line in (sent if shown is None else bench.trace))
