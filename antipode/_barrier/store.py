"""One datastore as barriers see it: where they wait, and what can be asked of it."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal

from antipode._lineage.errors import ConfigurationError
from antipode._runtime.clock import SYSTEM_CLOCK

from .contract import Unreachable
from .fence import Fencer
from .watcher import Watcher

if TYPE_CHECKING:
    from collections.abc import Hashable

    from antipode._lineage.errors import ServerName
    from antipode._lineage.write_id import Promise, WriteId
    from antipode._runtime.clock import Clock

    from .contract import Endpoint

ReadsFrom = Literal["primary", "replica"]
Barriers = Literal["auto", "explicit"]


class Store(ABC):
    """One datastore as barriers see it.

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
        barriers: whether the reads of its clients wait automatically; None: as configured.
        system: its ``db.system.name`` in OpenTelemetry's conventions; empty where it has none.
        keyspace: where its keys are: a table, a collection; empty where a datastore has one place.
    """

    waitable: bool = True
    can_poll: bool = True
    floors: bool = False
    fences: bool = False
    promises: bool = False
    abandons: bool = False
    clock: Clock = SYSTEM_CLOCK
    claimed: Hashable | None = None
    barriers: Barriers | None = None
    system: str = ""
    keyspace: str = ""

    def __init__(self, datastore: str, *, reads_from: ReadsFrom = "primary") -> None:
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
        self._fencer: Fencer | None = None
        self._watcher_lock = threading.Lock()

    @property
    def server_name(self) -> ServerName | None:
        """Where its clients read, for telemetry and logs; None where that is no one address."""
        return None

    def wait_by(self, barriers: Barriers | None) -> None:
        """Have the reads of its clients wait automatically, or not; None: as configured.

        Raises:
            ConfigurationError: *barriers* is none of these.
        """
        if barriers not in (None, "auto", "explicit"):
            msg = f"barriers must be 'auto', 'explicit' or None, not {barriers!r}"
            raise ConfigurationError(msg)
        self.barriers = barriers

    @property
    def watcher(self) -> Watcher:
        """What polls this datastore for barriers. For the core."""
        with self._watcher_lock:
            if self._watcher is None:
                self._watcher = Watcher(self, self.clock)
            return self._watcher

    @property
    def fencer(self) -> Fencer:
        """What asks this primary for its position, for barriers. For the core."""
        with self._watcher_lock:
            if self._fencer is None:
                self._fencer = Fencer(self)
            return self._fencer

    @abstractmethod
    def open_endpoint(self, *, timeout_s: float) -> Endpoint:
        """Connect to the server where this process reads, within *timeout_s* seconds.

        Raises:
            Unreachable: no connection now; worth repeating.
        """

    def fence(self, *, timeout_s: float) -> frozenset[WriteId]:
        """The primary's position of now, as covering entries: all earlier writes are before it.

        A barrier waits for it in place of entries that a size limit dropped. Where a primary that
        was replaced may still answer, the entries have :func:`following` among them. Called only
        where :attr:`fences` is True.

        Raises:
            Unreachable: the primary does not answer within *timeout_s* seconds.
        """
        del timeout_s
        msg = f"the primary of {self.datastore!r} cannot be asked for its position"
        raise Unreachable(msg)

    def log_start(self, key: str) -> WriteId | None:
        """The first position of the log *key*, as a write of this datastore. For the core.

        A server that shows it has that log. So a barrier learns that a datastore for which nothing
        is registered is this one under another name.

        Returns:
            None where *key* names no log of this kind of store, or where the logs of two such
            stores may have the same name by chance. The default.
        """
        del key
        return None

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

    @abstractmethod
    def close(self) -> None:
        """Unregister and release everything this shim holds. Idempotent."""
