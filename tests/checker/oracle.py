"""The definition, letter by letter: every order of every process is tried. Knows no checker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from antipode.checker import Operation

READINGS = ("memory", "prefix", "whole lineage")


def verdict(operations: Sequence[Operation], reading: str) -> str:
    """``ok``, ``violation`` or ``unknown`` for mutual lineages, by one reading alone."""
    count = range(len(operations))
    source = [written(operations, i) for i in count]
    order = happened(operations, messages=reading != "memory")
    if reading == "prefix":
        within = closed(order, len(operations))
        for b in count:
            if (a := source[b]) is not None:
                order |= {(o, b) for o in count if same(operations, o, a) and (o, a) in within}
    order |= {(source[b], b) for b in count if source[b] is not None}
    mutual = False
    if reading == "whole lineage":
        rule = {
            (a, b, operations[w].lineage)
            for b in count
            if (w := source[b]) is not None and not same(operations, w, b)
            for a in count
            if same(operations, a, w)
        }
        whole = closed(order | {(a, b) for a, b, _ in rule}, len(operations))
        circular = {lineage for a, b, lineage in rule if (b, a) in whole}
        mutual = bool(circular)
        order |= {(a, b) for a, b, lineage in rule if lineage not in circular}
    order = closed(order, len(operations))
    if any((i, i) in order for i in count):
        return "violation"
    if not all(serializable(operations, source, order, p) for p in processes(operations)):
        return "violation"
    return "unknown" if mutual else "ok"


def weakest(operations: Sequence[Operation]) -> str:
    """The weakest reading that is violated; ``ok`` or ``unknown`` where none is."""
    found = "ok"
    for reading in READINGS:
        found = verdict(operations, reading)
        if found == "violation":
            return reading
    return found


def written(operations: Sequence[Operation], b: int) -> int | None:
    """The write that a read returned; None for the initial version, and for what is no read."""
    read = operations[b]
    if read.kind != "read" or read.version is None:
        return None
    return next(
        a
        for a, one in enumerate(operations)
        if one.kind == "write" and one.subject == read.subject and one.version == read.version
    )


def same(operations: Sequence[Operation], a: int, b: int) -> bool:
    """Whether two operations are of one lineage."""
    lineage = operations[a].lineage
    return lineage is not None and lineage == operations[b].lineage


def happened(operations: Sequence[Operation], *, messages: bool) -> set[tuple[int, int]]:
    """Rule 1: the order of each process, and of messages."""
    return {
        (a, b)
        for a, one in enumerate(operations)
        for b, other in enumerate(operations)
        if (a < b and one.process == other.process)
        or (
            messages
            and (one.kind, other.kind) == ("send", "receive")
            and one.message == other.message
        )
    }


def closed(order: set[tuple[int, int]], count: int) -> set[tuple[int, int]]:
    """Rule 3, by Warshall's algorithm."""
    after = [{b for a, b in order if a == i} for i in range(count)]
    for middle in range(count):
        for one in after:
            if middle in one:
                one.update(after[middle])
    return {(a, b) for a in range(count) for b in after[a]}


def processes(operations: Iterable[Operation]) -> set[str]:
    """Those that read anything."""
    return {one.process for one in operations if one.kind == "read"}


def serializable(
    operations: Sequence[Operation],
    source: Sequence[int | None],
    order: set[tuple[int, int]],
    process: str,
) -> bool:
    """Whether some order of all writes and of *process*'s reads respects *order* and is legal."""
    wanted = [
        i
        for i, one in enumerate(operations)
        if one.kind == "write" or (one.kind == "read" and one.process == process)
    ]
    before = {b: {a for a in wanted if (a, b) in order} for b in wanted}

    def complete(placed: frozenset[int], latest: dict[tuple[str, str], int]) -> bool:
        state = placed, frozenset(latest.items())
        if state in tried:
            return False
        tried.add(state)
        for i in wanted:
            one = operations[i]
            if i in placed or not before[i] <= placed:
                continue
            if one.kind == "read" and latest.get(one.subject) != source[i]:
                continue
            after = {**latest, one.subject: i} if one.kind == "write" else latest
            if complete(placed | {i}, after):
                return True
        return len(placed) == len(wanted)

    tried: set[object] = set()
    return complete(frozenset(), {})
