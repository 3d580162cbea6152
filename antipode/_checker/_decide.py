"""The verdict on a history. Pure, but for what the meter reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from ._limits import ExhaustedError
from ._order import NOTHING, Component, Index, Reading, circular, schedule, waits
from ._views import Clocks, Conflict, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._limits import Meter


class Verdict(Enum):
    """What is known of a history."""

    OK = "ok"
    VIOLATION = "violation"
    UNKNOWN = "unknown"


class Knot(NamedTuple):
    """Operations, and ends of lineages, that all come before each other."""

    vertices: tuple[int, ...]


@dataclass(slots=True)
class Judgement:
    """What one reading says of one component.

    Attributes:
        conflicts: why it is violated; any of them is enough.
        mutual: ends of lineages that come before themselves, so that no order respects them.
        exhausted: why it was not decided; empty where it was.
        waits: what each operation followed, without what mutual lineages ask for.
    """

    reading: Reading
    waits: list[int]
    conflicts: Sequence[Conflict | Knot] = ()
    mutual: list[Knot] = field(default_factory=list)
    exhausted: str = ""

    @property
    def verdict(self) -> Verdict:
        """In one word."""
        if self.conflicts:
            return Verdict.VIOLATION
        return Verdict.UNKNOWN if self.mutual or self.exhausted else Verdict.OK


class Judge:
    """Judges the components of a history by one reading.

    The versions of each key are unique, and no read returned what nobody wrote.
    """

    def __init__(self, index: Index, reading: Reading, meter: Meter) -> None:
        self._index, self._reading, self._meter = index, reading, meter
        self._clocks = Clocks(index, waits(index, reading))

    def judge(self, component: Component) -> Judgement:
        """What the reading says of *component*."""
        clocks, index = self._clocks, self._index
        found = Judgement(self._reading, clocks.waits)
        order, held = schedule(index, component.operations, clocks.waits)
        if held:
            knots = circular(index, held, clocks.waits)
            found.mutual = self._excuse(component, knots)
            if found.mutual:
                order, held = schedule(index, component.operations, clocks.waits)
                knots = circular(index, held, clocks.waits)
            if held:
                found.conflicts = [Knot(tuple(knot)) for knot in knots]
                return found
        clocks.follow(component, order, self._meter)
        found.conflicts, found.exhausted = self._views(component)
        return found

    def _excuse(self, component: Component, knots: list[list[int]]) -> list[Knot]:
        """Let reads of mutual lineages follow what they read alone; those lineages."""
        waits, source = self._clocks.waits, self._index.source
        ends = {vertex for knot in knots for vertex in knot if vertex >= self._index.total}
        for i in component.operations:
            if waits[i] in ends:
                waits[i] = source[i]
        return [Knot(tuple(knot)) for knot in knots if not ends.isdisjoint(knot)]

    def _views(self, component: Component) -> tuple[list[Conflict], str]:
        """Contradictions in what the processes saw, and why not all was decided."""
        index = self._index
        reads: dict[int, list[int]] = {}
        for i in component.operations:
            if index.key[i] != NOTHING and index.operations[i].kind == "read":
                reads.setdefault(index.process[i], []).append(i)
        found: list[Conflict] = []
        hard: list[View] = []
        for number, one in enumerate(reads.values()):
            view = View(self._clocks, one)
            if view.plain(found):
                hard.append(view)
            self._meter.passed("processes checked", number + 1, len(reads))
        exhausted = ""
        for number, view in enumerate(hard if not found else ()):
            try:
                conflict = view.saturate(self._meter)
            except ExhaustedError as error:
                exhausted = str(error)
                break
            if conflict:
                return [conflict], ""
            self._meter.passed("serializations sought", number + 1, len(hard))
        return found, exhausted
