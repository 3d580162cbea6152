"""Two brokers of ActiveMQ Classic, of which the first forwards to the second."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, ClassVar

from antipode import ConfigurationError
from antipode_testing._errors import ClientMissing
from antipode_testing._topology import ServerTopology
from antipode_testing._wait import wait_until
from antipode_testing.servers.native import NativeProvider

from .native import NETWORK

if TYPE_CHECKING:
    from antipode_testing._address import Address
    from antipode_testing._proxy import LagProxy
    from antipode_testing._topology import Provider, Server

FORWARD_TIMEOUT_S = 60.0
POLL_S = 0.05


class ActiveMQTopology(ServerTopology):
    """Two real brokers, ``us`` and ``eu``, in a network of brokers.

    What is published in ``us`` is forwarded to ``eu`` where somebody consumes it there. Lag delays
    that alone. A queue's message waits for a consumer; a topic's that is sent while the regions
    are cut is lost for subscribers of the other region that are not durable.

    Args:
        lag_ms: the lag to begin with, and to return to at `reset`.
        provider: what runs the servers; None: this machine.

    Raises:
        ServerMissing: on `start`, if ActiveMQ or Java is not installed.
        ClientMissing: on `start`, if stomp.py is not.
    """

    store: ClassVar[str] = "activemq"

    def __init__(self, *, lag_ms: float = 0.0, provider: Provider | None = None) -> None:
        self._lag_from(lag_ms)
        self._provider = provider or NativeProvider()
        self._servers: dict[str, Server] = {}
        self._link: LagProxy | None = None

    @property
    def primary(self) -> Address:
        """The broker ``us``, for STOMP."""
        return self._server("us").address

    @property
    def replica(self) -> Address:
        """The broker ``eu``, for STOMP."""
        return self._server("eu").address

    @property
    def closed(self) -> bool:
        """Whether no server of this topology runs any more."""
        return not self._servers

    def url(self, server: Address | None = None) -> str:
        """The URL of *server* as `antipode_shims.activemq.shim` takes it; default the primary."""
        return f"stomp://{server or self.primary}"

    def openwire(self, server: Address | None = None) -> Address:
        """Where *server* listens for clients of Java; default the primary."""
        region = "eu" if server == self.replica else "us"
        return self._server(region).endpoints["openwire"]

    def start(self) -> None:
        """Start both brokers; return once the first forwards to the second."""
        if self._servers:
            return
        try:
            # What waits for the network needs it.
            import stomp  # noqa: F401 # pyright: ignore[reportUnusedImport]
        except ImportError as error:
            msg = 'the Python client is missing: pip install "antipode-xcy[activemq]"'
            raise ClientMissing(msg) from error
        self._servers["eu"] = self._provider.start(self.store, "eu", {})
        self._link = self._provider.link(self._server("eu").endpoints["openwire"])
        network = {NETWORK: str(self._link.address)}
        self._servers["us"] = self._provider.start(self.store, "us", network)
        self.wait_replicated()
        self._lag_as_begun()

    def close(self) -> None:
        """Stop both brokers. Idempotent."""
        while self._servers:
            self._servers.popitem()[1].close()
        if self._link is not None:
            self._link.close()
            self._link = None

    def reset(self) -> None:
        """Undo lag and faults for the next test; queues and their messages stay."""
        if not all(server.running for server in self._servers.values()):
            self.close()
            self.start()
            return
        link = self._proxy
        link.set_lag(0, request_lag_ms=0)
        link.resume()
        link.heal()
        self._lag_as_begun()

    def suspend_broker(self, region: str) -> None:
        """Freeze a broker's process: its connections stay, and nothing answers."""
        self._server(region).suspend()

    def kill_broker(self, region: str) -> None:
        """Kill a broker's process; persistent messages stay."""
        self._server(region).kill()

    def restart_broker(self, region: str) -> None:
        """Start a broker again, with its messages."""
        self._server(region).restart()

    def set_lag(self, ms: float) -> None:
        """Delay what ``eu`` gets of ``us`` by this many milliseconds."""
        self._proxy.set_lag(0, request_lag_ms=ms)

    def pause(self) -> None:
        """Hold what is forwarded; its connection stays open."""
        self._proxy.pause()

    def resume(self) -> None:
        """Let what `pause` held go on."""
        self._proxy.resume()

    def cut(self) -> None:
        """Partition the brokers."""
        self._proxy.cut()

    def heal(self) -> None:
        """End the partition; the brokers connect again within a second."""
        self._proxy.heal()

    def failover(self, *, lose_unreplicated: bool = True) -> None:
        """Refused: each broker has messages of its own.

        Raises:
            ConfigurationError: always.
        """
        del lose_unreplicated
        raise ConfigurationError("brokers of a network have messages of their own: none follows")

    def reseed(self) -> None:
        """Refused: messages are not copied.

        Raises:
            ConfigurationError: always.
        """
        raise ConfigurationError("messages are not copied: there is nothing to copy anew")

    def wait_replicated(self, *, timeout_s: float = FORWARD_TIMEOUT_S) -> None:
        """Return once the first broker forwards to the second what is published now.

        Raises:
            TopologyTimeout: it does not.
        """
        self.wait_forwarded(f"/topic/antipode.{uuid.uuid4().hex}", timeout_s=timeout_s)

    def wait_forwarded(self, topic: str, *, timeout_s: float = FORWARD_TIMEOUT_S) -> None:
        """Return once a message to *topic* in ``us`` comes to subscribers in ``eu``.

        A network forwards what is demanded, and learns of that a moment after a subscription.

        Raises:
            TopologyTimeout: none came.
        """
        from antipode_shims.activemq._clients.stomp import Broker, Mailbox, close_quietly, connect

        box = Mailbox()
        ends = [connect(Broker.parse(self.url(each))) for each in (self.primary, self.replica)]
        us, eu = ends
        eu.set_listener("antipode", box)

        def came() -> bool:
            us.send(topic, b"", headers={"antipode-probe": "1"})
            return not box.messages.empty()

        try:
            eu.subscribe(topic, id="1", ack="auto")
            wait_until(
                came, what="messages to be forwarded", timeout_s=timeout_s, interval_s=POLL_S
            )
        finally:
            for each in ends:
                close_quietly(each)

    @property
    def _proxy(self) -> LagProxy:
        if self._link is None:
            raise ConfigurationError("the topology does not run: use it as a context manager")
        return self._link

    def _server(self, region: str) -> Server:
        if region not in self._servers:
            raise ConfigurationError("the topology does not run: use it as a context manager")
        return self._servers[region]
