"""Waiting for a condition by polling, always under a deadline."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ._errors import TopologyTimeout

if TYPE_CHECKING:
    from collections.abc import Callable


def wait_until(
    condition: Callable[[], bool],
    *,
    what: str,
    timeout_s: float,
    interval_s: float = 0.005,
) -> None:
    """Return once ``condition()`` holds.

    Args:
        condition: asked at once, then every ``interval_s`` seconds.
        what: completes the sentence "waited for ..." in the error.
        timeout_s: seconds after which to give up.
        interval_s: seconds between two questions.

    Raises:
        TopologyTimeout: it did not hold in time.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            raise TopologyTimeout(f"waited {timeout_s:g} s for {what}, in vain")
        time.sleep(interval_s)
