"""The main program of every process of the application but the first."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ._client import Users
from ._notifier import open_publisher, open_subscriber
from ._rpc import Method, RpcClient, RpcServer
from ._services import (
    FollowerNotify,
    NotifierReader,
    NotifierWriter,
    PostStorageReader,
    PostStorageWriter,
    PostUpload,
)
from ._storage import PostStorage, Region, open_post_storage
from ._tracing import LineageTracing, NoTracing, Tracing
from ._truth import Announcer, Poller

Config = dict[str, Any]
Methods = Mapping[str, Method]


class Setting:
    """What a service is built from: its configuration, and what travels with its calls."""

    def __init__(self, config: Config) -> None:
        """Read *config*."""
        self.config = config
        self.library = bool(config["library"])
        self.tracing: Tracing = LineageTracing() if self.library else NoTracing()
        self._clients: list[RpcClient] = []
        self._writing = threading.Lock()

    def emit(self, record: dict[str, Any]) -> None:
        """Write one line of output."""
        line = json.dumps(record).encode() + b"\n"
        with self._writing:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()

    def caller(self, service: str) -> RpcClient:
        """A client of another service."""
        port = self.config["ports"][service]
        client = RpcClient(service, port, self.tracing, timeout_s=self.config["rpc_timeout_s"])
        self._clients.append(client)
        return client

    def storage(self, region: Region) -> PostStorage:
        """The post storage of a region."""
        return open_post_storage(self.config["storage"], region=region, library=self.library)

    def counters(self, _: Config) -> Config:
        """Bytes that this process sent and received in calls of its own."""
        return {"rpc_bytes": sum(client.sent_bytes for client in self._clients)}


def _users(setting: Setting) -> Methods:
    users = Users(setting.caller("post-upload"), setting.emit)
    return {"run": users.run}


def _post_upload(setting: Setting) -> Methods:
    callers = setting.caller("post-storage-writer"), setting.caller("notifier-writer")
    return {"upload": PostUpload(setting.tracing, *callers).upload}


def _post_storage_writer(setting: Setting) -> Methods:
    announce = Announcer(setting.config["poller_port"])
    storage = setting.storage("writer")
    service = PostStorageWriter(storage, setting.tracing, announce, setting.emit)
    return {"store": service.store, "seed": service.seed, "stored": service.stored}


def _notifier_writer(setting: Setting) -> Methods:
    queue = open_publisher(setting.config["notifier"], library=setting.library)
    return {"notify": NotifierWriter(queue).notify}


def _notifier_reader(setting: Setting) -> Methods:
    queue = open_subscriber(setting.config["notifier"], library=setting.library)
    service = NotifierReader(queue, setting.caller("follower-notify"), setting.emit)
    _background(service.run)
    return {"received": lambda _: {"bytes": service.received_bytes}}


def _follower_notify(setting: Setting) -> Methods:
    if setting.library:
        setting.storage("reader")  # the barrier looks where this service's posts are read
    service = FollowerNotify(
        setting.caller("post-storage-reader"),
        setting.emit,
        enforce=setting.library,
        timeout_s=setting.config["timeout_s"],
    )
    return {"deliver": service.deliver}


def _post_storage_reader(setting: Setting) -> Methods:
    service = PostStorageReader(setting.storage("reader"))
    return {"fetch": service.fetch, "present": service.present}


def _poller(setting: Setting) -> Methods:
    storage = setting.storage("reader")
    poller = Poller(storage, setting.emit, lag_s=setting.config["lag_s"])
    _background(poller.run)
    return {"address": lambda _: {"port": poller.port}}


def _replicator(setting: Setting) -> Methods:
    from antipode_shims.embedded import Replicator

    config = setting.config
    Replicator(config["source"], config["target"], lag_ms=config["lag_ms"]).start()
    return {}


_ROLES: dict[str, Callable[[Setting], Methods]] = {
    "users": _users,
    "post-upload": _post_upload,
    "post-storage-writer": _post_storage_writer,
    "notifier-writer": _notifier_writer,
    "notifier-reader": _notifier_reader,
    "follower-notify": _follower_notify,
    "post-storage-reader": _post_storage_reader,
    "poller": _poller,
    "replicator": _replicator,
}


def _background(run: Callable[[], None]) -> None:
    """Run something for as long as the process lives; if it fails, the process ends."""

    def guarded() -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - said where the main program looks
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            sys.stderr.flush()
            os._exit(1)

    threading.Thread(target=guarded, daemon=True).start()


def main() -> int:
    """Serve until the input ends."""
    role = sys.argv[1]
    config = json.loads(sys.stdin.readline() or "null")
    if config is None:
        return 0
    setting = Setting(config)
    methods = dict(_ROLES[role](setting))
    # Users are no services: nothing of their calls is extracted, no lineage is sent to them.
    tracing = NoTracing() if role == "post-upload" else setting.tracing
    server = RpcServer({**methods, "counters": setting.counters}, tracing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    setting.emit({"port": server.port})
    sys.stdin.read()
    sys.stdout.flush()
    # Threads hold connections, and barriers may still wait: none of it matters any more.
    os._exit(0)


if __name__ == "__main__":
    try:
        status = main()
    except Exception as error:  # noqa: BLE001 - one line, which the main program shows
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        status = 1
    sys.exit(status)
