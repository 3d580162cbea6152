"""Two regions of RabbitMQ: independent brokers, the second federating from the first."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import quote

from antipode import ConfigurationError
from antipode_testing._errors import ServerFailed
from antipode_testing._provider import default_provider
from antipode_testing._topology import ServerTopology
from antipode_testing._wait import wait_until

from .management import PASSWORD, USER, Management

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import Address
    from antipode_testing._proxy import LagProxy
    from antipode_testing._topology import Provider, Server

Region = Literal["us", "eu"]
HOME: Region = "us"
AWAY: Region = "eu"
FEDERATED = r"^geo\."
FEDERATION_PREFIX = "federation:"
LINK_TIMEOUT_S = 30.0
POLL_S = 0.02
LONGEST_OUTAGE_MS = 3_600_000


class RabbitMQTopology(ServerTopology):
    """Two brokers; exchanges named ``geo.*`` of the second, ``eu``, are fed by the first, ``us``.

    The brokers form no cluster. A federated exchange must be declared on both by their clients; see
    `wait_federated`. Lag delays the federation alone. Both accept ``guest``/``guest`` from this
    machine.

    Args:
        federated: whether there is a second broker. Without it `primary` and `replica` are one, and
            everything about the link is an error.
        lag_ms: the lag of federation to begin with, and to return to at `reset`.
        config: further settings of both brokers, by their names in ``rabbitmq.conf``.
        provider: what runs the brokers; None: what ``ANTIPODE_PROVIDER`` says, or this machine.

    Raises:
        ServerMissing: on `start`, if there is no ``rabbitmq-server``.
    """

    store: ClassVar[str] = "rabbitmq"

    def __init__(
        self,
        *,
        federated: bool = True,
        lag_ms: float = 0.0,
        config: Mapping[str, str] | None = None,
        provider: Provider | None = None,
    ) -> None:
        self._lag_from(lag_ms)
        if lag_ms and not federated:
            raise ConfigurationError("a single broker has no link to delay: use federated=True")
        self._regions: tuple[Region, ...] = (HOME, AWAY) if federated else (HOME,)
        self._config = dict(config or {})
        self._provider = provider or default_provider()
        self._servers: dict[Region, Server] = {}
        self._link: LagProxy | None = None
        self._leader: Region = HOME
        self._touched = self._rebuild = False

    @property
    def primary(self) -> Address:
        """The AMQP port of the broker that is published to: ``us``, after `failover` ``eu``."""
        return self.address(self._leader)

    @property
    def replica(self) -> Address:
        """The AMQP port of the other broker; of the only one if it is alone."""
        return self.address(AWAY if self._leader == HOME and self._link else HOME)

    @property
    def closed(self) -> bool:
        """Whether no broker of this topology runs any more."""
        return not self._servers

    @property
    def link(self) -> LagProxy:
        """The proxy through which ``eu`` federates, for its counters and finer faults."""
        self._server(HOME)
        if self._link is None:
            raise ConfigurationError("a single broker has no link: use federated=True")
        self._touched = True
        return self._link

    def address(self, region: Region) -> Address:
        """The AMQP port of a region's broker."""
        return self._server(region).address

    def url(self, server: Address | None = None) -> str:
        """The AMQP URL of *server*, by default the primary, with the account."""
        return f"amqp://{USER}:{PASSWORD}@{server or self.primary}/%2f"

    def management(self, region: Region) -> Management:
        """The management API of a region's broker."""
        return Management(self._server(region).endpoints["management"])

    def start(self) -> None:
        """Start the brokers side by side; return once both answer and federation is set up."""
        if self._servers:
            return
        self._leader = HOME
        self._touched = self._rebuild = False
        self._launch_all()
        if AWAY in self._servers:
            self._link = self._provider.link(self.address(HOME))
            self._federate()
            self._lag_as_begun()

    def close(self) -> None:
        """Stop both brokers and remove their data. Idempotent."""
        if self._link is not None:
            self._link.close()
            self._link = None
        while self._servers:
            self._servers.popitem()[1].close()

    def reset(self) -> None:
        """Undo lag and faults for the next test; exchanges, queues and messages stay.

        A killed broker is started again with its data; after a failover both are built again.
        """
        if self._rebuild:
            self.close()
            self.start()
            return
        for server in self._servers.values():
            if not server.running:
                server.restart()
        if not self._touched:
            return
        for server in self._servers.values():
            server.resume_process()
        if self._link is not None:
            self._link.set_lag(0, request_lag_ms=0)
            self._link.resume()
            self._link.heal()
        self._touched = False
        self._lag_as_begun()

    def set_lag(self, ms: float) -> None:
        """Delay what ``eu`` federates by this many milliseconds."""
        self.link.set_lag(ms)

    def pause(self) -> None:
        """Hold the federation link; its connections stay open."""
        self.link.pause()

    def resume(self) -> None:
        """Let what `pause` held go on."""
        self.link.resume()

    def cut(self) -> None:
        """Partition the brokers; ``us`` keeps for ``eu`` what is published meanwhile."""
        self.link.cut()

    def heal(self) -> None:
        """End the partition; ``eu`` connects again automatically, within about a second."""
        self.link.heal()

    def wait_federated(self, exchange: str, *, timeout_s: float = LINK_TIMEOUT_S) -> None:
        """Return once an exchange's link runs and ``us`` knows every binding of it in ``eu``.

        What is published before that is never sent to ``eu``.

        Args:
            exchange: a name that begins with ``geo.``, declared on both brokers.
            timeout_s: seconds after which to give up.

        Raises:
            TopologyTimeout: it did not happen in time.
        """
        _ = self.link

        def federated() -> bool:
            try:
                links = self.management(AWAY).get("federation-links")
            except ServerFailed:
                return False  # its plugin answers 500 while links come and go
            running = {item.get("exchange") for item in links if item.get("status") == "running"}
            wanted = self._bindings(AWAY, exchange, of_federation=False)
            known = self._bindings(HOME, exchange, of_federation=True)
            return exchange in running and wanted <= known

        what = f"the exchange {exchange!r} to be federated to {AWAY!r}"
        wait_until(federated, what=what, timeout_s=timeout_s, interval_s=POLL_S)

    def wait_replicated(self, *, timeout_s: float = LINK_TIMEOUT_S) -> None:
        """Return once ``us`` holds no message that ``eu`` has not confirmed.

        Raises:
            TopologyTimeout: some were left.
        """
        _ = self.link
        wait_until(
            lambda: self._backlog() == 0,
            what="the federation link to drain",
            timeout_s=timeout_s,
            interval_s=POLL_S,
        )

    def restart_broker(self, region: Region, *, graceful: bool = True) -> None:
        """Restart a broker at its address: durable queues and persistent messages survive."""
        self._touched = True
        self._server(region).restart(graceful=graceful)

    def kill_broker(self, region: Region) -> None:
        """Kill a broker's process; `restart_broker` or `reset` starts it again with its data."""
        self._server(region).kill()

    def suspend_broker(self, region: Region) -> None:
        """Freeze a broker's process: its connections stay and nothing answers."""
        self._touched = True
        self._server(region).suspend()

    def resume_broker(self, region: Region) -> None:
        """Let a suspended broker run again."""
        self._server(region).resume_process()

    def failover(self, *, lose_unreplicated: bool = True) -> None:
        """Lose the region ``us``: its broker is killed and clients go on with ``eu``.

        Args:
            lose_unreplicated: what is on its way is lost with the link. Otherwise it is waited
                for; publishers must have stopped.
        """
        if self._leader != HOME:
            raise ConfigurationError("the primary failed over already: reset() builds both again")
        link = self.link
        if not lose_unreplicated:
            self.wait_replicated()
        self._rebuild = True
        link.cut()
        self._server(HOME).kill()
        self._leader = AWAY

    def reseed(self) -> None:
        """Restart ``eu`` with nothing and federate it again.

        A broker copies no queues from another: clients declare theirs again, and get what ``us``
        still keeps for ``eu`` and what is published from then on.
        """
        _ = self.link
        self._server(AWAY).restart(graceful=False, wipe=True)
        self._federate()

    def _launch_all(self) -> None:
        """Start all brokers at once: each takes seconds, mostly alone with one processor."""
        failures: list[BaseException] = []

        def launch(region: Region) -> None:
            try:
                server = self._provider.start(self.store, region, self._config)
            except BaseException as error:  # noqa: BLE001 - raised again below
                failures.append(error)
            else:
                self._servers[region] = server

        threads = [
            threading.Thread(target=launch, args=(region,), name=f"start-{region}")
            for region in self._regions
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:  # an interrupt: what still starts must be there to be closed
            for thread in threads:
                thread.join()
            raise
        if failures:
            raise failures[0]

    def _federate(self) -> None:
        """Let ``eu`` pull the exchanges named ``geo.*`` from ``us``, through the proxy."""
        assert self._link is not None
        upstream = {
            "uri": f"amqp://{USER}:{PASSWORD}@{self._link.address}/%2f",
            "ack-mode": "on-confirm",
            "expires": LONGEST_OUTAGE_MS,
            "reconnect-delay": 1,
        }
        policy = {
            "pattern": FEDERATED,
            "definition": {"federation-upstream": HOME},
            "apply-to": "exchanges",
        }
        api = self.management(AWAY)
        api.put(f"parameters/federation-upstream/%2f/{HOME}", {"value": upstream})
        api.put("policies/%2f/federate-geo", policy)

    def _bindings(self, region: Region, exchange: str, *, of_federation: bool) -> set[str]:
        """By what an exchange is bound, to clients' queues or to the federation's exchanges."""
        path = f"exchanges/%2f/{quote(exchange, safe='')}/bindings/source"
        return {
            json.dumps([binding["routing_key"], _own_arguments(binding)], sort_keys=True)
            for binding in self.management(region).get(path)
            if binding["destination"].startswith(FEDERATION_PREFIX) == of_federation
        }

    def _backlog(self) -> int:
        """How many messages ``us`` holds that ``eu`` has not confirmed.

        Asked of the queues themselves: the management API's figures are up to five seconds old.
        """
        listed = self._server(HOME).run_tool(
            "rabbitmqctl", "--silent", "--formatter", "json", "list_queues", "name", "messages"
        )
        queues: list[dict[str, Any]] = json.loads(listed)
        return sum(q["messages"] for q in queues if q["name"].startswith(FEDERATION_PREFIX))

    def _server(self, region: Region) -> Server:
        if not self._servers:
            raise ConfigurationError("the topology does not run: use it as a context manager")
        if region not in self._servers:
            raise ConfigurationError(f"there is no broker {region!r} in this topology")
        return self._servers[region]


def _own_arguments(binding: Mapping[str, Any]) -> dict[str, Any]:
    """A binding's arguments without the one by which federation stops loops."""
    return {key: value for key, value in binding["arguments"].items() if key != "x-bound-from"}
