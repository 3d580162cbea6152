"""The application: the four services of the paper's figure 2, with figure 4's steps marked.

What is done against overtaking is the strategy's (`_strategies`). The library's part is the RPC
layer's (`LineageTracing`), the stores' clients' (`Shimmed`), and the one line in `Barrier` that
makes the difference.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ._options import EXPECTED_VERSION
from ._storage import post_value, version_of

if TYPE_CHECKING:
    from ._delivery import Delivery, Publisher, Subscriber
    from ._rpc import Payload, RpcClient
    from ._storage import PostStorage
    from ._strategies._none import Unprotected
    from ._tracing import Tracing

Emit = Callable[[dict[str, Any]], None]

#: Most notifications that are delivered at once.
DELIVERIES = 128
#: What of a notification a read has no use for.
_NOT_FOR_READS = ("kind", "received_ns")


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
            carried = self._post_storage.call("store", request)  # step 3: it comes back
            time.sleep(request.get("delay_ms", 0) / 1000)  # the artificial delay of figure 6
            notice = {"id": request["id"], "kind": request["kind"], **carried}
            self._notifier.call("notify", notice)  # step 3, second half: and the next call has it
        return {}


class PostStorageWriter:
    """Writer region: stores posts."""

    def __init__(
        self,
        strategy: Unprotected,
        tracing: Tracing,
        announce: Callable[[Payload], None],
        emit: Emit,
    ) -> None:
        """Tell *announce* of each write that begins, *emit* of each that is acknowledged."""
        self._strategy = strategy
        self._storage: PostStorage = strategy.client("writer")
        self._tracing = tracing
        self._announce = announce
        self._emit = emit

    def store(self, post: Payload) -> Payload:
        """Write or delete a post."""
        post_id, version = post["id"], EXPECTED_VERSION[post["kind"]]
        value = post_value(version, post["bytes"]) if version else None
        begun_ns = time.monotonic_ns()
        self._announce({"id": post_id, "version": version, "begun_ns": begun_ns})
        carried = self._strategy.write(post_id, value)  # step 2
        times = {"begun_ns": begun_ns, "acknowledged_ns": time.monotonic_ns()}
        self._emit({"event": "written", "id": post_id, **times})
        return carried

    def seed(self, request: Payload) -> Payload:
        """Write first versions, for later updates and deletes."""
        for post_id in request["ids"]:
            with self._tracing.root():
                self._storage.write(post_id, post_value(1, request["bytes"]))
        return {}

    def stored(self, request: Payload) -> Payload:
        """How many bytes some posts take."""
        return {"bytes": [self._storage.stored_bytes(post_id) for post_id in request["ids"]]}

    def commands(self, _: Payload) -> Payload:
        """How many commands the primary has processed, if it counts them."""
        return {"count": self._storage.commands()}


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

    def __init__(self, post_storage: RpcClient, emit: Emit, strategy: Unprotected) -> None:
        """Read from *post_storage*, in the way of *strategy*."""
        self._post_storage = post_storage
        self._emit = emit
        self._strategy = strategy

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
        request = {name: notice[name] for name in notice if name not in _NOT_FOR_READS}
        reads: list[int] = []

        def fetch() -> int:
            reads.append(time.monotonic_ns())
            return int(self._post_storage.call("fetch", request)["version"])

        if self._strategy.waits:
            record["barrier_ns"] = time.monotonic_ns()
        try:
            version = self._strategy.follow(notice, fetch)  # with the barrier: steps 6 to 8
        finally:
            record["reads"] = len(reads)
        record["done_ns"] = time.monotonic_ns()
        record["read_ns"] = reads[-1]
        if self._strategy.waits:
            record["passed_ns"] = reads[0]
        record["version"] = version
        expected = EXPECTED_VERSION[notice["kind"]]
        stale = version < expected if expected else version != 0
        record["outcome"] = "violation" if stale else "consistent"


class PostStorageReader:
    """Reader region: reads posts."""

    def __init__(self, strategy: Unprotected) -> None:
        """Read in the way of *strategy*."""
        self._strategy = strategy
        self._storage: PostStorage = strategy.client("reader")

    def fetch(self, request: Payload) -> Payload:
        """The version of a post, 0 when it is not there; the post itself would be shown here."""
        return {"version": version_of(self._strategy.read(request["id"], request))}

    def present(self, request: Payload) -> Payload:
        """How many of some posts are there."""
        return {"count": len(self._storage.versions(request["ids"]))}

    def commands(self, _: Payload) -> Payload:
        """How many commands the replica has processed, if it counts them."""
        return {"count": self._storage.commands()}
