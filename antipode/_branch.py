"""The scope of a branch that fulfils a promise: all of its request's but that promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._scope import Scope

if TYPE_CHECKING:
    from ._write_id import Promise


class Branch(Scope):
    """A scope that begins with what another one has, and ends by joining it."""

    def __init__(self, outer: Scope, promise: Promise) -> None:
        """Begin with everything of *outer* but *promise*, which never enters here."""
        super().__init__()
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
        lineage, _, deferred, floors, _ = self.parts()
        outer.merge(lineage)
        for sample in deferred:
            outer.defer(sample)
        for floor in floors:
            outer.set_floor(floor)
