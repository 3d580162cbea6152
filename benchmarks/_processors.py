"""Processors that are steady while something is measured: client and servers have their own.

Left alone, the system decides call by call. A server that is woken may be put onto its client's
processor, where the two take turns as no two machines do, or onto one that has halted: in a
virtual machine that wakes up to a tenth of a millisecond late. Either changes a call by more than
the library does, and not each call.
"""

from __future__ import annotations

import os
import struct
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

#: What keeps all processors from halting while it is open (Linux, its guide to power management).
LATENCY = Path("/dev/cpu_dma_latency")
_NEVER = 0  # Microseconds that a processor may take to wake up.


@dataclass(frozen=True, slots=True)
class Processors:
    """Who runs where: kept in threads that start programs, which stay where they were started.

    Attributes:
        said: what is done about them, for people.
        clients: where clients run; wherever the system likes if there are none.
        servers: the same of servers.
    """

    said: str
    clients: Collection[int] = ()
    servers: Collection[int] = ()

    @contextmanager
    def for_clients(self) -> Iterator[None]:
        """A block whose calls, and the programs that it starts, are where clients are."""
        with _kept(self.clients):
            yield

    @contextmanager
    def for_servers(self) -> Iterator[None]:
        """A block that starts programs where servers are."""
        with _kept(self.servers):
            yield


#: Nothing is done about them.
AS_IS = Processors("as the machine has them")
#: What the option is for that asks for it.
AS_IS_HELP = (
    "leave processors to the system; else clients and servers are kept apart on processors that "
    "do not halt, where it lets that be (Linux, as root)"
)


@contextmanager
def steady() -> Iterator[Processors]:
    """A block with processors for clients and for servers, where there are two, that do not halt.

    Where the system does not let that be, it goes on, and says so.
    """
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
    apart = "apart for clients and servers" if len(usable) > 1 else "not apart"
    with awake() as kept:
        said = f"{apart}, {'never halted' if kept else f'may halt: {LATENCY} cannot be opened'}"
        yield Processors(said, usable[:1], usable[1:]) if len(usable) > 1 else Processors(said)


@contextmanager
def awake() -> Iterator[bool]:
    """A block in which no processor halts; whether that is so."""
    try:
        asked = LATENCY.open("wb", buffering=0)
    except OSError:
        yield False
        return
    with asked:
        asked.write(struct.pack("i", _NEVER))
        yield True


@contextmanager
def _kept(processors: Collection[int]) -> Iterator[None]:
    """A block in which this thread stays on *processors*."""
    if not processors:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
