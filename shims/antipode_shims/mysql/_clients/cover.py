"""Positions that are sampled later on the application's connection, if anybody needs them."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from antipode import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_shims.mysql._shim.base import BaseMySQLShim


class Gate:
    """Keeps whoever samples on a connection out while the application uses it."""

    __slots__ = ("_gate", "_holder")

    def __init__(self) -> None:
        """Nobody uses it."""
        self._gate = threading.Lock()
        self._holder: int | None = None

    def take(self) -> None:
        """The application is about to use the connection; whoever samples on it ends first."""
        self._gate.acquire()
        self._holder = threading.get_ident()

    def give(self) -> None:
        """The application's reply has come, all of it. Idempotent."""
        if self._holder is not None:
            self._holder = None
            self._gate.release()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """A block that uses the connection, as the whole of a command or a part of one."""
        if self._holder == threading.get_ident():
            yield
            return
        self.take()
        try:
            yield
        finally:
            self.give()

    @contextmanager
    def between(self, timeout_s: float) -> Iterator[bool]:
        """A block between two of the application's commands; whether it could be begun in time."""
        own = self._holder == threading.get_ident()  # Its reply is being read: waiting is no use.
        taken = not own and self._gate.acquire(timeout=timeout_s)
        try:
            yield taken
        finally:
            if taken:
                self._gate.release()


class Cover:
    """What the reads of one connection may have seen, sampled there once, at or after them.

    Thread-safe; called by whoever uses the lineage first, or before the connection is given back.
    """

    def __init__(self, shim: BaseMySQLShim, ask: Callable[[], Lineage | None]) -> None:
        """Sample by *ask*, which gives None where the connection cannot be asked any more."""
        self._shim = shim
        self._ask: Callable[[], Lineage | None] | None = ask
        self._lineage = Lineage()
        self._lock = threading.Lock()

    def __call__(self) -> Lineage:
        """The covering position, or a lineage that says that there is none."""
        with self._lock:
            if self._ask is not None:
                self._settle(self._ask())
            return self._lineage

    def settle(self, lineage: Lineage | None) -> None:
        """What is known by now; None where it cannot be known any more. Only the first counts."""
        with self._lock:
            if self._ask is not None:
                self._settle(lineage)

    def _settle(self, lineage: Lineage | None) -> None:
        self._ask = None
        self._lineage = self._shim.read_at(lineage)

    @property
    def settled(self) -> bool:
        """Whether it was sampled: later reads need another one."""
        return self._ask is None
