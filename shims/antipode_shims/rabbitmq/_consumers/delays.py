"""Delay queues: how long a deferred message waits on the broker, and where. Pure.

RabbitMQ expires messages at the head of a queue alone, so that one queue cannot hold messages of
different delays: there is one for each power of two. What expires goes back to the work queue by
the default exchange, at its tail. A delay queue is named after all that it is declared with, for
a queue cannot be declared in two ways.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: How long a delay queue outlives the last declaration, on top of its delay. The broker deletes
#: an unused queue with all that is in it, so that what is published must be sure to expire first.
SPARE_S = 600.0
_FRESH, _SURE = 0.5, 0.9
_MOST_NAME = 255
_LEAST_DELAY_S = 0.001
_MOST_DELAY_S = 86_400.0
_MOST_DOUBLINGS = 32


@dataclass(frozen=True, slots=True)
class Delays:
    """The delay queues of one work queue.

    Attributes:
        queue: the work queue.
        least_s: the shortest delay, and the first.
        most_s: the longest.
        arguments: of the delay queues, on top of ours.
    """

    queue: str
    least_s: float
    most_s: float
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        """Refuse delays that are none.

        Raises:
            ConfigurationError: not 1 ms <= least <= most <= one day.
        """
        if not _LEAST_DELAY_S <= self.least_s <= self.most_s <= _MOST_DELAY_S:
            msg = (
                f"delay_s must be (least, most), between {_LEAST_DELAY_S} and {_MOST_DELAY_S:.0f} "
                f"seconds, not {(self.least_s, self.most_s)}"
            )
            raise ConfigurationError(msg)

    def pick_ms(self, eta_s: float | None, attempts: int) -> int:
        """The delay for a message that was deferred *attempts* times already.

        It doubles each time, and is not shorter than what the store estimates.
        """
        grown_s = self.least_s * 2 ** min(attempts, _MOST_DOUBLINGS)
        wanted_s = max(grown_s, eta_s if eta_s is not None and math.isfinite(eta_s) else 0.0)
        delay_s = self.least_s
        while delay_s < wanted_s and delay_s < self.most_s:
            delay_s *= 2
        return round(min(delay_s, self.most_s) * 1000)

    def name(self, delay_ms: int) -> str:
        """The delay queue of this delay."""
        apart = ""
        if self.arguments:
            text = json.dumps(dict(self.arguments), sort_keys=True, default=str)
            apart = f".{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        return within(f"antipode.delay.{delay_ms}{apart}.{self.queue}")

    def declared(self, delay_ms: int) -> dict[str, Any]:
        """The arguments of that queue. Whoever changes them changes the name as well."""
        return {
            **self.arguments,
            "x-message-ttl": delay_ms,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": self.queue,
            "x-expires": delay_ms + round(SPARE_S * 1000),
        }


def within(name: str) -> str:
    """*name*, shortened to what a queue may be called, and still its own."""
    if len(name.encode()) <= _MOST_NAME:
        return name
    start = name.encode()[: _MOST_NAME - 65].decode(errors="ignore")
    return f"{start}.{hashlib.sha256(name.encode()).hexdigest()}"


@dataclass(slots=True)
class Leases:
    """Which delay queues are sure to outlive what is published to them.

    A queue whose declaration was sent at some moment, by this client's clock, lives for its delay
    and :data:`SPARE_S` from then on at least. So a message that was confirmed before the spare
    time was over has expired, and is back in the work queue, before its delay queue can.
    """

    monotonic: Callable[[], float] = time.monotonic
    _since_s: dict[str, float] = field(default_factory=dict[str, float])

    def begin(self, name: str, at_s: float) -> None:
        """Note a declaration that was sent at *at_s*."""
        self._since_s[name] = at_s

    def fresh(self, name: str) -> bool:
        """Whether there is ample time to publish to the queue."""
        return self._spent(name) < _FRESH

    def sure(self, name: str) -> bool:
        """Whether a message that was confirmed by now expires before the queue does."""
        return self._spent(name) < _SURE

    def _spent(self, name: str) -> float:
        """The share of the spare time that is over."""
        since_s = self._since_s.get(name)
        return 1.0 if since_s is None else (self.monotonic() - since_s) / SPARE_S

    def end(self, name: str) -> None:
        """Declare it again before the next publication."""
        self._since_s.pop(name, None)
