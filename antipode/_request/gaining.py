"""A scope that knows what was added to it, apart from what it began with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode._lineage.lineage import Lineage

from .lineage_text import kept
from .scope import Scope, stamped

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode._lineage.write_id import WriteId

_EMPTY = Lineage()


class Gaining(Scope):
    """A scope that gathers for others.

    What was added is kept for itself: a difference would leave out what was read and is equal to
    what the scope began with.
    """

    #: Whether it wrote, or may have: to run its block again would do so twice.
    wrote = False
    _gained = _EMPTY

    def __init__(self, lineage: Lineage | None = None) -> None:
        """Begin with *lineage*, of which nothing counts as added."""
        super().__init__(lineage)
        self._samples: list[Callable[[], Lineage]] = []

    @property
    def gained(self) -> Lineage:
        """What was added, with how many branches still run; what reads deferred is sampled now."""
        _ = self.lineage  # What came meanwhile is decoded, and what was deferred is sampled.
        if self.stopped:
            return _EMPTY
        for sample in self._samples:
            self._gain(self._noted(sample()))  # It returns the same again.
        gained = self._gained
        return gained.branching(len(self._branches)) if self._branches else gained

    def append(self, *writes: WriteId) -> Lineage:
        """Add *writes*."""
        entries = tuple(map(stamped, writes))
        if not all(each.covering for each in entries):
            self.wrote = True
        found = super().append(*entries)
        self._gain(Lineage(entries))
        return found

    def merge(self, lineage: Lineage) -> Lineage:
        """Add everything of *lineage*."""
        lineage = self._noted(lineage)
        found = super().merge(lineage)
        self._gain(lineage)
        return found

    def mark_incomplete(self, subject: str, reason: str) -> Lineage:
        """Note that something of *subject* is missing, and why: it may have been written."""
        self.wrote = True
        return super().mark_incomplete(subject, reason)

    def defer(self, sample: Callable[[], Lineage]) -> None:
        """Add what *sample* returns, when somebody reads the lineage."""
        super().defer(sample)
        self._samples.append(sample)

    def later(self, sample: Callable[[], Lineage]) -> None:
        """As :meth:`defer`, without a lock."""
        super().later(sample)
        self._samples.append(sample)

    def share_allowance(self, other: Scope) -> None:
        """Spend the time that *other* may wait."""
        self._allowance = other.allowance()

    def came_later(self, sample: Callable[[], Lineage]) -> None:
        """Add what *sample* returns as something that it began with."""
        super().defer(sample)

    def _start_from(self, came: Lineage) -> None:
        super()._start_from(came)  # Under the lock.
        self._gained = kept(self._gained.merge(self._noted(came)))

    def _gain(self, lineage: Lineage) -> None:
        with self._lock:
            if not self.stopped:
                self._gained = kept(self._gained.merge(lineage))
