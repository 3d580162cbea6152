"""The servers of docker-compose.yml under a topology: started again, copying as that one says."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from antipode_testing._address import LOOPBACK, Address
from antipode_testing._errors import ClientMissing, ServerFailed, ServerMissing
from antipode_testing._proxy import LagProxy
from antipode_testing.servers.mongodb.native import _answers
from antipode_testing.servers.mysql.native import _greets
from antipode_testing.servers.rabbitmq.native import _is_up
from antipode_testing.servers.server import probe, started

from .server import ContainerServer, Recipe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._topology import Server

FILE_VARIABLE = "ANTIPODE_COMPOSE_FILE"
UP_TIMEOUT_S = 120.0
SAID_CHARS = 500
LINK = "link"
SERVICE_LABEL = "com.docker.compose.service"
#: The region that a server of a topology is, by its name there.
REGIONS = {"primary": "us", "replica-0": "eu", "us": "us", "eu": "eu"}
#: The container's ports, by name.
PORTS = {
    "mongodb": {"client": 27017},
    "mysql": {"client": 3306},
    "rabbitmq": {"client": 5672, "management": 15672},
    "redis": {"client": 6379},
}
#: What the file starts the servers of a store with, of that which a topology sets. Redis
#: gets its settings when it runs.
SETTINGS = {"mongodb": {"replSet"}, "mysql": {"server-id"}, "rabbitmq": set[str]()}


class ComposeProvider:
    """Takes the servers of a stack over: two regions of Redis, RabbitMQ, MySQL or MongoDB.

    The stack is the one of the file that ``ANTIPODE_COMPOSE_FILE`` names, ``docker-compose.yml`` of
    the working directory by default. Each server is created again, its data included, and copies
    through a proxy of this process instead of the stack's own link. A stack is for one process at a
    time, and is left as the last test left it.
    """

    def __init__(self) -> None:
        self._gateway: str | None = None

    @property
    def host(self) -> str:
        """This machine on the stack's network, whose gateway it is."""
        return self._gateway or LOOPBACK

    def start(self, store: str, name: str, config: Mapping[str, str]) -> Server:
        """Start one server; see `Provider.start`.

        Raises:
            ServerMissing: the stack has no such server, or none with such settings, or there is no
                engine.
        """
        region = REGIONS.get(name)
        if store not in PORTS or region is None:
            raise ServerMissing(
                f"a topology cannot take {name!r} of {store} over from docker-compose.yml: it can"
                f" do so with two regions each of {', '.join(PORTS)}"
            )
        others = set(config).difference(SETTINGS.get(store, config))
        if others:
            raise ServerMissing(
                f"docker-compose.yml starts {store} without {', '.join(sorted(others))}, and a"
                " topology cannot set that there"
            )
        service = f"{store}-{region}"
        made = _up(service)
        gateways = [it["Gateway"] for it in made.attrs["NetworkSettings"]["Networks"].values()]
        self._gateway = gateways[0]
        published = made.attrs["NetworkSettings"]["Ports"]
        ports = {
            key: Address(LOOPBACK, int(published[f"{port}/tcp"][0]["HostPort"]))
            for key, port in PORTS[store].items()
        }
        made.client.close()
        return started(ComposeServer(service, ports, _recipe(store, config, ports)))

    def link(self, upstream: Address) -> LagProxy:
        """A proxy on the stack's network; see `Provider.link`."""
        return LagProxy(upstream, host=self.host)


class ComposeServer(ContainerServer):
    """One service of the stack; starting it again throws its data away."""

    def close(self) -> None:
        """Leave it to the stack, running. Idempotent."""
        if self._made is not None and not self.running:
            self._made.start()
        self._remove()

    def _make(self) -> Any:
        return _up(self._name, anew=True)

    def _remove(self) -> None:
        made, self._made = self._made, None
        if made is not None:
            made.client.close()


def _recipe(store: str, config: Mapping[str, str], ports: Mapping[str, Address]) -> Recipe:
    client = ports["client"]
    if store == "rabbitmq":
        return Recipe("", (), lambda: _is_up(ports))
    if store == "mysql":
        return Recipe("", (), lambda: _greets(client))
    if store == "mongodb":
        return Recipe("", (), lambda: _answers(client))

    def settle(server: ContainerServer) -> None:
        for key, value in config.items():
            command = ["REPLICAOF", *value.split()]
            if key != "replicaof":
                command = ["CONFIG", "SET", key, value]
            server.run_tool("redis-cli", *command)

    return Recipe("", (), lambda: probe(client, b"PING\r\n", b"+PONG"), settle=settle)


def _up(service: str, *, anew: bool = False) -> Any:
    """Bring a service up, alone; its container.

    Raises:
        ServerMissing: there is no engine, no such stack, or no image.
    """
    try:
        import docker
        from docker.errors import DockerException
    except ImportError as error:
        raise ClientMissing(
            "servers in containers need testcontainers: pip install antipode-xcy[containers]"
        ) from error
    file = os.environ.get(FILE_VARIABLE) or "docker-compose.yml"
    # Replicas would copy by it as well until they are set otherwise.
    _run(file, "stop", "--timeout", "0", LINK)
    fresh = ("--force-recreate", "--renew-anon-volumes") if anew else ()
    _run(file, "up", "--detach", "--no-deps", "--timeout", "0", *fresh, service)
    try:
        engine: Any = docker.from_env()
        found = engine.containers.list(filters={"label": f"{SERVICE_LABEL}={service}"})
    except DockerException as error:
        raise ServerMissing(f"no container engine answers: {error}") from error
    if len(found) != 1:
        engine.close()
        raise ServerFailed(f"{len(found)} containers are called {service}: stop the other stack")
    return found[0]


def _run(file: str, *command: str) -> None:
    done = subprocess.run(
        [*_compose(), "--file", file, *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=UP_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        said = done.stderr.strip()[-SAID_CHARS:]
        raise ServerMissing(f"`docker compose {' '.join(command)}` failed for {file}: {said}")


@lru_cache(maxsize=1)
def _compose() -> tuple[str, ...]:
    """Compose as the engine's plug-in, or as the program of its own that it was before."""
    docker = shutil.which("docker")
    if docker is not None:
        done = subprocess.run([docker, "compose", "version"], capture_output=True, check=False)
        if done.returncode == 0:
            return (docker, "compose")
    alone = shutil.which("docker-compose")
    if alone is None:
        raise ServerMissing("there is no docker compose: install its plug-in or docker-compose")
    return (alone,)
