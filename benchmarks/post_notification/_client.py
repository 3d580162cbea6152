"""The users: requests at given times, whether or not earlier ones have been answered."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


class Users:
    """Sends the requests of one round: an open loop."""

    def __init__(self, post_upload: RpcClient, emit: Callable[[dict[str, Any]], None]) -> None:
        """Send to *post_upload*."""
        self._post_upload = post_upload
        self._emit = emit

    def run(self, order: Payload) -> Payload:
        """Send one request for each id; returns when all were answered or failed."""
        began_s = time.monotonic()
        times = arrivals(order["rate"], order["seed"])
        with ThreadPoolExecutor(USERS, thread_name_prefix="user") as pool:
            for post_id, at_s in zip(order["ids"], times, strict=False):
                due_s = began_s + at_s
                time.sleep(max(due_s - time.monotonic(), 0))
                pool.submit(self._request, post_id, order, int(due_s * 1e9))
        return {}

    def _request(self, post_id: str, order: Payload, due_ns: int) -> None:
        record = {"event": "sent", "id": post_id, "due_ns": due_ns, "sent_ns": time.monotonic_ns()}
        post = {"id": post_id, "kind": order["kind"], "bytes": order["bytes"]}
        try:
            self._post_upload.call("upload", post)
        except Exception as error:  # noqa: BLE001 - counted as a failed request
            record["error"] = str(error)
        record["replied_ns"] = time.monotonic_ns()
        self._emit(record)
