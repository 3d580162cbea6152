"""The names of publications: which publisher, and which of its publications.

A publisher's *incarnation* is a history that is never re-issued: one opening of one channel, one
exchange, at most a minute. Readers accept a publication when they saw all before it, so that
anything which may leave a hole ends the incarnation: a refused, returned or doubtful message.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from antipode import ConfigurationError, WriteId
from antipode.shim import SYSTEM_CLOCK

if TYPE_CHECKING:
    from collections.abc import Callable

SequenceBy = Literal["exchange", "routing_key"]

#: Seconds after which a publisher starts a new incarnation: a reader that begins to listen
#: cannot judge the incarnations that were created before, and this bounds for how long.
ROLL_S = 60.0
#: Incarnations that a channel keeps; over it the oldest ends. Reply queues have names of their own.
MAX_OPEN = 1024

_VERSION_7 = 0x7 << 76
_VARIANT = 0x2 << 62


def new_incarnation(wall_s: float) -> str:
    """A random UUID that states its creation (RFC 9562, version 7)."""
    number = int(wall_s * 1000) << 80 | secrets.randbits(80)
    number &= ~(0xF << 76) & ~(0x3 << 62)
    return str(UUID(int=number | _VERSION_7 | _VARIANT))


def birth_s(incarnation: str) -> float | None:
    """The Unix time at which an incarnation began, by its publisher's clock; None if unstated."""
    try:
        number = UUID(incarnation).int
    except ValueError:
        return None
    return (number >> 80) / 1000 if number >> 76 & 0xF == 0x7 else None  # noqa: PLR2004


@dataclass(slots=True)
class _Open:
    """An incarnation that is being published under."""

    key: str
    since_s: float
    last: int = 0


@dataclass(slots=True)
class Publications:
    """The incarnations of one opening of a channel. Thread-safe.

    Attributes:
        datastore: in which the publications are writes.
        sequence_by: what readers listen to: whole exchanges, or single routing keys. What is
            published to the default exchange is numbered for each queue.
    """

    datastore: str
    sequence_by: SequenceBy = "exchange"
    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    _open: OrderedDict[tuple[str, str], _Open] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Refuse what cannot be numbered by."""
        if self.sequence_by not in ("exchange", "routing_key"):
            msg = f"sequence_by must be 'exchange' or 'routing_key', not {self.sequence_by!r}"
            raise ConfigurationError(msg)

    def next(self, exchange: str, routing_key: str) -> WriteId:
        """The name of the next publication; it must be published or voided."""
        by_key = self.sequence_by == "routing_key" or not exchange
        lane = exchange, routing_key if by_key else ""
        with self._lock:
            held = self._open.get(lane)
            now_s = self.monotonic()
            if held is None or now_s - held.since_s > ROLL_S:
                held = self._open[lane] = _Open(new_incarnation(self.wall()), now_s)
                self._open.move_to_end(lane)
                if len(self._open) > MAX_OPEN:
                    self._open.popitem(last=False)
            held.last += 1
            return WriteId(self.datastore, held.key, held.last, SYSTEM_CLOCK.hour())

    def void(self, write: WriteId) -> None:
        """End the incarnation of *write*, which may never be routed: what follows starts again."""
        with self._lock:
            for lane, held in self._open.items():
                if held.key == write.key:
                    del self._open[lane]
                    return
