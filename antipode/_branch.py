"""The scope of a branch that fulfils a promise: all of its request's but that promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._scope import Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._lineage import Lineage
    from ._write_id import Promise, WriteId


class Branch(Scope):
    """A scope that begins with what another one has, and ends by joining it."""

    def __init__(self, outer: Scope, promise: Promise) -> None:
        """Begin with everything of *outer* but *promise*, which never enters here."""
        super().__init__()
        #: The scope that this one has joined; what a thread adds afterwards goes there, too.
        self._joined: Scope | None = None
        self.answered = outer.answered
        self.own = outer.own | {promise.id}
        self.notes = outer.notes
        lineage, self._came, self._deferred, floors, self._branches = outer.parts()
        self._lineage = self._noted(lineage)
        self._floors = {floor.datastore: floor.without(self.own) for floor in floors}

    def join(self, outer: Scope) -> None:
        """Hand over what was gathered: the lineage, the floors, and whether it was stopped."""
        if self.stopped:
            outer.stop()
            return
        self.end()
        self._joined = outer  # First: what is added from now on is handed on, or is in the parts.
        lineage, _, deferred, floors, _ = self.parts()
        outer.merge(lineage)
        for sample in deferred:
            outer.defer(sample)
        for floor in floors:
            outer.set_floor(floor)

    def append(self, *writes: WriteId) -> Lineage:
        """Add *writes*, also where this scope has joined."""
        return self._handed_on(super().append(*writes))

    def merge(self, lineage: Lineage) -> Lineage:
        """Add everything of *lineage*, also where this scope has joined."""
        return self._handed_on(super().merge(lineage))

    def defer(self, sample: Callable[[], Lineage]) -> None:
        """Add what *sample* returns when somebody looks, also where this scope has joined."""
        super().defer(sample)
        if self._joined is not None:
            self._joined.defer(sample)

    def later(self, sample: Callable[[], Lineage]) -> None:
        """As :meth:`defer`, without a lock."""
        if self._joined is None:
            super().later(sample)
        else:
            self._joined.later(sample)

    def _handed_on(self, lineage: Lineage) -> Lineage:
        if self._joined is not None:
            self._joined.merge(lineage)
        return lineage
