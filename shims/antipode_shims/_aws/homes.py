"""What the regions that took writes have said about them. No I/O."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from antipode import WriteId

#: After how many polls that missed a write its own region is asked about it; then after twice as
#: many, and so on: it may have been overwritten since.
FIRST_ASKED = 8
#: Writes of which is remembered what their regions said.
MOST_REMEMBERED = 10_000

Said = TypeVar("Said")


@dataclass(slots=True)
class _Missed(Generic[Said]):
    """A write that polls have missed.

    Attributes:
        polls: how many.
        due: after how many its region is asked.
        home: what that said last.
        cause: why it said nothing.
        seen: whether a poll found there what it deletes.
    """

    polls: int = 0
    due: int = FIRST_ASKED
    home: Said | None = None
    cause: str = ""
    seen: bool = False


@dataclass
class Homes(Generic[Said]):
    """What the regions of writes that are waited for have said. Thread-safe."""

    _missed: OrderedDict[WriteId, _Missed[Said]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def said(self, write: WriteId) -> Said | None:
        """What the region of *write* has of it, as far as it was asked."""
        held = self._missed.get(write)
        return None if held is None else held.home

    def cause(self, write: WriteId) -> str:
        """Why that is not known, where it was asked for."""
        held = self._missed.get(write)
        return "" if held is None else held.cause

    def saw(self, write: WriteId) -> None:
        """Note that a poll found what *write* deletes."""
        with self._lock:
            self._missed.setdefault(write, _Missed()).seen = True

    def has_seen(self, write: WriteId) -> bool:
        """Whether a poll found what *write* deletes."""
        held = self._missed.get(write)
        return held is not None and held.seen

    def missed(self, write: WriteId, *, doubtful: bool = False) -> bool:
        """Note that a poll missed *write*; whether its region is to be asked now.

        Args:
            write: what was asked for.
            doubtful: whether the first poll that misses it is reason enough.
        """
        with self._lock:
            held = self._missed.setdefault(write, _Missed())
            held.polls += 1
            asks = held.polls >= held.due or (doubtful and held.polls == 1)
            if asks:
                held.due = max(2 * held.polls, FIRST_ASKED)
            while len(self._missed) > MOST_REMEMBERED:
                self._missed.popitem(last=False)
            return asks

    def learn(self, write: WriteId, home: Said | None, cause: str = "") -> None:
        """Merge what the region of *write* said."""
        with self._lock:
            if (held := self._missed.get(write)) is not None:
                held.home, held.cause = home, cause

    def forget(self, writes: Iterable[WriteId]) -> None:
        """Forget writes that are not waited for any more."""
        with self._lock:
            for write in writes:
                self._missed.pop(write, None)
