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
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

#: What keeps all processors from halting while it is open (Linux, its guide to power management).
LATENCY = Path("/dev/cpu_dma_latency")
_NEVER = 0  # Microseconds that a processor may take to wake up.
#: Fields of /proc/PID/stat after the name, and of /proc/net/tcp.
_USER, _SYSTEM = 11, 12
_LOCAL, _STATE, _INODE = 1, 3, 9
_LISTENS = "0A"


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
#: Rounds of a benchmark that holds processors, and of one that leaves them beside it.
ROUNDS, AS_IS_ROUNDS = 5, 2
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


def spent(port: int) -> float | None:
    """Seconds of processor time of the process that listens at a port here, its threads included.

    None where the system does not say (Linux does, of processes that this one may look at).
    """
    process = _listening(port)
    return None if process is None else spent_by(int(process))


def spent_by(process: int) -> float | None:
    """The same of a process, by its number."""
    try:
        fields = (
            Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        )
    except (OSError, UnicodeDecodeError):
        return None
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / os.sysconf("SC_CLK_TCK")


@cache
def _listening(port: int) -> str | None:
    """The number of the process that listens at *port*."""
    wanted = f"socket:[{_socket_of(port)}]"
    found = (each for each in Path("/proc").glob("[0-9]*/fd/*") if _leads_to(each) == wanted)
    return next((descriptor.parts[2] for descriptor in found), None)


def _leads_to(link: Path) -> str:
    """Where a link leads; nowhere if its process has just ended, or is somebody else's."""
    try:
        return str(link.readlink())
    except OSError:
        return ""


def _socket_of(port: int) -> str | None:
    """The number of the socket that listens at *port*."""
    for table in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[_STATE] == _LISTENS and int(fields[_LOCAL].rpartition(":")[2], 16) == port:
                return fields[_INODE]
    return None
