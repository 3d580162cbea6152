"""One member of a MongoDB replica set, with the proxy others reach it by and a client to ask it."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antipode_testing._errors import ClientMissing, TopologyTimeout
from antipode_testing._wait import wait_until
from antipode_testing.servers.node import Node

from .link import Faults, MemberProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from antipode_testing._topology import Provider

CLIENT_TIMEOUT_MS = 10_000
CLOSE_TIMEOUT_S = 0.5
APPLIER_TIMEOUT_MS = 10_000
# Stops a secondary before it applies the next batch; what it fetches meanwhile is kept.
STOP_APPLYING = "rsSyncApplyStop"
POLL_S = 0.01
PATIENCE_S = 3.0
DEFAULT_PORT = 27017


@dataclass
class MongoDBNode(Node):
    """A member; its settings are parameters.

    Attributes:
        client: a PyMongo client of our own, straight to the server.
        proxy: where the other members, and clients that discover the set, reach it.
        identity: how it calls itself when it connects to another member.
        faults: what was done to its links.
        stalled: whether it applies nothing.
    """

    client: Any
    proxy: MemberProxy
    identity: str
    faults: Faults = field(default_factory=Faults)
    stalled: bool = False

    def admin(self, command: str, value: Any = 1, **options: Any) -> dict[str, Any]:
        """Run a command of the admin database."""
        self._require_awake()
        return dict(self.client.admin.command(command, value, **options))

    def hello(self) -> dict[str, Any]:
        """What it says about itself; nothing while it cannot be asked."""
        from pymongo.errors import PyMongoError

        try:
            return self.admin("hello")
        except PyMongoError:
            return {}

    def position(self) -> tuple[int, Any]:
        """Term and timestamp of the last write it has applied."""
        written = self.hello().get("lastWrite", {}).get("opTime")
        return (-1, None) if written is None else (written["t"], written["ts"])

    def rollbacks(self) -> int:
        """The rollback id: larger after each rollback of this member."""
        return int(self.admin("replSetGetRBID")["rbid"])

    def configuration(self) -> dict[str, Any]:
        """The replica set's configuration, as this member has it."""
        return dict(self.admin("replSetGetConfig")["config"])

    def step_up(self, *, timeout_s: float) -> None:
        """Have it elected; return once it takes writes."""
        from pymongo.errors import PyMongoError

        def elected() -> bool:
            try:
                self.admin("replSetStepUp")
            except PyMongoError:
                return False  # it, or a voter, is not ready
            return True

        what = f"the election of {self.address}"
        wait_until(elected, what=what, timeout_s=timeout_s, interval_s=POLL_S)
        self.await_hello(lambda it: bool(it.get("isWritablePrimary")), what, timeout_s=timeout_s)

    def await_hello(
        self, condition: Callable[[dict[str, Any]], bool], what: str, *, timeout_s: float
    ) -> None:
        """Return once what it says about itself meets a condition."""
        wait_until(
            lambda: condition(self.hello()), what=what, timeout_s=timeout_s, interval_s=POLL_S
        )

    def await_position(self, wanted: tuple[int, Any], *, timeout_s: float) -> None:
        """Return once it is a secondary that has applied a write."""

        def there() -> bool:
            it = self.hello()
            applied = it.get("lastWrite", {}).get("opTime")
            return bool(it.get("secondary")) and (applied["t"], applied["ts"]) >= wanted

        what = f"the secondary at {self.address} to reach {wanted}"
        wait_until(there, what=what, timeout_s=timeout_s)

    def await_copying(
        self, source: MongoDBNode, wanted: tuple[int, Any], *, timeout_s: float
    ) -> None:
        """Return once it is a secondary that has applied a write, helped to find its source."""
        deadline = time.monotonic() + timeout_s
        while True:
            self.forgive(source)
            try:
                return self.await_position(wanted, timeout_s=PATIENCE_S)
            except TopologyTimeout:
                if time.monotonic() >= deadline:
                    raise

    def forgive(self, source: MongoDBNode) -> None:
        """Have it copy again from a member that it lost, where that one is in reach.

        On its own it would avoid that member for ten seconds. One that copies from there already is
        not notified: it would stop for a second.
        """
        from pymongo.errors import PyMongoError

        def told() -> bool:
            try:
                if not self.hello().get("secondary") or self._copies_from(source):
                    return True  # what is not a secondary yet finds its source in its own way
                self.admin("replSetSyncFrom", str(source.proxy.address))
            except PyMongoError:
                return False  # it has not heard of the other yet
            return True

        if self._answers and not (self.faults.cut or self.faults.paused):
            with contextlib.suppress(TopologyTimeout):  # a long lag: it comes back later
                wait_until(told, what="a heartbeat", timeout_s=PATIENCE_S)

    def await_loss(self, source: MongoDBNode) -> None:
        """Return once it has noticed that it was cut off, if it can."""
        if self._answers:
            with contextlib.suppress(TopologyTimeout):
                wait_until(
                    lambda: not self._copies_from(source), what="a loss", timeout_s=PATIENCE_S
                )

    @property
    def _answers(self) -> bool:
        return self.server.running and not self.suspended

    def _copies_from(self, source: MongoDBNode) -> bool:
        return str(self.admin("replSetGetStatus")["syncSourceHost"]) == str(source.proxy.address)

    def stall(self) -> None:
        """Stop applying; return once nothing more is applied."""
        if self.stalled:
            return
        entered = self.admin("configureFailPoint", STOP_APPLYING, mode="alwaysOn")["count"]
        self.stalled = True
        self.admin(
            "waitForFailPoint",
            STOP_APPLYING,
            timesEntered=entered + 1,
            maxTimeMS=APPLIER_TIMEOUT_MS,
        )

    def unstall(self) -> None:
        """Apply again."""
        if self.stalled:
            self.admin("configureFailPoint", STOP_APPLYING, mode="off")
            self.stalled = False

    def settings(self, *names: str) -> dict[str, Any]:
        """Read parameters."""
        return {name: self.admin("getParameter", **{name: 1})[name] for name in names}

    def apply(self, settings: Mapping[str, Any]) -> None:
        """Set parameters."""
        for name, value in settings.items():
            self.admin("setParameter", **{name: value})

    def restart(self, *, graceful: bool, wipe: bool = False) -> None:
        """Start the process again at its address."""
        super().restart(graceful=graceful, wipe=wipe)
        self.stalled = False

    def close(self) -> None:
        """Stop the server and its proxy."""
        import pymongo

        if self.suspended and self.server.running:
            self.resume()  # the client says good-bye
        with pymongo.timeout(CLOSE_TIMEOUT_S):
            self.client.close()
        self.proxy.close()
        self.server.close()


def launch(provider: Provider, name: str, config: Mapping[str, str]) -> MongoDBNode:
    """Start one server that is not yet a member of a set, with its proxy.

    Raises:
        ClientMissing: PyMongo is not installed.
    """
    try:
        import pymongo
    except ImportError as error:
        raise ClientMissing(
            "a MongoDB topology needs PyMongo: pip install antipode-xcy[mongodb]"
        ) from error
    server = provider.start("mongodb", name, config)
    client: Any = None
    try:
        client = pymongo.MongoClient(
            *server.address,
            directConnection=True,
            serverSelectionTimeoutMS=CLIENT_TIMEOUT_MS,
            socketTimeoutMS=CLIENT_TIMEOUT_MS,
        )
        identity = _identity(client)
        proxy = MemberProxy(server.address, host=provider.host)
        return MongoDBNode(server, client, proxy, identity)
    except BaseException:
        if client is not None:
            client.close()
        server.close()
        raise


def _identity(client: Any) -> str:
    """What a member says when it connects to another: its host's name, and its port."""
    name = str(client.admin.command("hostInfo")["system"]["hostname"])
    return name if ":" in name else f"{name}:{DEFAULT_PORT}"  # which it leaves out
