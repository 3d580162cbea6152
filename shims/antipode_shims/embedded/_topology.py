"""Two regions of the embedded store: two files, and a replicator between them."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from antipode import ConfigurationError

from ._store.replicator import Replicator
from ._store.store import EmbeddedStore

if TYPE_CHECKING:
    from os import PathLike
    from types import TracebackType

    from typing_extensions import Self

CATCH_UP_S = 10.0
_POLL_S = 0.001


class EmbeddedTopology:
    """A primary's file and a replica's; the replicator is a thread of this process.

    Other processes may use the files at the same time.

    Args:
        directory: where the files are made, and left; a temporary one, removed at the end, by
            default.
        lag_ms: the lag to begin with, and to return to at `reset`.

    Raises:
        ConfigurationError: the lag is negative, or *directory* is none.
    """

    store: ClassVar[str] = "embedded"

    def __init__(
        self, directory: str | PathLike[str] | None = None, *, lag_ms: float = 0.0
    ) -> None:
        if not 0 <= lag_ms < float("inf"):
            msg = f"a lag is a number of milliseconds, 0 or more: {lag_ms!r}"
            raise ConfigurationError(msg)
        self._lag_ms = lag_ms
        self._wanted = None if directory is None else Path(directory)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._replicator: Replicator | None = None
        self._generation = 0
        self._paths: list[Path] = []
        self._failed_over = False

    @property
    def primary(self) -> Path:
        """The file that takes writes now."""
        return self._path(int(self._failed_over))

    @property
    def replica(self) -> Path:
        """The other region's file; after a `failover` the old primary's."""
        return self._path(int(not self._failed_over))

    def url(self, server: Path | None = None) -> str:
        """The path of *server*'s file, by default the primary's."""
        return str(server or self.primary)

    @property
    def closed(self) -> bool:
        """Whether nothing replicates any more."""
        return self._replicator is None

    def start(self) -> None:
        """Make both files; return once the replica knows its primary."""
        if self._replicator is not None:
            return
        if self._wanted is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="antipode-embedded-")
        self._build()

    def _build(self) -> None:
        """Fresh files, and a replicator from the first to the second."""
        temporary, wanted = self._temporary, self._wanted
        folder = Path(temporary.name) if wanted is None and temporary else wanted or Path()
        self._failed_over = False
        self._generation += 1
        while (folder / f"primary-{self._generation}.db").exists():
            self._generation += 1
        self._paths = [folder / f"{name}-{self._generation}.db" for name in ("primary", "replica")]
        EmbeddedStore(self._paths[0], create="primary").close()
        self._link(*self._paths)

    def _link(self, source: Path, target: Path) -> None:
        if self._replicator is not None:
            self._replicator.close()
        self._replicator = Replicator(source, target, lag_ms=self._lag_ms)
        self._replicator.catch_up()
        self._replicator.start()

    def set_lag(self, ms: float) -> None:
        """Delay replication by this many milliseconds, what is on its way included."""
        self._running().set_lag(ms)

    def pause(self) -> None:
        """Hold replication; when this returns, nothing more arrives."""
        self._running().pause()

    def resume(self) -> None:
        """Let what `pause` held go on."""
        self._running().resume()

    def cut(self) -> None:
        """Partition the regions; readers of a file notice no more than of a `pause`."""
        self._running().cut()

    def heal(self) -> None:
        """End the partition."""
        self._running().heal()

    def failover(self, *, lose_unreplicated: bool = True) -> None:
        """Promote the replica's file.

        The old primary stays alone, as after a partition, and still takes the writes of those
        who have not noticed; see `demote_old_primary`.

        Args:
            lose_unreplicated: what the replica does not have is lost. Otherwise the old primary
                is closed to writes and everything it has is applied first.

        Raises:
            ConfigurationError: it is promoted already.
        """
        if self._failed_over:
            raise ConfigurationError("the replica is the primary already: reset() first")
        if not lose_unreplicated:
            with EmbeddedStore(self.primary) as old:
                old.demote()
        self._running().promote(lose_unreplicated=lose_unreplicated)
        self._failed_over = True

    def demote_old_primary(self) -> None:
        """Make the primary before the `failover` a replica; what it alone had is lost.

        Raises:
            ConfigurationError: no failover happened.
        """
        if not self._failed_over:
            raise ConfigurationError("no failover happened: there is no old primary to demote")
        with EmbeddedStore(self.replica) as old:
            old.demote()
        self._link(self.primary, self.replica)

    def reseed(self) -> None:
        """Throw the replica's data away; it is copied again once nothing holds replication."""
        self._running().reseed()

    def wait_replicated(self, *, timeout_s: float = CATCH_UP_S) -> None:
        """Return once the replica has everything that the primary has at this moment.

        Raises:
            TimeoutError: it did not get it in time.
        """
        running = self._running()
        deadline = time.monotonic() + timeout_s
        while running.behind() != 0:
            if time.monotonic() >= deadline:
                msg = f"waited {timeout_s:g} s for {self.replica.name} to catch up, in vain"
                raise TimeoutError(msg)
            time.sleep(_POLL_S)

    def reset(self) -> None:
        """Undo lag and faults for the next test; keep the data.

        After a failover there are new files, at new paths.
        """
        if self._failed_over:
            self._build()
            return
        running = self._running()
        running.set_lag(self._lag_ms)
        running.heal()
        running.resume()
        running.catch_up()

    def close(self) -> None:
        """End replication; remove the files where they were temporary. Idempotent."""
        replicator, self._replicator = self._replicator, None
        if replicator is not None:
            replicator.close()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None
        self._paths = []

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:  # An interrupt as well: nothing is left running.
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _running(self) -> Replicator:
        if self._replicator is None:
            raise ConfigurationError("the topology does not run: use it as a context manager")
        return self._replicator

    def _path(self, number: int) -> Path:
        self._running()
        return self._paths[number]
