"""Small random histories: of replicas that are late, and of reads that return anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode.checker import History, Operation

if TYPE_CHECKING:
    from random import Random

MOST_WRITES, MOST_READS, MOST_MESSAGES = 6, 4, 4


def history(random: Random) -> History:
    """Some operations of two to four processes on at most three keys."""
    return History(tuple(anything(random) if random.random() < 0.35 else replicas(random)))


class Drawn:
    """Operations in the order of time, as they are drawn."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.processes = [f"p{n}" for n in range(random.choice((2, 2, 3, 4)))]
        self.lineages = [None, *(f"L{n}" for n in range(random.randint(1, 3)))]
        # Mostly one lineage for each process, as services have it.
        self.usual = {p: random.choice(self.lineages) for p in self.processes}
        self.keys = [("d", "x"), ("e", "x"), ("d", "y")][: random.choice((1, 2, 2, 3))]
        self.operations: list[Operation] = []
        self.left = {
            "write": random.randint(3, MOST_WRITES),
            "read": random.randint(3, MOST_READS),
            "send": random.randint(0, MOST_MESSAGES),
        }

    def next(self) -> Operation | None:
        """A kind, a process, a lineage and a key, without a version."""
        kinds = [kind for kind, left in self.left.items() for _ in range(left)]
        if not kinds:
            return None
        kind = self.random.choice(kinds)
        self.left[kind] -= 1
        process = self.random.choice(self.processes)
        lineage = self.usual[process]
        if self.random.random() < 0.2:
            lineage = self.random.choice(self.lineages)
        if kind == "send":
            return Operation(kind, process, lineage, message=f"m{len(self.operations)}")
        return Operation(kind, process, lineage, *self.random.choice(self.keys))

    def add(self, one: Operation) -> None:
        """Put an operation at the end; a message arrives somewhere at some time, or never."""
        self.operations.append(one)
        for sent in [o for o in self.operations if o.kind == "send"]:
            got = any(o.kind == "receive" and o.message == sent.message for o in self.operations)
            if not got and self.random.random() < 0.5:
                process = self.random.choice(self.processes)
                if process != sent.process:
                    lineage = sent.lineage if self.random.random() < 0.8 else self.usual[process]
                    one = Operation("receive", process, lineage, message=sent.message)
                    self.operations.append(one)


def anything(random: Random) -> list[Operation]:
    """Reads that return any version, one that is written later too."""
    drawn = Drawn(random)
    while one := drawn.next():
        version = str(len(drawn.operations)) if one.kind == "write" else None
        drawn.add(one._replace(version=version))
    written = [one for one in drawn.operations if one.kind == "write"]
    return [
        one._replace(version=random.choice([None, *of(written, one)]))
        if one.kind == "read"
        else one
        for one in drawn.operations
    ]


def of(written: list[Operation], read: Operation) -> list[str | None]:
    """The versions that are written of a read's key."""
    return [one.version for one in written if one.subject == read.subject]


def replicas(random: Random) -> list[Operation]:
    """Each process reads a replica that applies writes in some order, now and then a late one."""
    drawn = Drawn(random)
    shown: dict[tuple[str, tuple[str, str]], str | None] = {}
    left: list[tuple[str, Operation]] = []
    late = random.random() * 0.9
    while one := drawn.next():
        place = one.process, one.subject
        if one.kind == "write":
            one = one._replace(version=str(len(drawn.operations)))
            shown[place] = one.version
            left += [(process, one) for process in drawn.processes if process != one.process]
        if one.kind == "read":
            one = one._replace(version=shown.get(place))
        drawn.add(one)
        for item in list(left):
            if random.random() > late:
                process, write = item
                shown[process, write.subject] = write.version
                left.remove(item)
    return drawn.operations
