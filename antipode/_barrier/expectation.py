"""When a watcher polls next, by how long earlier waits lasted: in integers, without a clock."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The longest and the shortest pause, in microseconds.
MOST_US, LEAST_US = 50_000, 1_000
#: Waits that are remembered.
MOST_WAITS = 16
#: The widest gap between two polls near the expected end.
MOST_CLOSE_US = 2_000


class Expectation:
    """What the waits at one endpoint lasted, and when to poll next therefore.

    Poll at once, then at the longest pauses until shortly before the first wait is expected to
    end, then close by. It decides when to ask, never what is true: what ends sooner than expected,
    or later, is seen after 50 ms at most. Durations and times are in microseconds, times of any
    clock.
    """

    def __init__(self) -> None:
        """Nothing is learned."""
        self._waits: deque[int] = deque(maxlen=MOST_WAITS)
        self._least_us = 0
        self._expected: tuple[int, ...] = ()

    def learn(self, after_us: int, until_us: int) -> None:
        """Take in that a wait ended: a poll *after_us* into it did not, one *until_us* did.

        The end lies between the two, in the middle as far as is known. After a longer pause it may
        lie much earlier: the next wait is polled earlier, too. A wait that ended before all that
        was expected says that the lag has changed: nothing is known any more.
        """
        width_us, close_us = until_us - after_us, _close_us(until_us)
        if self._waits and until_us < self._least_us and width_us > _wide_us(until_us):
            self._waits.clear()
            self._expected = ()
            return
        is_narrow = width_us <= 4 * close_us
        back_us = width_us // 2 if is_narrow else max(close_us, width_us // 4)
        self._waits.append(until_us - back_us)
        waits = sorted(self._waits)
        self._least_us = waits[0]
        paid = min(waits[len(waits) // 2] // MOST_US, 6)  # Polls that pauses of 50 ms cost.
        self._expected = tuple(waits[len(waits) * paid // 12 :])

    def next_us(self, now_us: int, joined: Sequence[int]) -> int:
        """When to poll next, where all that wait were polled in vain *now_us*.

        Args:
            now_us: the time.
            joined: when each of them began to wait, in order; not empty.
        """
        expected = self._expected
        if not expected:
            pause_us = max(LEAST_US, (now_us - joined[-1]) // 10)
            return now_us + min(pause_us, MOST_US)
        next_us = min(self._expected_us(now_us, joined), now_us + MOST_US)
        overdue = bisect_right(joined, now_us - expected[-1])
        if overdue:  # The youngest that has waited longer than all before it.
            waited_us = now_us - joined[overdue - 1]
            pause_us = max(_close_us(waited_us), (waited_us - expected[-1]) // 2)
            next_us = min(next_us, now_us + pause_us)
        return max(next_us, now_us + LEAST_US)

    def _expected_us(self, now_us: int, joined: Sequence[int]) -> int:
        """When the next wait is expected to end, or a part of the way there."""
        first_us = wait_us = 0
        for each in self._expected:
            later = bisect_right(joined, now_us - each)
            if later < len(joined) and (not wait_us or joined[later] + each < first_us):
                first_us, wait_us = joined[later] + each, each
        if not wait_us:
            return now_us + MOST_US
        last_us, until_us = first_us, first_us + _close_us(wait_us)
        for each in self._expected:  # One poll for all that are expected close to the first.
            sooner = bisect_right(joined, until_us - each)
            if sooner:
                last_us = max(last_us, joined[sooner - 1] + each)
        left_us = last_us - now_us
        return now_us + left_us // -(-left_us // MOST_US)


def _close_us(waited_us: int) -> int:
    """The gap between two polls near the expected end of a wait."""
    return min(max(waited_us // 100, LEAST_US), MOST_CLOSE_US)


def _wide_us(waited_us: int) -> int:
    """The widest gap between polls where nothing is learned, or near the expected end."""
    return max(2 * _close_us(waited_us), waited_us // 10 + 2)
