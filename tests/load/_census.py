"""What this process holds open, and who holds it."""

from __future__ import annotations

import gc
import socket
import threading
import types
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: States of a TCP socket that a message is clearer for, by their numbers in Linux' tables.
_STATES = {"01": "established", "07": "closed", "08": "closed by the other end", "0A": "listening"}
#: How many objects are looked at, for who holds a socket.
_MOST_OBJECTS = 20_000
_NOBODY = (types.FrameType, types.ModuleType, types.FunctionType, types.TracebackType)
_CONTAINERS = (dict, list, tuple, set, deque, types.CellType, types.MethodType)


@dataclass(frozen=True)
class Census:
    """The descriptors and threads of this process at one moment.

    Attributes:
        descriptors: their numbers, with what Linux says they are: numbers are used again.
        threads: all that run.
    """

    descriptors: frozenset[tuple[int, str]]
    threads: frozenset[threading.Thread]

    @classmethod
    def take(cls) -> Census:
        """Count now."""
        gc.collect()
        return cls(frozenset(_descriptors()), frozenset(threading.enumerate()))

    def grown(self) -> bool:
        """Whether there is anything now that was not there then."""
        now = Census.take()
        return not (now.descriptors <= self.descriptors and now.threads <= self.threads)

    def growth(self, ports: Mapping[int, str]) -> list[str]:
        """What is there now and was not then, a line each.

        Args:
            ports: what listened on ports of this machine meanwhile.
        """
        now = Census.take()
        threads = [f"thread {each.name}" for each in now.threads - self.threads]
        table = dict(_tcp(ports))
        return threads + [
            f"descriptor {number}: {table.get(what, what)}, held by {_holder(number)}"
            for number, what in sorted(now.descriptors - self.descriptors)
        ]


def _descriptors() -> Iterator[tuple[int, str]]:
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # One of them is of this look itself.
            yield int(link.name), str(link.readlink())


def _tcp(ports: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    """What Linux calls a socket, and its ends."""
    for table in ("tcp", "tcp6"):
        lines = Path(f"/proc/self/net/{table}").read_text(encoding="ascii").splitlines()
        for _, local, remote, state, *rest in map(str.split, lines[1:]):
            ends = (int(each.rpartition(":")[2], 16) for each in (local, remote))
            names = (f"{port} ({ports[port]})" if port in ports else str(port) for port in ends)
            yield f"socket:[{rest[5]}]", f"port {' to '.join(names)}, {_STATES.get(state, state)}"


def _holder(number: int) -> str:
    """The types of the objects through which a socket is held, outwards.

    As far as the nearest object of the library, its tests or its topologies.
    """
    for each in gc.get_objects():
        if isinstance(each, socket.socket) and each.fileno() == number:
            return " of ".join(_chain(each))
    return "no socket of Python's"


def _chain(found: socket.socket) -> list[str]:
    """Breadth first, so that the shortest way is told."""
    came: dict[int, Any] = {id(found): None}
    queue: deque[Any] = deque([found])
    last: Any = found
    while queue and len(came) < _MOST_OBJECTS:
        last = queue.popleft()
        if type(last).__module__.startswith(("antipode", "tests.")):
            break
        for holder in gc.get_referrers(last):
            if id(holder) not in came and holder is not queue and not isinstance(holder, _NOBODY):
                came[id(holder)] = last
                queue.append(holder)
    else:
        last = found
    names = []
    while last is not None:
        if not isinstance(last, _CONTAINERS):
            names.append(f"{type(last).__module__}.{type(last).__qualname__}")
        last = came[id(last)]
    return names[::-1]
