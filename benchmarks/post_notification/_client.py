"""The users: requests at given times, whether or not earlier ones have been answered."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ._rpc import Payload, RpcClient

#: Most requests that wait for a reply at once; further ones are sent late, which is recorded.
USERS = 128


def arrivals(rate: float, seed: int) -> Iterator[float]:
    """Seconds from the beginning until each request: a Poisson process of *rate* a second."""
    generator = random.Random(seed)
    at_s = 0.0
    while True:
        at_s += generator.expovariate(rate)
        yield at_s


def delays(among_ms: Sequence[float], seed: int) -> Iterator[float | None]:
    """What each request waits before it notifies, all equally often; None where there is none."""
    generator = random.Random(seed)
    while True:
        yield from generator.sample(among_ms, len(among_ms)) if among_ms else (None,)


class Users:
    """Sends the requests of one round: an open loop."""

    def __init__(self, post_upload: RpcClient, emit: Callable[[dict[str, Any]], None]) -> None:
        """Send to *post_upload*."""
        self._post_upload = post_upload
        self._emit = emit

    def run(self, order: Payload) -> Payload:
        """Send one request for each id; returns when all were answered or failed."""
        began_s = time.monotonic()
        seed = order["seed"]
        times = zip(arrivals(order["rate"], seed), delays(order["delays_ms"], seed), strict=False)
        with ThreadPoolExecutor(USERS, thread_name_prefix="user") as pool:
            for post_id, (at_s, delay_ms) in zip(order["ids"], times, strict=False):
                due_s = began_s + at_s
                time.sleep(max(due_s - time.monotonic(), 0))
                post = {"id": post_id, "kind": order["kind"], "bytes": order["bytes"]}
                if delay_ms is not None:
                    post["delay_ms"] = delay_ms
                pool.submit(self._request, post, int(due_s * 1e9))
        return {}

    def _request(self, post: Payload, due_ns: int) -> None:
        record = {"event": "sent", "id": post["id"], "due_ns": due_ns}
        record |= {name: post[name] for name in ("delay_ms",) if name in post}
        record["sent_ns"] = time.monotonic_ns()
        try:
            self._post_upload.call("upload", post)
        except Exception as error:  # noqa: BLE001 - counted as a failed request
            record["error"] = str(error)
        record["replied_ns"] = time.monotonic_ns()
        self._emit(record)
