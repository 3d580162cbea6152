"""What the contract suite needs to know about a store."""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import antipode
from antipode import PromiseAbandoned, Status

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from antipode import Lineage, Promise, WriteId
    from antipode.shim import Shim
    from antipode_testing._topology import Topology


class Table2Shim(Protocol):
    """A shim with the calls of the paper's Table 2. `delete` is asked for by ``deletes`` alone."""

    datastore: str

    def write(self, key: str, value: bytes, lineage: Lineage | None = None, /) -> Lineage:
        """Write a value with its stored lineage; that lineage with the new write."""
        ...

    def read(self, key: str, /) -> tuple[bytes | None, Lineage]:
        """A value, None where there is none, and its lineage."""
        ...


class ContractStore:
    """A store under the contract suite: two registered shims over a topology.

    Subclass it where the defaults do not fit. What raises NotImplementedError is needed by one
    category, which the message names: supply it, or opt out of that category.

    Attributes:
        antipode: what the claims call: the module, or what speaks to an agent in its place.
        topology: two regions.
        writer: a shim at the primary.
        reader: a shim of the same datastore at the replica, where barriers wait.
        aborted: what a fulfilment raises that loses against an abandonment at the same time.
        lost: the outcomes of a write that a failover lost, at the promoted server.
        lost_at_a_sibling: the same at a replica that follows the promoted one.
        promptly_s: seconds within which a barrier passes once replication goes on.
        read_s: seconds that one read may take that waits for nothing.
        settle_s: seconds for which something is watched not to happen.
        timeout_s: seconds that anything may take before a test fails.
    """

    antipode: Any = antipode
    aborted: ClassVar[tuple[type[Exception], ...]] = (PromiseAbandoned,)
    lost: ClassVar[frozenset[Status]] = frozenset({Status.LOST})
    lost_at_a_sibling: ClassVar[frozenset[Status]] = frozenset({Status.LOST})
    promptly_s: ClassVar[float] = 0.5
    read_s: ClassVar[float] = 0.02
    settle_s: ClassVar[float] = 0.15
    timeout_s: ClassVar[float] = 10.0

    def __init__(self, topology: Topology, writer: Any, reader: Any) -> None:
        self.topology = topology
        self.writer = writer
        self.reader = reader

    @property
    def datastore(self) -> str:
        """The logical name under which both shims are registered."""
        return str(self.reader.datastore)

    def has_unique_log(self, write: WriteId) -> bool:
        """Whether no other store can have a log of the name that the log of *write* has.

        The default asks the reader's shim.
        """
        shim: Shim = self.reader
        return shim.log_start(write.key) is not None

    def write(self, key: str, value: bytes, lineage: Lineage | None = None) -> Lineage:
        """Write at the primary; as the shim's ``write``."""
        shim: Table2Shim = self.writer
        return shim.write(key, value, lineage)

    def read(self, key: str) -> tuple[bytes | None, Lineage]:
        """Read at the replica; as the shim's ``read``."""
        shim: Table2Shim = self.reader
        return shim.read(key)

    def read_primary(self, key: str) -> tuple[bytes | None, Lineage]:
        """Read at the primary; as the shim's ``read``."""
        shim: Table2Shim = self.writer
        return shim.read(key)

    async def read_async(self, key: str) -> tuple[bytes | None, Lineage]:
        """Read at the replica without blocking the event loop (``floors``).

        The default takes the shim's ``read_async`` or, without one, reads in a thread.
        """
        if (read := getattr(self.reader, "read_async", None)) is None:
            return await asyncio.to_thread(self.read, key)
        found: tuple[bytes | None, Lineage] = await read(key)
        return found

    def delete(self, key: str, lineage: Lineage | None = None) -> Lineage:
        """Delete at the primary (``deletes``); returns as ``write`` does."""
        deleted: Lineage = self.writer.delete(key, lineage)
        return deleted

    def fulfil(self, key: str, value: bytes, promise: Promise) -> object:
        """Write at the primary and fulfil *promise* in the same transaction (``promises``).

        The default takes the shim's ``write(key, value, fulfils=promise)``.
        """
        return self.writer.write(key, value, fulfils=promise)

    def rolled_back(self, key: str, value: bytes, promise: Promise) -> None:
        """Do the same in a transaction that is rolled back (``promises``); may raise."""
        raise NotImplementedError(_needed("rolled_back", "promises"))

    def refused_write(self, key: str, value: bytes) -> None:
        """Try a write that the store refuses, and let its error out (``minting``).

        The default writes at the replica.
        """
        shim: Table2Shim = self.reader
        shim.write(key, value)

    def doubtful_write(self, key: str, value: bytes) -> None:
        """Write so that nobody learns how it ended, and let the error out (``in_doubt``)."""
        raise NotImplementedError(_needed("doubtful_write", "in_doubt"))

    def unknown_write(self, key: str, value: bytes) -> None:
        """Write at the primary by what the shim cannot see into (``unknown_writes``)."""
        raise NotImplementedError(_needed("unknown_write", "unknown_writes"))

    def partial_update(self, key: str, field: str, value: bytes, lineage: Lineage) -> Lineage:
        """Change one part of a value, such as a hash field (``partial_updates``)."""
        raise NotImplementedError(_needed("partial_update", "partial_updates"))

    def corrupt(self, key: str, text: str) -> None:
        """Put *text* where the replica stores the lineage of *key* (``codec_abuse``)."""
        raise NotImplementedError(_needed("corrupt", "codec_abuse"))

    def unreachable(self) -> AbstractContextManager[object]:
        """A block during which the reader's server does not answer (``unreachable``)."""
        raise NotImplementedError(_needed("unreachable", "unreachable"))

    def regressed(self) -> AbstractContextManager[object]:
        """A block during which the replica shows less than it did (``reseed``)."""
        raise NotImplementedError(_needed("regressed", "reseed"))

    def unknown(self, write: WriteId) -> WriteId:
        """*write* as if on a log that no server of the topology ever had (``unknown_log``).

        The default makes up a UUID.
        """
        return replace(write, key=str(uuid.uuid4()))

    def reconnect(self) -> None:
        """Let the writer write to the topology's new primary (``failover``)."""
        raise NotImplementedError(_needed("reconnect", "failover"))

    def follow(self) -> None:
        """Let the reader's server follow the promoted replica (`SiblingContract`).

        The default leaves it to the topology.
        """

    def covers(self, lineage: Lineage, write: WriteId) -> bool:
        """Whether whoever waits for *lineage* waits for *write* too (``stored_lineage``).

        The default wants the write, or a position of the same log that is not before it.
        """
        mine = [w for w in lineage if (w.datastore, w.key) == (write.datastore, write.key)]
        if isinstance(write.version, int):
            return any(isinstance(w.version, int) and w.version >= write.version for w in mine)
        return any(w.version == write.version for w in mine)

    def watchers(self) -> list[str]:
        """The library's threads that poll stores now (``leaks``, ``sharing``)."""
        names = (thread.name for thread in threading.enumerate())
        return [name for name in names if name.startswith("antipode-watch")]

    def connections(self) -> int:
        """How many connections this process holds (``leaks``). The default counts descriptors."""
        folder = Path("/proc/self/fd")
        return len(os.listdir(folder)) if folder.is_dir() else 0  # noqa: PTH208 - shortest


def _needed(method: str, category: str) -> str:
    return f"supply ContractStore.{method}, or opt out of {category!r} with a reason"
