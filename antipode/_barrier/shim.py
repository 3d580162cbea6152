"""One datastore as one process sees it: what a shim's author subclasses."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal

from antipode._lineage.errors import ConfigurationError
from antipode._runtime.clock import SYSTEM_CLOCK

from .contract import Unreachable
from .registry import claim, release

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable
    from types import TracebackType

    from typing_extensions import Self

    from antipode._lineage.lineage import Lineage
    from antipode._lineage.outcomes import BarrierResult
    from antipode._lineage.write_id import Promise, WriteId
    from antipode._runtime.clock import Clock

    from .contract import Endpoint
    from .watcher import Watcher

ReadsFrom = Literal["primary", "replica"]
OnRead = Literal["merge", "ignore"]


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
                from .watcher import Watcher

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
        from .barrier import barrier

        return barrier(lineage, timeout=timeout, only=self.datastore)

    async def wait_async(self, lineage: Lineage | None = None, *, timeout: float) -> BarrierResult:
        """The asyncio twin of :meth:`wait`.

        Raises:
            UnmetError: as :func:`antipode.barrier`.
        """
        from .barrier import barrier_async

        return await barrier_async(lineage, timeout=timeout, only=self.datastore)

    def close(self) -> None:
        """Unregister and release everything this shim holds. Idempotent."""
        from .registry import unregister_shim

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
