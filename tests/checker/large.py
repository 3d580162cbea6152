"""Large histories: processes that read a log, each by its own delay."""

from __future__ import annotations

from bisect import bisect_right
from random import Random

from antipode.checker import History, Operation


def history(
    operations: int, *, processes: int = 50, keys: int = 1000, span: int = 1, seed: int = 1
) -> History:
    """Half writes and half reads; each process sees a prefix of all writes, which grows.

    Each *span* operations of a process are a lineage: of more than one, later ones of a lineage
    may not be seen when its first ones are read.
    """
    random = Random(seed)
    log: list[tuple[list[int], list[str]]] = [([], []) for _ in range(keys)]
    seen, counts = [0] * processes, [0] * processes
    found, written = [], 0
    for _ in range(operations):
        p, k = random.randrange(processes), random.randrange(keys)
        counts[p] += 1
        lineage = f"L{p}.{counts[p] // span}"
        places, versions = log[k]
        if random.random() < 0.5:
            written += 1
            seen[p] = written
            places.append(written)
            versions.append(str(written))
            found.append(Operation("write", f"p{p}", lineage, "d", f"k{k}", str(written)))
        else:
            seen[p] = random.randint(seen[p], min(written, seen[p] + written // 100))
            place = bisect_right(places, seen[p])
            version = versions[place - 1] if place else None
            found.append(Operation("read", f"p{p}", lineage, "d", f"k{k}", version))
    return History(tuple(found))
