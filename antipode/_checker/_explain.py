"""Why a reading is violated: the smallest cycle of what must come before what."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._decide import Judge, Judgement, Knot
from ._draw import svg
from ._evidence import Edge, Evidence, Rule
from ._history import History
from ._limits import Meter
from ._order import NOTHING, Index, waits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ._views import Conflict, Step

#: How many contradictions are compared for their size.
_CANDIDATES = 8


@dataclass(frozen=True, slots=True)
class Explanation(Evidence):
    """Evidence that can be drawn.

    Attributes:
        operations: in the order of the history.
        cycle: each edge begins where the one before it ends, and the first where the last one
            ends. Empty where a read returned what nobody wrote.
        process: whose serialization cannot exist; empty where the order itself is a cycle.
    """

    def svg(self) -> str:
        """A picture of it."""
        return svg(self)


def explain(index: Index, judgement: Judgement) -> Explanation:
    """Why *judgement* is not ``ok``."""
    part = _Part(index, judgement)
    chosen = part.shrunk(part.closed(_cycle(index, judgement)))
    small, found = part.judged(chosen)
    if found is None:
        raise AssertionError("a history has a verdict that its explanation has not")
    numbers = {old: new for new, old in enumerate(sorted(chosen))}
    cycle = _cycle(small, found)
    process = ""
    if found.conflicts and not isinstance(first := found.conflicts[0], Knot):
        process = small.operations[first.last.read].process
    return Explanation(tuple(index.operations[old] for old in numbers), cycle, process)


class _Part:
    """Some operations of a history, judged alone as they were among all others."""

    def __init__(self, index: Index, judgement: Judgement) -> None:
        self._index, self._judgement = index, judgement
        ends = {vertex for knot in judgement.mutual for vertex in knot.vertices}
        excused = ends if judgement.conflicts else ()
        self._excused = {end - index.total for end in excused if end >= index.total}

    def closed(self, cycle: Sequence[Edge]) -> set[int]:
        """The operations of *cycle*, and what its reads and receives need."""
        index = self._index
        found: set[int] = set()
        left = list(cycle)
        while left:
            edge = left.pop()
            left += edge.because
            found.update(edge[:2])
        for i in tuple(found):
            found.update(one for one in (index.source[i], index.sent.get(i, -1)) if one >= 0)
        return found

    def shrunk(self, chosen: Collection[int]) -> list[int]:
        """*chosen* without all that can be left out."""
        index, left = self._index, sorted(chosen)
        for one in reversed(left):
            # Without a write there are no reads of it, without a send no receives.
            fewer = [i for i in left if one not in (i, index.source[i], index.sent.get(i, NOTHING))]
            if len(fewer) < len(left) and self._fails(fewer):
                left = fewer
        return left

    def _fails(self, chosen: Sequence[int]) -> bool:
        return self.judged(chosen)[1] is not None

    def judged(self, chosen: Sequence[int]) -> tuple[Index, Judgement | None]:
        """*chosen* as a history, and the judgement of a part that still fails; None where none."""
        index = self._index
        operations = []
        for i in chosen:
            one = index.operations[i]
            operations.append(one._replace(lineage=None) if self._lone(i) else one)
        initial = {
            one.subject: one.version
            for i, one in zip(chosen, operations, strict=True)
            if index.source[i] == NOTHING and one.kind == "read" and one.version is not None
        }
        small = Index(History(tuple(operations), initial))
        judge = Judge(small, self._judgement.reading, Meter())
        found = [judge.judge(one) for one in small.components]
        wanted = self._judgement.verdict
        return small, next((one for one in found if one.verdict is wanted), None)

    def _lone(self, i: int) -> bool:
        """Whether the lineage of an operation is mutual, so that it stands for nothing."""
        return self._index.lineage[i] in self._excused


def _cycle(index: Index, judgement: Judgement) -> tuple[Edge, ...]:
    """The smallest cycle of those that *judgement* names, or of some of them if they are many."""
    failed = bool(judgement.conflicts)
    # Mutual lineages are on cycles only while their reads follow their ends.
    graph = _Graph(index, judgement.waits if failed else waits(index, judgement.reading))
    found: list[tuple[Edge, ...]] = []
    for one in sorted(judgement.conflicts or judgement.mutual, key=_span)[:_CANDIDATES]:
        found += graph.loops(one) if isinstance(one, Knot) else [graph.contradiction(one)]
    return min(found, key=_size)


def _span(one: Conflict | Knot) -> int:
    """How far apart the operations are in the history; of a knot how many there are."""
    if isinstance(one, Knot):
        return len(one.vertices)
    return abs(one.last.read - one.last.write)


def _size(edges: Sequence[Edge]) -> int:
    return sum(1 + _size(edge.because) for edge in edges)


class _Graph:
    """What comes directly before what, for searches by breadth."""

    def __init__(self, index: Index, waits: Sequence[int]) -> None:
        self._index, self._waits = index, waits
        self._later: defaultdict[int, list[int]] = defaultdict(list)
        for i, vertex in enumerate(waits):
            if vertex >= 0:
                self._later[vertex].append(i)
        self._of: defaultdict[int, list[int]] = defaultdict(list)
        for i, process in enumerate(index.process):
            self._of[process].append(i)

    def contradiction(self, conflict: Conflict) -> tuple[Edge, ...]:
        """From the write to the read that follows it, and back: the read returned another one."""
        write, source, read = conflict.last
        there = self._path(write, {read}, conflict.derived)
        if source == NOTHING:
            return (*there, Edge(read, write, Rule.INITIAL))
        older = self._path(source, {write}, conflict.derived)
        return (*there, Edge(read, write, Rule.OVERWRITTEN, older))

    def loops(self, knot: Knot) -> Iterator[tuple[Edge, ...]]:
        """Cycles of *knot*: each has a read in it that comes before what it returned."""
        index, vertices = self._index, set(knot.vertices)
        reads = [i for i in vertices if i < index.total and self._waits[i] in vertices]
        reads = [i for i in reads if index.source[i] >= 0]
        for read in sorted(reads)[:_CANDIDATES]:
            vertex = self._waits[read]
            end = vertex >= index.total
            goals = index.members[vertex - index.total] if end else [vertex]
            there = self._path(read, set(goals) - {read}, ())
            rule = self._rule(there[-1].later, read)
            yield (*there, Edge(there[-1].later, read, rule))

    def _rule(self, earlier: int, read: int) -> Rule:
        if read in self._index.sent:
            return Rule.MESSAGE
        return Rule.READS if self._index.source[read] == earlier else Rule.LINEAGE

    def _path(self, start: int, goals: set[int], derived: Sequence[Step]) -> tuple[Edge, ...]:
        """The shortest way from *start* to one of *goals*, by the order and *derived* steps."""
        came: dict[int, Edge | None] = {start: None}
        lowest: dict[int, int] = {}
        frontier = [start]
        while frontier and goals.isdisjoint(frontier):
            following: list[int] = []
            for one in frontier:
                for edge in self._edges(one, lowest, derived):
                    if edge.later not in came:
                        came[edge.later] = edge
                        following.append(edge.later)
            frontier = following
        path: list[Edge] = []
        last = came[min(goals.intersection(frontier))]
        while last is not None:
            path.insert(0, last)
            last = came[last.earlier]
        return tuple(self._reasoned(edge, derived) for edge in path)

    def _edges(self, one: int, lowest: dict[int, int], derived: Sequence[Step]) -> Iterator[Edge]:
        """What comes after *one* by one edge; of its process only what was not reached before."""
        index = self._index
        process, place = index.process[one], index.position[one]
        own = self._of[process]
        until = lowest.get(process, len(own))
        if place < until:
            lowest[process] = place
            yield from (Edge(one, later, Rule.ORDER) for later in own[place:until])
        for later in self._later[one]:
            yield Edge(one, later, self._rule(one, later))
        if index.lineage[one] >= 0:
            for later in self._later[index.total + index.lineage[one]]:
                yield Edge(one, later, self._rule(one, later))
        for step in derived:
            if step.write == one:
                yield Edge(one, step.source, Rule.SEEN)

    def _reasoned(self, edge: Edge, derived: Sequence[Step]) -> Edge:
        """*edge* with the reason that a derived step has, by the steps before it."""
        if edge.rule is not Rule.SEEN:
            return edge
        number = next(n for n, step in enumerate(derived) if step[:2] == edge[:2])
        return edge._replace(
            because=self._path(edge.earlier, {derived[number].read}, derived[:number])
        )
