"""Load: requests that are sent when they are due, whatever became of those before.

A plan in Python (`Request`, `arrivals`), a driver in Go on vegeta's library, and what came back
(`Answer`) for Python to judge. Latencies count from when a request was due, not from when the
driver got to it. Vegeta is under MIT's licence; what it needs is under that, BSD's or Apache's. The
driver is built once, of pinned sources, into the cache of the user; it needs Go, and nothing but a
benchmark that was asked for builds it.
"""

from ._build import LoadDriverError, driver
from ._driver import Answer, Load, drive
from ._plan import FollowUp, Request, arrivals

__all__ = [
    "Answer",
    "FollowUp",
    "Load",
    "LoadDriverError",
    "Request",
    "arrivals",
    "drive",
    "driver",
]
