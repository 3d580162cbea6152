"""What each process saw, and whether its writes and reads have a serialization.

With unique versions an execution has one exactly if no contradiction can be derived (Bouajjani,
Enea, Guerraoui and Hamza, POPL 2017, for causal memory): where a write comes before a read of
process p that returned another write of the key, p must have seen the first write before that
other one. This is derived until nothing changes. It is enough that p's reads are in one order.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from ._limits import EVERY
from ._order import NOTHING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._limits import Meter
    from ._order import Component, Index

#: Most contradictions of plain causality that are kept of one component.
MOST = 256


class Step(NamedTuple):
    """What a process must have seen: *write* before *source*, as *read* follows *write*.

    *source* is what *read* returned; :data:`NOTHING` where that is the initial version, so that
    the step alone is a contradiction.
    """

    write: int
    source: int
    read: int


class Conflict(NamedTuple):
    """Why the process that did the read of *last* has no serialization.

    The source of *last* comes before its write, by the order and *derived* steps.
    """

    derived: tuple[Step, ...]
    last: Step


class Clocks:
    """For each vertex of a reading, how many operations of each process come before it.

    Attributes:
        waits: what each operation follows, see :mod:`._order`.
        rank: the place of each operation in an order that respects the reading.
        rows: of each vertex the count for each process of its component. Operations share a row
            until they learn more. The entry of an operation's own process means nothing.
    """

    def __init__(self, index: Index, waits: list[int]) -> None:
        self.index = index
        self.waits = waits
        self.rank = array("q", bytes(8 * index.total))
        self.rows: list[list[int]] = [[]] * (index.total + len(index.members))

    def follow(self, component: Component, order: Sequence[int], meter: Meter) -> None:
        """Fill in the vertices of *order*."""
        index, rows, waits = self.index, self.rows, self.waits
        total, process, position, columns = index.total, index.process, index.position, index.column
        most = len(component.operations)
        latest = [[0] * component.width] * component.width
        for rank, vertex in enumerate(order):
            if vertex >= total:
                rows[vertex] = self._end(vertex - total, component.width)
                continue
            column = columns[process[vertex]]
            row, before = latest[column], waits[vertex]
            if before >= total:
                known = merged(row, rows[before])
                if known != row:
                    row = latest[column] = known
            elif before >= 0:
                other, place = columns[process[before]], position[before]
                # What is known already brings nothing else.
                if other != column and row[other] < place:
                    row = latest[column] = merged(row, rows[before])
                    row[other] = place
            rows[vertex] = row
            self.rank[vertex] = rank
            if not rank % EVERY:
                meter.passed("operations ordered", min(rank, most), most)

    def _end(self, lineage: int, width: int) -> list[int]:
        index = self.index
        row = [0] * width
        for last in {index.process[i]: i for i in index.members[lineage]}.values():
            row = self.until(last, row)
        return row

    def until(self, vertex: int, row: list[int]) -> list[int]:
        """*row* and what comes before *vertex*, and itself."""
        column = self.index.column[self.index.process[vertex]]
        row = merged(row, self.rows[vertex])
        row[column] = max(row[column], self.index.position[vertex])
        return row

    def before(self, earlier: int, later: int) -> bool:
        """Whether *earlier* comes before *later*."""
        index = self.index
        if index.process[earlier] == index.process[later]:
            return index.position[earlier] < index.position[later]
        column = index.column[index.process[earlier]]
        return self.rows[later][column] >= index.position[earlier]


def merged(one: list[int], other: list[int]) -> list[int]:
    """The larger of each two."""
    # Three times as fast as max().
    return [a if a > b else b for a, b in zip(one, other, strict=True)]  # noqa: FURB136


class View:
    """The reads of one process, and how much of each process it has seen at each of them.

    Writes that it must have seen before others are in its rows as they are derived.
    """

    def __init__(self, clocks: Clocks, reads: list[int]) -> None:
        index = clocks.index
        self.clocks, self.index, self.reads = clocks, index, reads
        self._column = index.column[index.process[reads[0]]]
        self._places = [index.position[i] for i in reads]
        self._rows = [clocks.rows[i] for i in reads]
        # Of each read the writes that neither come before its source nor are first seen sooner.
        self._open: dict[int, list[int]] = {}

    def plain(self, found: list[Conflict]) -> bool:
        """Add contradictions of plain causality to *found*: a read of what was overwritten.

        Returns:
            Whether more may be derived. Where not, a serialization exists: no write has to be
            seen at an earlier read than it is, and the ranks are an order that respects all.
        """
        rank, hard = self.clocks.rank, False
        for number in range(len(self.reads)):
            conflict = self._judge(number)
            if conflict and len(found) < MOST:
                found.append(Conflict((), conflict))
            source = self._source(number)
            for write in self._open.get(number, ()):
                hard = (
                    hard or rank[write] > rank[source] or self._first(write) > self._first(source)
                )
        return hard

    def saturate(self, meter: Meter) -> Conflict | None:
        """Derive what this process must have seen, until nothing changes: a contradiction, or None.

        A write that must come before another is seen where that one is, and all before it with it.
        """
        derived: list[Step] = []
        firsts: defaultdict[int, list[int]] = defaultdict(list)
        for number in range(len(self.reads)):
            if self._source(number) != NOTHING:
                firsts[self._first(self._source(number))].append(number)
        left = set(self._open)
        while left:
            for number in sorted(left, reverse=True):
                left.discard(number)
                meter.spend(len(self.index.writers[self.index.key[self.reads[number]]]))
                conflict = self._judge(number)
                if conflict:
                    return Conflict(tuple(derived), conflict)
                for write in self._open.get(number, ()):
                    step = Step(write, self._source(number), self.reads[number])
                    first, now = self._first(step.source), self._first(write)
                    if now <= first:
                        continue
                    if self.clocks.before(self.reads[first], write):
                        return Conflict(tuple(derived), step)
                    derived.append(step)
                    left |= self._show(write, range(first, now), firsts, meter)
        return self._circular(derived, meter)

    def _show(
        self, write: int, numbers: range, firsts: defaultdict[int, list[int]], meter: Meter
    ) -> set[int]:
        """Let reads see *write* and all before it; the reads of which more may be derived now.

        Args:
            write: what is seen sooner.
            numbers: the reads that see it from now on.
            firsts: by the read that first saw what a read returned, those reads.
            meter: pays for it.
        """
        changed = set(numbers)
        for number in numbers:
            self._rows[number] = self.clocks.until(write, self._rows[number])
        for old in range(numbers.start + 1, numbers.stop + 1):
            for number in firsts.pop(old, ()):
                first = self._first(self._source(number))
                firsts[first].append(number)
                if first != old:
                    changed.add(number)
        meter.spend(len(changed))
        return changed

    def _judge(self, number: int) -> Step | None:
        """Note what a read demands of writes; a step that cannot be, or None."""
        read, source, first = self.reads[number], self._source(number), None
        opened = []
        for write in self._unordered(number, source):
            if source == NOTHING or self.clocks.before(source, write):
                return Step(write, source, read)
            first = self._first(source) if first is None else first
            if not (first and self._sees(first - 1, write)):
                opened.append(write)
        if opened:
            self._open[number] = opened
        else:
            self._open.pop(number, None)
        return None

    def _unordered(self, number: int, source: int) -> list[int]:
        """Of each process the last write of the key that a read sees, if not before *source*."""
        row, place, own = self._rows[number], self._places[number], self._column
        column_of, until, here = NOTHING, row, 0
        if source != NOTHING:
            column_of = self.index.column[self.index.process[source]]
            until, here = self.clocks.rows[source], self.index.position[source]
        found = []
        for column, positions, writes in self.index.writers[self.index.key[self.reads[number]]]:
            known = place if column == own else row[column]
            before = here if column == column_of else until[column]
            if source != NOTHING and before >= known:
                continue
            at = bisect_right(positions, known) - 1
            if at >= 0 and (source == NOTHING or positions[at] > before):
                found.append(writes[at])
        return found

    def _source(self, number: int) -> int:
        return self.index.source[self.reads[number]]

    def _sees(self, number: int, write: int) -> bool:
        """Whether a read sees *write*."""
        column = self.index.column[self.index.process[write]]
        known = self._places[number] if column == self._column else self._rows[number][column]
        return known >= self.index.position[write]

    def _first(self, write: int) -> int:
        """The first read that sees *write*; the number of reads where none does."""
        column = self.index.column[self.index.process[write]]
        place = self.index.position[write]
        if column == self._column:
            return bisect_left(self._places, place)
        return bisect_left(self._rows, place, key=itemgetter(column))

    def _circular(self, derived: list[Step], meter: Meter) -> Conflict | None:
        """A cycle of steps between writes that are first seen at one read, or None.

        No cycle leaves the writes of one read: what comes before is seen at it, or sooner.
        """
        groups: defaultdict[int, list[Step]] = defaultdict(list)
        for number, writes in sorted(self._open.items()):
            source = self._source(number)
            first = self._first(source)
            for write in writes:
                if self._first(write) == first:
                    groups[first].append(Step(write, source, self.reads[number]))
        rank = self.clocks.rank
        for steps in groups.values():
            if any(rank[step.write] > rank[step.source] for step in steps):
                last = _on_cycle(self.clocks, steps, meter)
                if last:
                    return Conflict((*derived, *(one for one in steps if one != last)), last)
        return None


def _on_cycle(clocks: Clocks, steps: list[Step], meter: Meter) -> Step | None:
    """A step that is on a cycle of *steps* and the order, or None."""
    index = clocks.index
    columns: defaultdict[int, list[int]] = defaultdict(list)
    for write in {write for step in steps for write in step[:2]}:
        columns[index.column[index.process[write]]].append(write)
    earlier: dict[int, dict[int, Step | None]] = {}
    for writes in columns.values():
        writes.sort()
        for before, write in zip((None, *writes), writes, strict=False):
            earlier[write] = {} if before is None else {before: None}
    for write, sooner in earlier.items():
        meter.spend(len(columns))
        own = index.column[index.process[write]]
        for column, writes in columns.items():
            known = 0 if column == own else clocks.rows[write][column]
            place = bisect_right(writes, known, key=index.position.__getitem__)
            if place:
                sooner[writes[place - 1]] = None
    for step in steps:
        earlier[step.source][step.write] = step
    return _walk(earlier)


def _walk(earlier: dict[int, dict[int, Step | None]]) -> Step | None:
    """A step on a cycle of *earlier*, which has what comes before each vertex; None without one."""
    left = _peeled(earlier)
    if not left:
        return None
    # Backwards from anywhere one comes to a cycle, and then once round it.
    vertex, met = min(left), set[int]()
    while vertex not in met:
        met.add(vertex)
        vertex = next(one for one in earlier[vertex] if one in left)
    for _ in met:
        before = next(one for one in earlier[vertex] if one in left)
        if step := earlier[vertex][before]:
            return step
        vertex = before
    return None


def _peeled(earlier: dict[int, dict[int, Step | None]]) -> set[int]:
    """What remains when vertices that nothing comes before are taken away, again and again."""
    later: defaultdict[int, list[int]] = defaultdict(list)
    for vertex, before in earlier.items():
        for one in before:
            later[one].append(vertex)
    left = {vertex: len(before) for vertex, before in earlier.items()}
    free = [vertex for vertex, count in left.items() if not count]
    while free:
        vertex = free.pop()
        del left[vertex]
        for one in later[vertex]:
            left[one] -= 1
            if not left[one]:
                free.append(one)
    return set(left)
