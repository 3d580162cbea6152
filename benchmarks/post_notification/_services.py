"""The application: the four services of the paper's figure 2, with figure 4's steps marked.

The library's part is the RPC layer's (`LineageTracing`), the stores' clients' (`Shimmed`), and the
one line in `FollowerNotify` that makes the difference.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ._options import EXPECTED_VERSION
from ._storage import POST_STORAGE, post_value, version_of

if TYPE_CHECKING:
    from ._notifier import Delivery, Publisher, Subscriber
    from ._rpc import Payload, RpcClient
    from ._storage import PostStorage
    from ._tracing import Tracing

Emit = Callable[[dict[str, Any]], None]

#: Most notifications that are delivered at once.
DELIVERIES = 128


class PostUpload:
    """Writer region: the proxy for the users."""

    def __init__(self, tracing: Tracing, post_storage: RpcClient, notifier: RpcClient) -> None:
        """Call these services."""
        self._tracing = tracing
        self._post_storage = post_storage
        self._notifier = notifier

    def upload(self, request: Payload) -> Payload:
        """Create, change or delete a post, and notify followers of it."""
        with self._tracing.root():  # step 1: a new lineage, which travels with the next call
            self._post_storage.call("store", request)  # step 3: the response brings it back
            time.sleep(request.get("delay_ms", 0) / 1000)  # the artificial delay of figure 6
            notice = {"id": request["id"], "kind": request["kind"]}
            self._notifier.call("notify", notice)  # step 3, second half: and the next call has it
        return {}


class PostStorageWriter:
    """Writer region: stores posts."""

    def __init__(
        self,
        storage: PostStorage,
        tracing: Tracing,
        announce: Callable[[Payload], None],
        emit: Emit,
    ) -> None:
        """Tell *announce* and *emit* when a write is acknowledged: the measurement begins there."""
        self._storage = storage
        self._tracing = tracing
        self._announce = announce
        self._emit = emit

    def store(self, post: Payload) -> Payload:
        """Write or delete a post."""
        post_id, version = post["id"], EXPECTED_VERSION[post["kind"]]
        if version:
            self._storage.write(post_id, post_value(version, post["bytes"]))  # step 2
        else:
            self._storage.delete(post_id)  # step 2
        acknowledged_ns = time.monotonic_ns()
        self._announce({"id": post_id, "version": version, "acknowledged_ns": acknowledged_ns})
        self._emit({"event": "written", "id": post_id, "acknowledged_ns": acknowledged_ns})
        return {}

    def seed(self, request: Payload) -> Payload:
        """Write first versions, for later updates and deletes."""
        for post_id in request["ids"]:
            with self._tracing.root():
                self._storage.write(post_id, post_value(1, request["bytes"]))
        return {}

    def stored(self, request: Payload) -> Payload:
        """How many bytes some posts take."""
        return {"bytes": [self._storage.stored_bytes(post_id) for post_id in request["ids"]]}


class NotifierWriter:
    """Writer region: publishes notifications."""

    def __init__(self, queue: Publisher) -> None:
        """Publish to *queue*."""
        self._queue = queue

    def notify(self, notice: Payload) -> Payload:
        """Publish a notification."""
        self._queue.publish(json.dumps(notice).encode())  # step 4
        return {}


class NotifierReader:
    """Reader region: receives notifications and hands them to follower-notify."""

    def __init__(self, queue: Subscriber, follower_notify: RpcClient, emit: Emit) -> None:
        """Receive from *queue*."""
        self.received_bytes = 0
        self._queue = queue
        self._follower_notify = follower_notify
        self._emit = emit
        self._pool = ThreadPoolExecutor(DELIVERIES, thread_name_prefix="deliver")

    def run(self) -> None:
        """Receive for as long as this process lives."""
        self._queue.run(self._received)

    def _received(self, delivery: Delivery) -> None:
        received_ns = time.monotonic_ns()
        self.received_bytes += delivery.size
        self._pool.submit(self._deliver, delivery, received_ns)

    def _deliver(self, delivery: Delivery, received_ns: int) -> None:
        notice: Payload = json.loads(delivery.body)
        notice["received_ns"] = received_ns
        try:
            with delivery.scope():  # step 5: what was received brings its lineage
                self._follower_notify.call("deliver", notice)  # step 6: which travels on
        except Exception as error:  # noqa: BLE001 - counted as a failed request
            self._emit({"event": "undelivered", "id": notice["id"], "error": str(error)})


class FollowerNotify:
    """Reader region: reads the post that a notification speaks of, and shows both."""

    def __init__(
        self, post_storage: RpcClient, emit: Emit, *, enforce: bool, timeout_s: float
    ) -> None:
        """Read from *post_storage*, behind a barrier if *enforce* says so."""
        self._post_storage = post_storage
        self._emit = emit
        self._enforce = enforce
        self._timeout_s = timeout_s

    def deliver(self, notice: Payload) -> Payload:
        """Read and show; whether the post is as the notification says is the measurement."""
        record = {"event": "read", "id": notice["id"], "received_ns": notice["received_ns"]}
        try:
            self._read(notice, record)
        except Exception as error:  # noqa: BLE001 - counted, by its kind
            record["outcome"] = "timed_out" if isinstance(error, TimeoutError) else "failed"
            record["error"] = f"{type(error).__name__}: {error}"
        self._emit(record)
        return {}

    def _read(self, notice: Payload, record: dict[str, Any]) -> None:
        if self._enforce:
            import antipode

            record["barrier_ns"] = time.monotonic_ns()
            antipode.barrier(timeout=self._timeout_s, only=POST_STORAGE)  # steps 6 to 8
            record["passed_ns"] = time.monotonic_ns()
        record["read_ns"] = time.monotonic_ns()
        version = self._post_storage.call("fetch", {"id": notice["id"]})["version"]
        record["done_ns"] = time.monotonic_ns()
        record["version"] = version
        expected = EXPECTED_VERSION[notice["kind"]]
        stale = version < expected if expected else version != 0
        record["outcome"] = "violation" if stale else "consistent"


class PostStorageReader:
    """Reader region: reads posts."""

    def __init__(self, storage: PostStorage) -> None:
        """Read from *storage*."""
        self._storage = storage

    def fetch(self, request: Payload) -> Payload:
        """The version of a post, 0 when it is not there; the post itself would be shown here."""
        return {"version": version_of(self._storage.read(request["id"]))}

    def present(self, request: Payload) -> Payload:
        """How many of some posts are there."""
        return {"count": len(self._storage.versions(request["ids"]))}
