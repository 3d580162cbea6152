"""One datastore as one process sees it: what a shim's author subclasses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from antipode._lineage.errors import ConfigurationError

from .barrier import barrier, barrier_async
from .registry import claim, release, unregister_shim
from .store import ReadsFrom, Store

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable
    from types import TracebackType

    from typing_extensions import Self

    from antipode._lineage.lineage import Lineage
    from antipode._lineage.outcomes import BarrierResult


OnRead = Literal["merge", "ignore"]


class Shim(Store):
    """One datastore as one process sees it.

    Subclasses add Table 2's ``write(key, value)`` and ``read(key)`` in the shape their store
    has. Creating a shim does not register it; ``antipode.shim.register`` does, and the stores'
    ``shim()`` functions call it.

    Attributes:
        waitable: whether its writes can be waited on. A message store without receipts cannot.
        can_poll: whether it can open endpoints for ``at="now"``. An instrumented client behind a
            pool or proxy only knows at the read which replica answers, and leaves this False.
        floors: whether an instrumented client of this process satisfies ``at="read"`` floors.
        fences: whether :meth:`fence` works: the shim reaches the primary of a store with a log.
        promises: whether its endpoints, and its client's floors where it has these, ask for
            promises.
        abandons: whether :meth:`abandon_promise` works.
        clock: by which its watcher paces itself.
        claimed: what distinguishes its server from others of this process; None where nothing does.
    """

    def wait(self, lineage: Lineage | None = None, *, timeout: float) -> BarrierResult:
        """Wait for the dependencies on this datastore alone (Table 2's ``wait``).

        Raises:
            UnmetError: as :func:`antipode.barrier`.
        """
        return barrier(lineage, timeout=timeout, only=self.datastore)

    async def wait_async(self, lineage: Lineage | None = None, *, timeout: float) -> BarrierResult:
        """The asyncio twin of :meth:`wait`.

        Raises:
            UnmetError: as :func:`antipode.barrier`.
        """
        return await barrier_async(lineage, timeout=timeout, only=self.datastore)

    def close(self) -> None:
        """Unregister and release everything this shim holds. Idempotent."""
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
    polls it. Where a pool or a proxy chooses the server, none of them can.

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
        """Adopt the options; connects to nothing.

        Args:
            datastore: the name that every service spells alike.
            server: what distinguishes its client's server from others, such as its address; None
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
            self.can_poll = False
        else:
            self.claimed = datastore, reads_from, server
            self.fences = reads_from == "primary"
            claim(self.claimed, self)

    def close(self) -> None:
        """Unregister and release the library's own connections. Idempotent."""
        if self.claimed is not None:
            release(self.claimed, self)
        super().close()


def stored_names(
    lineage: str, names: Collection[str], *, datastore: str, option: str
) -> tuple[str, ...]:
    """What a native client stores lineages with; empty where it stores none.

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
        msg = f"lineage='beside' on {datastore!r} needs {option}=: with which to store lineages"
        raise ConfigurationError(msg)
    if lineage == "none" and kept:
        msg = f"{option}={list(kept)} on {datastore!r} means nothing without lineage='beside'"
        raise ConfigurationError(msg)
    return kept
