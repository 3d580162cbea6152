"""What a shim is made of: the contract between the core and the datastores.

A shim says three things about its datastore: which :class:`~antipode.WriteId` a committed write has
(:func:`record_write`), what one server shows of some writes at one look (:class:`Endpoint`), and,
for instrumented clients, whether a read may be answered (:class:`Floor`). The rest is the core's.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ._claims import claim, release
from ._clock import SYSTEM_CLOCK, Clock
from ._errors import ConfigurationError
from ._floor import Floor
from ._metrics import count, log_once
from ._outcomes import Status
from ._promise import record_seconds
from ._readable import unreadable
from ._recording import floor, mark_incomplete, read_sent, reading, record_write
from ._registry import watcher_beside
from ._seam import Unjudged
from ._stored import (
    defer_read,
    record_read,
    record_shown,
    record_uncommitted,
    stored_lineage,
    stored_text,
    unread,
)
from ._unreachable import Unreachable
from ._write_id import Promise

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping
    from types import TracebackType

    from typing_extensions import Self

    from ._lineage import Lineage
    from ._outcomes import BarrierResult
    from ._watch import Watcher
    from ._write_id import Dependency, WriteId

__all__ = [
    "Endpoint",
    "Floor",
    "Observation",
    "OnRead",
    "ReadsFrom",
    "ServerShim",
    "Shim",
    "Unjudged",
    "Unreachable",
    "Wake",
    "beside_names",
    "count",
    "defer_read",
    "floor",
    "log_once",
    "mark_incomplete",
    "read_sent",
    "reading",
    "record_read",
    "record_seconds",
    "record_shown",
    "record_uncommitted",
    "record_write",
    "stored_lineage",
    "stored_text",
    "unread",
    "unreadable",
    "watcher_beside",
]

ReadsFrom = Literal["primary", "replica"]
OnRead = Literal["merge", "ignore"]


@dataclass(frozen=True, slots=True)
class Observation:
    """What one server showed of some writes and promises at one look.

    Attributes:
        server: the server's *incarnation*: changes whenever its history may have (MySQL
            server_uuid, Redis run id and replication id), and never is an address.
        statuses: for each write asked for, its outcome; one that is left out is ``not_yet``.
        eta_s: seconds until the last of them may be visible, if the store can tell.
        causes: for a person, why a write has its outcome.
        promises: for each promise looked for, ``visible`` where its record says fulfilled,
            ``abandoned`` where it says so, and ``not_yet`` without a record.
        promise_causes: for a person, why a promise has its outcome.
    """

    server: str
    statuses: Mapping[WriteId, Status]
    eta_s: float | None = None
    causes: Mapping[WriteId, str] = field(default_factory=dict)
    promises: Mapping[Promise, Status] = field(default_factory=dict)
    promise_causes: Mapping[Promise, str] = field(default_factory=dict)

    def of(self, dependency: Dependency) -> tuple[Status, str]:
        """The outcome of *dependency*, and its cause. For the core."""
        if isinstance(dependency, Promise):
            status = self.promises.get(dependency, Status.NOT_YET)
            return status, self.promise_causes.get(dependency, "")
        return self.statuses.get(dependency, Status.NOT_YET), self.causes.get(dependency, "")


class Wake:
    """Ends a pause early. Thread-safe; has a file descriptor for use with ``select``."""

    def __init__(self) -> None:
        """Start unset, without file descriptors until one is asked for."""
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._pair: tuple[socket.socket, socket.socket] | None = None

    def set(self) -> None:
        """End the pause, or the next one."""
        with self._lock:
            self._event.set()
            if self._pair is not None:
                with contextlib.suppress(BlockingIOError):  # Full: readable already.
                    self._pair[1].send(b"\0")

    def clear(self) -> None:
        """Forget earlier wake-ups."""
        with self._lock:
            self._event.clear()
            if self._pair is not None:
                with contextlib.suppress(BlockingIOError):
                    while self._pair[0].recv(4096):
                        pass

    def is_set(self) -> bool:
        """Whether a wake-up is pending."""
        return self._event.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Pause for *timeout_s* seconds or until woken; True when woken."""
        return self._event.wait(timeout_s)

    def fileno(self) -> int:
        """A descriptor that becomes readable when woken."""
        with self._lock:
            if self._pair is None:
                self._pair = socket.socketpair()
                for end in self._pair:
                    end.setblocking(False)  # noqa: FBT003 - socket's own signature
                if self._event.is_set():
                    self._pair[1].send(b"\0")
            return self._pair[0].fileno()

    def close(self) -> None:
        """Release the descriptors."""
        with self._lock:
            if self._pair is not None:
                for end in self._pair:
                    end.close()
                self._pair = None


class Endpoint(ABC):
    """A connection of the library's own to the one server where the caller will read.

    Used by one thread at a time, except :meth:`interrupt`.

    Attributes:
        pinned: whether the server's history cannot change under a live connection. Then
            positions seen once stay known until the connection is closed, and a barrier with
            nothing to wait for costs no round trip. False for Redis, whose connections survive
            a promotion and a full resync.
        blocks: whether the server ends :meth:`pause` once what the last look missed may be
            visible. Then a pause lasts up to a second instead of being paced. May change from
            look to look: False where a wait on the server could not be started.
    """

    pinned: bool = False
    blocks: bool = False
    pushes_promises: bool = False

    @abstractmethod
    def observe(self, writes: Collection[WriteId], *, timeout_s: float) -> Observation:
        """Look once, without waiting for the writes.

        *writes* all belong to this shim's datastore and are not empty.

        Args:
            writes: what to judge.
            timeout_s: the longest the look itself may take, in seconds.

        Raises:
            Unreachable: the look failed and is worth repeating.
            Exception: anything else means that looking again cannot help.
        """

    def promised(self, promises: Collection[Promise], *, timeout_s: float) -> Observation:
        """Look once for the records of *promises*, which are not empty; as :meth:`observe`.

        Called only where :attr:`Shim.promises` is True. What is returned has the incarnation and
        the promises alone; absence of a record, or of the table for them, is ``not_yet``, never
        ``lost``. The core judges by the clock which of these are abandoned.

        Raises:
            Unreachable: as :meth:`observe`.
            Exception: as :meth:`observe`.
        """
        del promises, timeout_s
        msg = f"{type(self).__name__} cannot look for promises"
        raise NotImplementedError(msg)

    def pause(self, timeout_s: float, wake: Wake) -> None:
        """Wait for *timeout_s* seconds, until *wake*, or until the server pushes something.

        The default waits for time or *wake* alone. A store that can push or block on the
        server overrides it; it must return at once when *wake* is set, and may return early.
        Where it blocks, it waits for the smallest position that the last look missed, and what
        waits on the server ends with :meth:`rest` or :meth:`close` at the latest.
        """
        wake.wait(timeout_s)

    def rest(self) -> None:  # noqa: B027 - optional
        """Nobody waits any more: end what the server pushes until the next :meth:`pause`."""

    def interrupt(self) -> None:  # noqa: B027 - optional
        """Make a look that another thread is in fail soon. Thread-safe; may do nothing."""

    @abstractmethod
    def close(self) -> None:
        """Release the connection. Idempotent."""


class Shim(ABC):
    """One datastore as one process sees it.

    Subclasses add Table 2's ``write(key, value)`` and ``read(key)`` in the shape their store
    has. Creating a shim does not register it; ``antipode.register`` does, and the stores'
    ``shim()`` functions call it.

    Attributes:
        waitable: whether its writes can be waited on. A message store without receipts cannot.
        looks: whether it can open endpoints for ``at="now"``. An instrumented client behind a
            pool or proxy only knows at the read which replica answers, and leaves this False.
        floors: whether an instrumented client of this process satisfies ``at="read"`` floors.
        fences: whether :meth:`fence` works: the shim reaches the primary of a store with a log.
        promises: whether its endpoints, and its client's floors where it has these, look for
            promises.
        abandons: whether :meth:`abandon_promise` works.
        clock: by which its watcher paces itself.
        claimed: what tells its server from others of this process; None where nothing does.
    """

    waitable: bool = True
    looks: bool = True
    floors: bool = False
    fences: bool = False
    promises: bool = False
    abandons: bool = False
    clock: Clock = SYSTEM_CLOCK
    claimed: Hashable | None = None

    def __init__(self, datastore: str, *, reads_from: ReadsFrom = "replica") -> None:
        """Name the datastore and say which of its servers this process reads from.

        Raises:
            ConfigurationError: the name is empty or *reads_from* is neither of its values.
        """
        if not datastore:
            msg = "datastore must be a non-empty name that every service spells alike"
            raise ConfigurationError(msg)
        if reads_from not in ("primary", "replica"):
            msg = f"reads_from must be 'primary' or 'replica', not {reads_from!r}"
            raise ConfigurationError(msg)
        self.datastore = datastore
        self.reads_from = reads_from
        self._watcher: Watcher | None = None
        self._watcher_lock = threading.Lock()

    @property
    def watcher(self) -> Watcher:
        """What looks at this datastore for barriers. For the core."""
        with self._watcher_lock:
            if self._watcher is None:
                from ._watch import Watcher

                self._watcher = Watcher(self, self.clock)
            return self._watcher

    @abstractmethod
    def open_endpoint(self, *, timeout_s: float) -> Endpoint:
        """Connect to the server where this process reads, within *timeout_s* seconds.

        Raises:
            Unreachable: no connection now; worth repeating.
        """

    def fence(self, *, timeout_s: float) -> frozenset[WriteId]:
        """The primary's position of now, as covering entries: all earlier writes are before it.

        A barrier waits for it in place of entries that a size limit dropped. Called only where
        :attr:`fences` is True.

        Raises:
            Unreachable: the primary does not answer within *timeout_s* seconds.
        """
        del timeout_s
        msg = f"the primary of {self.datastore!r} cannot be asked for its position"
        raise Unreachable(msg)

    def abandon_promise(self, promise: Promise, *, timeout_s: float) -> bool:
        """Record at the primary that *promise* is abandoned, unless it has a record already.

        Called only where :attr:`abandons` is True; may block for *timeout_s* seconds.

        Returns:
            Whether it is abandoned; False where it was fulfilled before: the first record stays.

        Raises:
            Unreachable: the primary does not answer; worth repeating.
        """
        del promise, timeout_s
        msg = f"no promise can be abandoned on {self.datastore!r} by this shim"
        raise ConfigurationError(msg)

    def wait(self, lineage: Lineage | None = None, *, timeout: float) -> BarrierResult:
        """Wait for the dependencies on this datastore alone (Table 2's ``wait``).

        Raises:
            UnmetError: as :func:`antipode.barrier`.
        """
        from ._barrier import barrier

        return barrier(lineage, timeout=timeout, only=self.datastore)

    async def wait_async(self, lineage: Lineage | None = None, *, timeout: float) -> BarrierResult:
        """The asyncio twin of :meth:`wait`.

        Raises:
            UnmetError: as :func:`antipode.barrier`.
        """
        from ._barrier import barrier_async

        return await barrier_async(lineage, timeout=timeout, only=self.datastore)

    def close(self) -> None:
        """Unregister and release everything this shim holds. Idempotent."""
        from ._registry import unregister_shim

        unregister_shim(self)

    def __enter__(self) -> Self:
        """Use as a context manager: closed at the end."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()


class ServerShim(Shim):
    """The shim of a store whose clients connect to servers and instrument their reads.

    Several clients of one server in one process are one server for barriers: the first of them
    looks there. Where a pool or a proxy chooses the server, none of them can.

    Attributes:
        on_read: whether a read adds the stored lineage to the scope.
    """

    floors = True

    def __init__(
        self,
        datastore: str,
        *,
        server: Hashable | None,
        reads_from: ReadsFrom = "primary",
        on_read: OnRead = "merge",
    ) -> None:
        """Take over the options; connects to nothing.

        Args:
            datastore: the name that every service spells alike.
            server: what tells the server of its client from others, such as its address; None
                where only a read shows which server answers it.
            reads_from: ``primary`` or ``replica``.
            on_read: ``merge`` or ``ignore``.

        Raises:
            ConfigurationError: an option is not one of its values.
        """
        super().__init__(datastore, reads_from=reads_from)
        if on_read not in ("merge", "ignore"):
            msg = f"on_read must be 'merge' or 'ignore', not {on_read!r}"
            raise ConfigurationError(msg)
        self.on_read = on_read
        if server is None:
            self.looks = False
        else:
            self.claimed = datastore, reads_from, server
            self.fences = reads_from == "primary"
            claim(self.claimed, self)

    def close(self) -> None:
        """Unregister and release the library's own connections. Idempotent."""
        if self.claimed is not None:
            release(self.claimed, self)
        super().close()


def beside_names(
    lineage: str, names: Collection[str], *, datastore: str, option: str
) -> tuple[str, ...]:
    """What a native client stores lineages beside; empty where it stores none.

    Args:
        lineage: the option of that name: ``none`` or ``beside``.
        names: what the values' *option* names: key patterns, tables or collections.
        datastore: for messages.
        option: how *names* are called: ``keys``, ``tables`` or ``collections``.

    Raises:
        ConfigurationError: *lineage* is neither, or one of the two is given without the other.
    """
    if lineage not in ("none", "beside"):
        msg = f"lineage must be 'none' or 'beside', not {lineage!r}"
        raise ConfigurationError(msg)
    if isinstance(names, str):
        msg = f"{option} must be a collection of names, such as [{names!r}], not one string"
        raise ConfigurationError(msg)
    kept = tuple(dict.fromkeys(names))
    if lineage == "beside" and (not kept or "" in kept):
        msg = f"lineage='beside' on {datastore!r} needs {option}=: beside which to store lineages"
        raise ConfigurationError(msg)
    if lineage == "none" and kept:
        msg = f"{option}={list(kept)} on {datastore!r} means nothing without lineage='beside'"
        raise ConfigurationError(msg)
    return kept
