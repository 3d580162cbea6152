"""Paces of polling, and lags to wait for: simulated, one poll takes no time."""

from __future__ import annotations

import math
import random
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from antipode._barrier.expectation import LEAST_US, MOST_US, Expectation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    #: How long a wait lasts, in milliseconds.
    Lag = Callable[[random.Random], float]

_MS = 1_000
#: How wide 90 % of the waits that count as learned lie, in milliseconds, as a deviation.
_DEVIATION_MS = 16 / 2 / 1.645


class Pace(Protocol):
    """When to poll next; times in microseconds."""

    def learn(self, after_us: int, until_us: int) -> None:
        """Take in that a wait ended between these two polls of it."""
        ...

    def next_us(self, now_us: int, joined: Sequence[int]) -> int:
        """When to poll next, where what began to wait then was polled in vain now."""
        ...


class Share:
    """A share of the youngest wait, with nothing learned."""

    def __init__(self, share: float, jitter: float = 0.0) -> None:
        """Pause for *share* of it, and randomly for less, by *jitter*."""
        self._share, self._jitter = share, jitter
        self._random = random.Random(1)

    def learn(self, after_us: int, until_us: int) -> None:
        """Learn nothing."""

    def next_us(self, now_us: int, joined: Sequence[int]) -> int:
        """After a pause by the youngest."""
        longest_us = min(max(LEAST_US, (now_us - joined[-1]) * self._share), MOST_US)
        return now_us + int(longest_us * self._random.uniform(1 - self._jitter, 1))


class Smoothed:
    """As TCP estimates round trips: a smoothed mean and deviation, and polls 2 ms apart there."""

    def __init__(self) -> None:
        """Nothing is learned."""
        self._mean_us = self._deviation_us = 0.0

    def learn(self, after_us: int, until_us: int) -> None:
        """Smooth the middle of the two in."""
        wait_us = (after_us + until_us) / 2
        if not self._mean_us:
            self._mean_us, self._deviation_us = wait_us, wait_us / 10
            return
        self._deviation_us += (abs(wait_us - self._mean_us) - self._deviation_us) / 4
        self._mean_us += (wait_us - self._mean_us) / 8

    def next_us(self, now_us: int, joined: Sequence[int]) -> int:
        """By the wait that is expected first."""
        if not self._mean_us:
            return Share(0.1).next_us(now_us, joined)
        return min(now_us + self._pause_us(now_us - each) for each in joined)

    def _pause_us(self, waited_us: int) -> int:
        first_us = self._mean_us - 2 * self._deviation_us
        last_us = self._mean_us + 2 * self._deviation_us
        if waited_us < first_us - LEAST_US:
            left_us = first_us - waited_us
            return int(left_us / math.ceil(left_us / MOST_US))
        late_us = waited_us - last_us
        return int(min(max(2 * _MS, late_us / 2), MOST_US))


#: The paces that were compared; the last is the library's.
PACES: dict[str, Callable[[], Pace]] = {
    "2 % of the youngest": lambda: Share(0.02, 0.25),
    "10 % of the youngest": lambda: Share(0.1),
    "smoothed mean": Smoothed,
    "last 16 waits": Expectation,
}


def constant(lag_ms: float) -> Lag:
    """Always the same."""
    return lambda _: lag_ms


def normal(lag_ms: float) -> Lag:
    """90 % within 16 ms."""
    return lambda numbers: numbers.gauss(lag_ms, min(_DEVIATION_MS, lag_ms / 4))


def log_normal(lag_ms: float, sigma: float | None = None) -> Lag:
    """90 % within 16 ms, or as *sigma* has it."""
    found = sigma if sigma is not None else min(_DEVIATION_MS / lag_ms, 0.3)
    return lambda numbers: lag_ms * numbers.lognormvariate(0, found)


def bimodal(lag_ms: float, other_ms: float) -> Lag:
    """One of the two, and up to 1 ms."""
    return lambda numbers: numbers.choice((lag_ms, other_ms)) + numbers.random()


def uniform(least_ms: float, most_ms: float) -> Lag:
    """Anything between the two."""
    return lambda numbers: numbers.uniform(least_ms, most_ms)


@dataclass(frozen=True, slots=True)
class Found:
    """What a pace came to.

    Attributes:
        polls: in the mean, of one wait.
        late_ms: the median of how much later a wait ended than it could.
        late_99_ms: its 99th percentile.
        most_late_ms: the longest.
        polls_s: polls a second.
    """

    polls: float
    late_ms: float
    late_99_ms: float
    most_late_ms: float
    polls_s: float


def simulated(pace: Pace, arrivals: Iterable[tuple[int, int]], *, unlearned: int = 0) -> Found:
    """What *pace* makes of waits that each join at a microsecond and could end after some more.

    The first *unlearned* waits are left out of the figures, but for polls a second.
    """
    waits = deque(sorted(arrivals))
    began_us, count = waits[0][0], len(waits)
    ends: dict[int, list[int]] = {}
    joined: list[int] = []
    late: list[int] = []
    polls = skipped = polled_us = now_us = 0
    next_us: float = math.inf
    while waits or joined:
        if waits and waits[0][0] <= next_us:
            now_us, lag_us = waits.popleft()
            insort(joined, now_us)
            ends.setdefault(now_us, []).append(now_us + lag_us)
        else:
            now_us = int(next_us)
        polls += 1
        late += _ended(pace, joined, ends, polled_us, now_us)
        if not skipped and len(late) >= unlearned:
            skipped = polls
        polled_us = now_us
        next_us = pace.next_us(now_us, joined) if joined else math.inf
    counted = sorted(late[unlearned:])
    return Found(
        polls=(polls - (skipped if unlearned else 0)) / len(counted),
        late_ms=counted[len(counted) // 2] / _MS,
        late_99_ms=counted[len(counted) * 99 // 100] / _MS,
        most_late_ms=counted[-1] / _MS,
        polls_s=polls / max((now_us - began_us) / 1e6, 1.0) if count > 1 else float(polls),
    )


def _ended(
    pace: Pace, joined: list[int], ends: dict[int, list[int]], polled_us: int, now_us: int
) -> list[int]:
    """End what can end; how late each did. One that was polled in vain is learned."""
    late, learned = [], []
    for since_us in list(joined):
        left = ends[since_us]
        if left[0] > now_us:
            continue
        late.append(now_us - left.pop(0))
        del joined[bisect_left(joined, since_us)]
        if not left:
            del ends[since_us]
        if since_us <= polled_us:
            learned.append(since_us)
    if learned:
        since_us = learned[len(learned) // 2]
        pace.learn(polled_us - since_us, now_us - since_us)
    return late


def one_after_the_other(lag: Lag, count: int) -> list[tuple[int, int]]:
    """*count* waits that do not overlap."""
    numbers = random.Random(7)
    apart_us = 10_000_000
    return [(apart_us * nth, _lag_us(lag, numbers)) for nth in range(1, count + 1)]


def overlapping(lag: Lag, per_s: float, seconds: float) -> list[tuple[int, int]]:
    """Waits that join at random, so many a second."""
    numbers = random.Random(7)
    found: list[tuple[int, int]] = []
    at_us = 1
    while at_us < seconds * 1e6:
        at_us += 1 + int(numbers.expovariate(per_s) * 1e6)
        found.append((at_us, _lag_us(lag, numbers)))
    return found


def _lag_us(lag: Lag, numbers: random.Random) -> int:
    return max(200, int(lag(numbers) * _MS))
