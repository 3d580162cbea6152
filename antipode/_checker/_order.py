"""What comes before what: the order that each reading of the definition imposes.

An operation follows the one before it in its process, and at most one vertex more: a receive its
send, a read what it read from. So a reading is one list, ``waits``: for each operation that other
vertex. A vertex is an operation, or the end of a lineage, which comes after all operations of the
lineage: one vertex stands for as many edges as the lineage is long.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, Any

from ._history import READ, RECEIVE, SEND, WRITE, refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ._history import History, Operation

NOTHING = -1  # No vertex. As the source of a read: the initial version.
THIN_AIR = -2  # The source of a read that returned what nobody wrote.


class Reading(Enum):
    """How much of the definition is asked for; each reading asks for all before it, and more."""

    #: A read follows the write that it returns: causal memory, which knows of no messages.
    MEMORY = "memory"
    #: And a receive follows its send: what happened before that write in its lineage counts.
    PREFIX = "prefix"
    #: And a read follows the whole lineage of that write: rule 2 to the letter.
    WHOLE_LINEAGE = "whole lineage"


class _Numbers(dict[Any, int]):
    """Numbers for names, from 0 on."""

    def __missing__(self, name: Any) -> int:  # noqa: ANN401 - names are texts, pairs or triples
        self[name] = number = len(self)
        return number


class Index:
    """A history by numbers. Operations have those of their places in the history.

    Attributes:
        process, position, key, source, lineage: of each operation; its position in its process
            counts from 1. A message has no key; only a read has a source.
        sent: of each receive its send.
        members: the operations of each lineage.
        duplicates: pairs of writes of the same version; the first may be the initial one.
        components: parts that nothing connects.
        column: the number of each process among those of its component.
        writers: of each key, for each process that wrote it, its column, positions and writes.

    Raises:
        HistoryError: a message is sent twice, never, or after it was received.
    """

    def __init__(self, history: History) -> None:
        self.operations = history.operations
        self.process: list[int] = []
        self.position: list[int] = []
        self.key: list[int] = []
        self.source: list[int] = []
        self.lineage: list[int] = []
        self.sent: dict[int, int] = {}
        self.members: list[list[int]] = []
        self.duplicates: list[tuple[int, int]] = []
        self._processes, self._keys, self._lineages = _Numbers(), _Numbers(), _Numbers()
        written = self._number(history)
        self._sources(history, written)
        self._messages()
        self.column, self.components = self._components()
        self.writers = self._writers()

    @property
    def total(self) -> int:
        """The number of operations; the end of lineage 0 is the first vertex after them."""
        return len(self.operations)

    def _number(self, history: History) -> dict[tuple[int, str], int]:
        """Number everything; the write of each version of each key."""
        written = {(self._keys[key], version): NOTHING for key, version in history.initial.items()}
        counts: list[int] = []
        for i, one in enumerate(self.operations):
            process = self._processes[one.process]
            if process == len(counts):
                counts.append(0)
            counts[process] += 1
            self.process.append(process)
            self.position.append(counts[process])
            self.lineage.append(self._member(i, one))
            about = one.kind in (READ, WRITE)
            self.key.append(self._keys[one.datastore, one.key] if about else NOTHING)
            if one.kind == WRITE and one.version is not None:
                first = written.setdefault((self.key[i], one.version), i)
                if first != i:
                    self.duplicates.append((first, i))
        return written

    def _member(self, i: int, one: Operation) -> int:
        if one.lineage is None:
            return NOTHING
        lineage = self._lineages[one.lineage]
        if lineage == len(self.members):
            self.members.append([])
        self.members[lineage].append(i)
        return lineage

    def _sources(self, history: History, written: dict[tuple[int, str], int]) -> None:
        """What each read returned."""
        for i, one in enumerate(self.operations):
            source = NOTHING
            if one.kind == READ and one.version is not None:
                source = written.get((self.key[i], one.version), THIN_AIR)
            elif one.kind == READ and one.subject in history.initial:
                source = THIN_AIR
            self.source.append(source)

    def _messages(self) -> None:
        """The send of each receive; refuse what cannot have happened."""
        sends: dict[str, int] = {}
        for i, one in enumerate(self.operations):
            if one.kind == SEND and sends.setdefault(one.message, i) != i:
                first = self.operations[sends[one.message]]
                said = f"message {one.message!r} was sent before, at {first.where or first.process}"
                raise refused(one, said)
        for i, one in enumerate(self.operations):
            if one.kind == RECEIVE:
                if one.message not in sends:
                    raise refused(one, f"message {one.message!r} was never sent")
                self.sent[i] = sends[one.message]
        if any(send > i for i, send in self.sent.items()):
            waits = [self.sent.get(i, NOTHING) for i in range(self.total)]
            _, held = schedule(self, range(self.total), waits)
            for queue in held.values():
                one = self.operations[queue[0]]
                sender = self.operations[self.sent[queue[0]]]
                said = f"message {one.message!r} was received before it can have been sent"
                raise refused(one, f"{said}, at {sender.where or sender.process}")

    def _components(self) -> tuple[list[int], list[Component]]:
        """Join the processes that a key, a message or a lineage connects."""
        parent = list(range(len(self._processes)))

        def root(process: int) -> int:
            while parent[process] != process:
                parent[process] = process = parent[parent[process]]
            return process

        first: dict[tuple[str, int], int] = {}
        for i, process in enumerate(self.process):
            for name in ("key", self.key[i]), ("lineage", self.lineage[i]):
                if name[1] >= 0:
                    parent[root(process)] = root(first.setdefault(name, process))
            if i in self.sent:
                parent[root(process)] = root(self.process[self.sent[i]])
        found: dict[int, Component] = {}
        column = []
        for process in range(len(parent)):
            component = found.setdefault(root(process), Component())
            column.append(component.width)
            component.width += 1
        for i, process in enumerate(self.process):
            found[root(process)].operations.append(i)
        return column, list(found.values())

    def _writers(self) -> list[list[tuple[int, list[int], list[int]]]]:
        places: list[dict[int, tuple[int, list[int], list[int]]]] = [{} for _ in self._keys]
        for i, one in enumerate(self.operations):
            if one.kind == WRITE:
                column = self.column[self.process[i]]
                _, positions, writes = places[self.key[i]].setdefault(column, (column, [], []))
                positions.append(self.position[i])
                writes.append(i)
        return [list(one.values()) for one in places]


class Component:
    """A part of a history that nothing connects to the others: it is judged alone.

    Attributes:
        operations: in the order of the history.
        width: the number of processes.
    """

    def __init__(self) -> None:
        self.operations: list[int] = []
        self.width = 0


def waits(index: Index, reading: Reading) -> list[int]:
    """The vertex that each operation follows besides the one before it in its process."""
    found = [max(source, NOTHING) for source in index.source]
    if reading is not Reading.MEMORY:
        for receive, send in index.sent.items():
            found[receive] = send
    if reading is Reading.WHOLE_LINEAGE:
        for i, source in enumerate(index.source):
            lineage = index.lineage[source] if source >= 0 else NOTHING
            # The lineage of the read is excepted: nothing in it could follow such a read.
            if lineage not in (NOTHING, index.lineage[i]):
                found[i] = index.total + lineage
    return found


def schedule(
    index: Index, operations: Sequence[int], waits: Sequence[int]
) -> tuple[list[int], dict[int, deque[int]]]:
    """An order of all vertices that respects *waits*, as close to the history's as can be.

    Returns:
        The order, and what each process could not do because of a cycle.
    """
    found = _Schedule(index, operations, waits)
    for i in operations:
        found.take(i)
    return found.order, found.held


class _Schedule:
    """Does operations one by one; those that must wait are held, with what follows them."""

    def __init__(self, index: Index, operations: Sequence[int], waits: Sequence[int]) -> None:
        self.order: list[int] = []
        self.held: dict[int, deque[int]] = {}
        self._total, self._process, self._lineage = index.total, index.process, index.lineage
        self._waits = waits
        ends = {waits[i] for i in operations if waits[i] >= index.total}
        self._left = {end: len(index.members[end - index.total]) for end in ends}
        self._done: set[int] = set()
        self._waiting: dict[int, list[int]] = {}
        self._ready: list[int] = []

    def take(self, i: int) -> None:
        """Do *i*, and all that it sets free; or hold it."""
        process = self._process[i]
        if process in self.held:
            self.held[process].append(i)
        elif not self._perform(i):
            self.held[process] = deque([i])
        while self._ready:
            process = self._ready.pop()
            queue = self.held.pop(process)
            while queue and self._perform(queue[0]):
                queue.popleft()
            if queue:
                self.held[process] = queue

    def _perform(self, i: int) -> bool:
        vertex = self._waits[i]
        if vertex >= 0 and vertex not in self._done:
            self._waiting.setdefault(vertex, []).append(self._process[i])
            return False
        self._finish(i)
        end = self._total + self._lineage[i]
        if end in self._left:
            self._left[end] -= 1
            if not self._left[end]:
                self._finish(end)
        return True

    def _finish(self, vertex: int) -> None:
        self._done.add(vertex)
        self.order.append(vertex)
        self._ready.extend(self._waiting.pop(vertex, ()))


def circular(index: Index, held: dict[int, deque[int]], waits: Sequence[int]) -> list[list[int]]:
    """The vertices on cycles among what :func:`schedule` *held* back: those of each knot."""
    after: dict[int, list[int]] = {}
    for queue in held.values():
        for earlier, later in zip((NOTHING, *queue), queue, strict=False):
            after[later] = [vertex for vertex in (earlier, waits[later]) if vertex >= 0]
    for end in {vertex for before in after.values() for vertex in before if vertex >= index.total}:
        after[end] = index.members[end - index.total]
    after = {vertex: [one for one in before if one in after] for vertex, before in after.items()}
    return [knot for knot in _knots(after) if len(knot) > 1]


def _knots(graph: dict[int, list[int]]) -> list[list[int]]:
    """The strongly connected components of *graph*, by Tarjan's algorithm without recursion."""
    found: list[list[int]] = []
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    closed: set[int] = set()
    path: list[tuple[int, Iterator[int]]] = []

    def enter(vertex: int) -> None:
        number[vertex] = low[vertex] = len(number)
        stack.append(vertex)
        path.append((vertex, iter(graph[vertex])))

    for start in graph:
        if start not in number:
            enter(start)
        while path:
            vertex, rest = path[-1]
            other = next((one for one in rest if one not in closed), None)
            if other is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[vertex])
                if low[vertex] == number[vertex]:
                    knot = [stack.pop()]
                    while knot[-1] != vertex:
                        knot.append(stack.pop())
                    closed.update(knot)
                    found.append(knot)
            elif other in number:
                low[vertex] = min(low[vertex], number[other])
            else:
                enter(other)
    return found
