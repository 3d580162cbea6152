"""A lag that wanders: how late replication is depends on the moment, as it does over real links."""

from __future__ import annotations

import math
import random
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Self

#: How long a lag lasts. Shorter than most lags, so that many are seen in a run.
HOLD_S = 0.1


def factors(spread: float, seed: int) -> Iterator[float]:
    """By how much lags differ from their median, log-normal: *spread* is their logarithm's."""
    generator = random.Random(seed)
    while True:
        yield math.exp(spread * generator.gauss(0, 1))


class Wander:
    """Sets a lag, and another one every `HOLD_S` from then on, if there is a *spread*.

    What is on its way when a lag ends is delayed by the next one.
    """

    def __init__(
        self, set_lag: Callable[[float], None], median_ms: float, spread: float, seed: int
    ) -> None:
        """Set the median."""
        self._set_lag = set_lag
        self._factors = factors(spread, seed)
        self.about(median_ms)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wander", daemon=True)
        if spread:
            self._thread.start()

    def about(self, median_ms: float) -> None:
        """Wander about another median from now on."""
        self._median_ms = median_ms
        self._set_lag(median_ms)

    def _run(self) -> None:
        while not self._ended.wait(HOLD_S):
            self._set_lag(self._median_ms * next(self._factors))

    def close(self) -> None:
        """Leave the lag as it is. Idempotent."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def __enter__(self) -> Self:
        """Use as a context manager: it wanders inside the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.close()
