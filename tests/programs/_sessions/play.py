"""Plays random sessions, and judges each step by the rows: lost, early, or an alarm."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import antipode
from antipode_testing import wait_until

from .bench import OFTEN, Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .bench import Bench

#: The kind of step that begins the next request: another scope over the same connection.
NEXT = "next_request"
#: What ends a request, as if it were a step.
END = "settle"
#: Within this time a barrier succeeds once the replica shows everything.
LEVEL_S = 5.0


@dataclass(frozen=True, slots=True)
class Step:
    """A kind of step, and what its own choices are drawn from."""

    kind: str
    seed: int


def program(bench: Bench, seed: int, length: int) -> list[Step]:
    """The steps of one session."""
    choose = random.Random(seed)
    kinds = {NEXT: OFTEN, **bench.kinds}
    drawn = choose.choices(list(kinds), list(kinds.values()), k=length)
    return [Step(kind, choose.getrandbits(32)) for kind in drawn]


def play(bench: Bench, seed: int, steps: Sequence[Step]) -> Fault | None:
    """Play one session; the first fault, after which it ends."""
    bench.trace.clear()
    bench.open(random.Random(seed))
    try:
        for request in _requests(steps):
            _play_request(bench, request)
    except Fault as fault:
        return fault
    finally:
        bench.close()
    return None


def _requests(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """The steps of each request."""
    request: list[Step] = []
    for step in steps:
        if step.kind == NEXT:
            yield request
            request = []
        else:
            request.append(step)
    yield request


def _play_request(bench: Bench, steps: Sequence[Step]) -> None:
    """One request in a scope of its own, while the replica shows nothing of it."""
    bench.trace.append("-- request")
    bench.hold()
    try:
        with antipode.scope() as scope:
            judge = Judge(bench, scope)
            for step in steps:
                _take(bench, step)
                judge.after(step.kind)
            bench.settle()
            judge.after(END)
            lineage = scope.lineage
    finally:
        bench.release()
        # An asynchronous commit is sent when it is flushed, which nothing waits for.
        wait_until(
            lambda: bench.shown() == bench.committed(),
            timeout_s=LEVEL_S,
            what="the replica to show everything",
        )
    _waits_for_nothing(bench, lineage)


def _take(bench: Bench, step: Step) -> None:
    """Do what the step does; what its client raises is part of it."""
    try:
        bench.run(getattr(bench, step.kind)(random.Random(step.seed)))
    except Fault:
        raise
    except (*bench.refusals, antipode.AntipodeError) as error:
        bench.trace.append(f"-- {type(error).__name__}: {str(error).splitlines()[:1]}")
    except Exception as error:
        raise Fault("broken", f"{type(error).__name__} in {step.kind}: {error}") from error


def _waits_for_nothing(bench: Bench, lineage: antipode.Lineage) -> None:
    """Count a wait for what the replica shows already."""
    if not lineage.incomplete:
        waited = antipode.barrier(lineage, timeout=LEVEL_S, on_unmet="return")
        bench.alarms["level"] += not waited.ok


class Judge:
    """What a request has committed, beside what its lineage says."""

    def __init__(self, bench: Bench, scope: Any) -> None:
        self._bench, self._scope = bench, scope
        self._committed = bench.committed()
        self._said = self._says()

    def _says(self) -> frozenset[Any]:
        lineage = self._scope.lineage
        return frozenset(lineage) | frozenset(lineage.incomplete)

    def after(self, kind: str) -> None:
        """Compare the two after a step.

        Raises:
            Fault: a write was lost, or a barrier would succeed early.
        """
        committed = self._bench.committed()
        changed = committed != self._committed
        if self._bench.asks_when_used and not changed and kind != END:
            return
        said = self._says()
        spoke = said != self._said
        self._committed, self._said = committed, said
        lineage = self._scope.lineage
        if changed and not spoke and not lineage.incomplete:
            raise Fault("lost", f"{kind} committed, and nothing entered the lineage")
        if spoke and not changed:
            self._bench.alarms[kind] += 1
        if antipode.check(lineage).ok and self._bench.shown() != committed:
            raise Fault("early", f"after {kind} a barrier succeeds, and the replica does not show")


def shrunk(bench: Bench, seed: int, steps: list[Step], kind: str) -> list[Step]:
    """The fewest *steps* that show the same fault, where it comes each time."""

    def shows(fewer: list[Step]) -> bool:
        found = play(bench, seed, fewer)
        return found is not None and found.kind == kind

    before: list[Step] = []
    while steps != before:  # What is dropped late may have been what others were needed for.
        before = steps
        for index in reversed(range(len(steps))):
            fewer = steps[:index] + steps[index + 1 :]
            if shows(fewer):
                steps = fewer
    return steps
