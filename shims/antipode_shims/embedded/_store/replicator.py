"""What carries one region's log to another region's file, late on purpose."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from antipode import ConfigurationError

from .file import StoreUnavailable, checked_path
from .link import Link, Promoted
from .store import EmbeddedStore

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from typing_extensions import Self

_logger = logging.getLogger("antipode")

_LOOK_LEAST_S = 0.0005
_LOOK_MOST_S = 0.005
_IDLE_LOOK_S = 0.001
_IDLE_AFTER_S = 0.1
_RETRY_S = 0.05
_PATIENCE_S = 1.0
_HALTED_S = 1.0


def _nanoseconds(lag_ms: float) -> int:
    if not 0 <= lag_ms < float("inf"):
        msg = f"the lag must be a number of milliseconds from 0 on, not {lag_ms}"
        raise ConfigurationError(msg)
    return int(lag_ms * 1e6)


class Replicator:
    """Applies a primary's log to a replica's file, in order, a set time after each commit.

    A context manager that runs a thread while the block lasts; ``python -m
    antipode_shims.embedded`` runs it as a process. The delay is kept within a millisecond or two,
    on one machine since its last start: it is measured on CLOCK_MONOTONIC. Thread-safe.

    Attributes:
        source: the primary's file.
        target: the replica's file.
        error: what keeps it from replicating now, for a person; None when nothing does.
    """

    def __init__(
        self,
        source: str | PathLike[str],
        target: str | PathLike[str],
        *,
        lag_ms: float = 0.0,
    ) -> None:
        """Replicate *source* to *target*, which is created where it is missing.

        Args:
            source: the primary's file; it may be created later.
            target: the replica's file.
            lag_ms: milliseconds from a commit on the source until the target shows it.

        Raises:
            ConfigurationError: a path cannot be a file's, both are the same, or the lag is
                negative.
            StoreUnavailable: the target cannot be created.
        """
        self.source: Path = checked_path(source)
        self.target: Path = checked_path(target)
        if self.source == self.target:
            msg = f"source and target are the same file: {str(self.source)!r}"
            raise ConfigurationError(msg)
        self._lag_ns = _nanoseconds(lag_ms)
        self.error: str | None = None
        self._replica = EmbeddedStore(self.target, create="replica")
        self._link = Link(self.source, self.target)
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._closing = self._paused = self._cut = self._ended = False
        self._changed_s = self._failing_since_s = time.monotonic()
        self._warned = False

    def start(self) -> None:
        """Begin to replicate, in a thread of its own."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name=f"antipode-replicator-{self.target.name}", daemon=True
            )
            self._thread.start()

    def set_lag(self, ms: float) -> None:
        """Delay by *ms* milliseconds from now on, what is on its way included.

        Raises:
            ConfigurationError: it is negative.
        """
        lag_ns = _nanoseconds(ms)
        with self._lock:
            self._lag_ns = lag_ns
        self._wake.set()

    def pause(self) -> None:
        """Apply nothing until `resume`; when this returns, nothing more is applied."""
        with self._lock:
            self._paused = True

    def resume(self) -> None:
        """Go on after `pause`."""
        with self._lock:
            self._paused = False
        self._wake.set()

    def cut(self) -> None:
        """Part the regions: what is on its way is dropped, to be fetched again after `heal`."""
        with self._lock:
            self._cut = True
            self._link.forget()

    def heal(self) -> None:
        """End the partition."""
        with self._lock:
            self._cut = False
        self._wake.set()

    def reseed(self) -> None:
        """Throw the replica's data away; it is copied again as soon as nothing halts it.

        The replica starts from position 0 and a new incarnation. While the regions are cut it
        has no history either, and everything is ``not_yet`` visible there.

        Raises:
            ConfigurationError: the target is a primary's file.
            StoreUnavailable: a file is not usable.
        """
        with self._lock:
            self._link.wipe(chain=not self._cut)
        self._wake.set()

    def promote(self, *, lose_unreplicated: bool = True) -> str:
        """Make the target the primary, and end: a fail-over. The id of its new history.

        Args:
            lose_unreplicated: leave out what is still on its way; else apply it first, whatever
                the lag. Writes to the source after that are lost either way: fence it before
                (``EmbeddedStore(source).demote()``).

        Raises:
            StoreUnavailable: a file is not usable.
        """
        with self._lock:
            if not lose_unreplicated:
                self.catch_up()
            self._ended = True
            return self._replica.promote()

    def catch_up(self) -> None:
        """Apply at once whatever the source has, in spite of lag, pause and cut.

        Raises:
            ConfigurationError: the target is a primary's file.
            StoreUnavailable: a file is not usable.
        """
        with self._lock:
            while self._link.fetch() or self._link.apply(time.monotonic_ns()):
                pass

    def behind(self) -> int:
        """How many entries of the source the target does not have.

        Raises:
            StoreUnavailable: a file is not usable.
        """
        with EmbeddedStore(self.source) as source:
            return max(source.position() - self._replica.position(), 0)

    def _run(self) -> None:
        while not self._closing:
            self._wake.wait(self._step())
            self._wake.clear()

    def _step(self) -> float:
        """Fetch and apply what is due; seconds until the next step."""
        with self._lock:
            if self._paused or self._cut or self._ended:
                return _HALTED_S
            try:
                if self._link.fetch():
                    self._changed_s = time.monotonic()
                while self._link.apply(time.monotonic_ns() - self._lag_ns):
                    pass
            except Promoted:
                _logger.info("embedded replica %s was promoted: replication ends", self.target)
                self._ended = True
                return _HALTED_S
            except StoreUnavailable as error:
                self._failed(str(error))
                return _RETRY_S
            self.error = None
            return self._nap_s()

    def _failed(self, error: str) -> None:
        """Note what is wrong, and warn of it when it lasts: a source may just be being made."""
        if self.error is None:
            self._failing_since_s, self._warned = time.monotonic(), False
        self.error = error
        self._link.forget()
        if not self._warned and time.monotonic() - self._failing_since_s > _PATIENCE_S:
            self._warned = True
            _logger.warning("embedded replication waits: %s", error)

    def _nap_s(self) -> float:
        """Until the next entry is due, or until it is time to ask for new ones.

        An entry is seen in time as long as polls come more often than the lag is long.
        """
        look_s = min(max(self._lag_ns / 4e9, _LOOK_LEAST_S), _LOOK_MOST_S)
        if time.monotonic() - self._changed_s > _IDLE_AFTER_S:
            look_s = max(look_s, _IDLE_LOOK_S)
        next_ns = self._link.next_ns
        if next_ns is None:
            return look_s
        return min(max((next_ns + self._lag_ns - time.monotonic_ns()) / 1e9, 0.0), look_s)

    def close(self) -> None:
        """End the thread and release the files. Idempotent."""
        self._closing = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            self._link.close()
            self._replica.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
