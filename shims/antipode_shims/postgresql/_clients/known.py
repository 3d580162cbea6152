"""What a server, and each snapshot that outlasts its statement, is known to show. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode.shim import Floor

#: How much of one kind is remembered of a connection.
MOST = 64


@dataclass(frozen=True)
class Known:
    """What a server showed.

    Attributes:
        positions: the largest position that was visible, by log.
        promises: ids of those that had a record.
        floor: what was demanded last, all of which was shown.
    """

    positions: Mapping[str, int]
    promises: frozenset[str] = frozenset()
    floor: Floor | None = None

    def covers(self, held: Floor) -> bool:
        """Whether it shows all that *held* demands."""
        if held.within(self.floor):
            return True
        seen = all(
            isinstance(write.version, int) and self.positions.get(write.key, -1) >= write.version
            for write in held.writes
        )
        return seen and self.promises.issuperset(promise.id for promise in held.promises)


NOTHING = Known({})


class Cursors:
    """The cursors that a connection has open at its server, by their names.

    Those that only a text names have none: with an empty name, the oldest of them counts. So does
    the first call of a transaction that may have opened one.

    Attributes:
        some: whether there may be any.
    """

    def __init__(self) -> None:
        """None."""
        self.some = False
        self._declared: dict[str, Known] = {}
        self._held: set[str] = set()
        self._opened: Known | None = None

    def declare(self, name: str, shown: Known, *, holds: bool) -> None:
        """A cursor is declared that shows what is *shown*, and *holds* beyond its transaction."""
        self.some = True
        if len(self._declared) >= MOST:  # One whose name is forgotten shows nothing.
            self._declared, self._held = {"": NOTHING}, {""}
        if name or name not in self._declared:
            self._declared[name] = shown
        if holds:
            self._held.add(name)

    def open(self, shown: Known) -> None:
        """A function is called that may open one, which shows what is *shown*."""
        self.some = True
        if self._opened is None:
            self._opened = shown

    def close(self, name: str) -> None:
        """The cursor of this *name* is closed."""
        self._declared.pop(name, None)
        self._held.discard(name)

    def end_transaction(self) -> None:
        """The transaction is over, with the cursors that do not hold beyond it."""
        if self._declared:
            self._declared = {name: self._declared[name] for name in self._held}
        self._opened = None
        self.some = bool(self._declared)

    def shown_by(self, name: str) -> list[Known]:
        """What the cursors show of which one may have this *name*; none where none is known."""
        if name and name in self._declared:
            return [self._declared[name]]
        found = (self._declared.get(""), self._opened)
        return [each for each in found if each is not None]
