"""The main program of every process of the application but the first."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
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
from ._storage import Across, Face, Place, PostStorage, open_post_storage
from ._strategies import strategy_class
from ._strategies._none import Knobs, Unprotected
from ._tracing import LineageTracing, NoTracing, Tracing
from ._truth import Announcer, Poller
from ._wander import Wander

#: As many as are used at once at the usual rate, with room to spare.
_CONNECTIONS = 24

Config = dict[str, Any]
Methods = Mapping[str, Method]


class Setting:
    """What a service is built from: its configuration, and what travels with its calls."""

    def __init__(self, config: Config) -> None:
        """Read *config*."""
        self.config = config
        self.face: Face = config["face"]
        self.library = self.face != "plain"
        self.tracing: Tracing = LineageTracing() if self.library else NoTracing()
        self._callers: list[RpcClient] = []
        self._clients: dict[Place, PostStorage | Across] = {}
        self._writing, self._opening = threading.Lock(), threading.Lock()

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
        self._callers.append(client)
        return client

    def client(self, place: Place) -> PostStorage | Across:
        """This process's client of the post storage at a place."""
        with self._opening:
            if place not in self._clients:
                spec = self.config["storage"]
                self._clients[place] = (
                    Across(spec, self.face)
                    if place == "across"
                    else open_post_storage(spec, place=place, face=self.face)
                )
            return self._clients[place]

    def warm(self, place: Place) -> None:
        """Open connections to a place, as a pool does that has a least size."""
        client = self.client(place)

        def read(_: int) -> None:
            with self.tracing.root():
                client.read("nothing")

        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            list(pool.map(read, range(_CONNECTIONS)))

    def strategy(self) -> Unprotected:
        """What is done against overtaking."""
        chosen = strategy_class(self.config["strategy"], self.config["storage"]["store"])
        return chosen(self.client, Knobs(**self.config["knobs"]))

    def counters(self, _: Config) -> Config:
        """Bytes that this process sent and received in calls of its own, and reads across."""
        across = self._clients.get("across")
        return {
            "rpc_bytes": sum(caller.sent_bytes for caller in self._callers),
            "across": across.reads if isinstance(across, Across) else 0,
        }


def _users(setting: Setting) -> Methods:
    users = Users(setting.caller("post-upload"), setting.emit)
    return {"run": users.run}


def _post_upload(setting: Setting) -> Methods:
    callers = setting.caller("post-storage-writer"), setting.caller("notifier-writer")
    return {"upload": PostUpload(setting.tracing, *callers).upload}


def _post_storage_writer(setting: Setting) -> Methods:
    announce = Announcer(setting.config["poller_port"])
    setting.warm("writer")
    service = PostStorageWriter(setting.strategy(), setting.tracing, announce, setting.emit)
    methods = (service.store, service.seed, service.stored, service.commands)
    return {method.__name__: method for method in methods}


def _notifier_writer(setting: Setting) -> Methods:
    queue = open_publisher(setting.config["notifier"], library=setting.library)
    return {"notify": NotifierWriter(queue).notify}


def _notifier_reader(setting: Setting) -> Methods:
    queue = open_subscriber(setting.config["notifier"], library=setting.library)
    service = NotifierReader(queue, setting.caller("follower-notify"), setting.emit)
    _background(service.run)
    return {"received": lambda _: {"bytes": service.received_bytes}}


def _follower_notify(setting: Setting) -> Methods:
    strategy = setting.strategy()
    if strategy.waits:
        setting.client("reader")  # the barrier looks where this service's posts are read
    caller = setting.caller("post-storage-reader")
    service = FollowerNotify(caller, setting.emit, strategy)
    return {"deliver": service.deliver}


def _post_storage_reader(setting: Setting) -> Methods:
    strategy = setting.strategy()
    setting.warm("reader")
    if strategy.far:
        setting.warm("across")
    service = PostStorageReader(strategy)
    return {"fetch": service.fetch, "present": service.present, "commands": service.commands}


def _poller(setting: Setting) -> Methods:
    storage = open_post_storage(setting.config["storage"], place="reader")
    poller = Poller(storage, setting.emit, lag_s=setting.config["lag_s"])
    _background(poller.run)
    return {
        "address": lambda _: {"port": poller.port},
        "commands": lambda _: {"count": poller.commands},
    }


def _replicator(setting: Setting) -> Methods:
    from antipode_shims.embedded import Replicator

    config = setting.config
    replicator = Replicator(config["source"], config["target"], lag_ms=config["lag_ms"])
    replicator.start()
    wander = Wander(replicator.set_lag, config["lag_ms"], config["spread"], config["seed"])

    def late(order: Config) -> Config:
        wander.about(order["lag_ms"])
        return {}

    return {"late": late}


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
    role, *modules = sys.argv[1:]
    for module in modules:
        import_module(module)
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
