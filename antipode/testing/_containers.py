"""Servers as containers of a local engine, by testcontainers, on the host's loopback interface.

Containers share the host's network: like native servers they listen on 127.0.0.1 alone, on ports
that the system chose, and reach the proxies of a topology there.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from antipode._errors import ConfigurationError

from ._containers_guard import GUARD, LABEL
from ._errors import ClientMissing, ServerFailed, ServerMissing
from ._native import reserving
from ._process import LOG_TAIL_BYTES, STOP_TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._address import Address, ReservedPort
    from ._containers_recipes import Recipe
    from ._topology import Server

# The official images initialise a new database by starting it twice.
START_TIMEOUT_S = 120.0
POLL_S = 0.05


class ContainerProvider:
    """Runs servers from images, the official ones by default.

    The image of a store is named by the environment variable ``ANTIPODE_<STORE>_IMAGE``, such as
    ``ANTIPODE_REDIS_IMAGE``. The engine must be of this machine, and Linux's: containers use the
    host's network.
    """

    def start(self, store: str, name: str, config: Mapping[str, str]) -> Server:
        """Start one server; see `Provider.start`.

        Raises:
            ClientMissing: testcontainers is not installed.
        """
        from ._containers_recipes import PORTS, recipe

        if store not in PORTS:
            raise ConfigurationError(f"no container for the store {store!r}")

        def build(ports: dict[str, ReservedPort]) -> ContainerServer:
            addresses = {key: port.address for key, port in ports.items()}
            return ContainerServer(f"{store}-{name}", ports, recipe(store, name, config, addresses))

        server = reserving(PORTS[store], build)
        try:
            server.start()
        except BaseException:
            server.close()
            raise
        return server


class ContainerServer:
    """One container with its reserved ports.

    Args:
        name: for messages.
        ports: reserved by name; the one called ``client`` is the address.
        recipe: what runs in it.
    """

    def __init__(self, name: str, ports: Mapping[str, ReservedPort], recipe: Recipe) -> None:
        self.endpoints: Mapping[str, Address] = {key: port.address for key, port in ports.items()}
        self.address = self.endpoints["client"]
        self._name = name
        self._ports = dict(ports)
        self._recipe = recipe
        self._testcontainer: Any = None

    @property
    def running(self) -> bool:
        """Whether its process exists, suspended included."""
        return self._status() in {"running", "paused"}

    def start(self) -> None:
        """Make a container with no data, and start it; return once it answers."""
        GUARD.add(self)
        self._testcontainer = _make(self._recipe)
        _started(self._testcontainer, self._recipe.image)
        self._await_ready()

    def suspend(self) -> None:
        """Freeze it: connections stay and nothing answers."""
        if self._status() != "running":
            raise ServerFailed(f"{self._name} does not run: start it before it can be suspended")
        self._container.pause()

    def resume_process(self) -> None:
        """Let it run again after `suspend`; a running one is not disturbed."""
        if self._status() == "paused":
            self._container.unpause()

    def stop(self) -> None:
        """End it politely; its address and data are kept for `restart`."""
        if self.running:
            self.resume_process()
            self._container.stop(timeout=int(STOP_TIMEOUT_S))

    def kill(self) -> None:
        """End it at once; its address and data are kept for `restart`."""
        if self.running:
            # The engine ends a frozen container by thawing it after the signal is on its way.
            self._container.kill()
            self.resume_process()
            self._container.wait()

    def restart(self, *, graceful: bool = True, wipe: bool = False) -> None:
        """Start it again at the same address, with its data or with none."""
        if graceful:
            self.stop()
        else:
            self.kill()
        if wipe:
            self._remove()
            self.start()
        else:
            self._container.start()
            self._await_ready()

    def run_tool(self, *command: str) -> str:
        """Run a tool that comes with the store, in the container; see `Server.run_tool`."""
        code, (output, errors) = self._container.exec_run(list(command), demux=True)
        if code:
            said = (errors or output or b"").decode(errors="replace").strip()
            raise ServerFailed(f"{' '.join(command)}: {said}")
        return (output or b"").decode()

    def close(self) -> None:
        """End it for good: the container, its volumes and its ports. Idempotent."""
        self._remove()
        GUARD.remove(self)
        for port in self._ports.values():
            port.close()

    @property
    def _container(self) -> Any:
        """The engine's container."""
        if self._testcontainer is None:
            raise ServerFailed(f"{self._name} does not run: its topology is closed")
        return self._testcontainer.get_wrapped_container()

    def _status(self) -> str:
        if self._testcontainer is None:
            return "removed"
        self._container.reload()
        return str(self._container.status)

    def _remove(self) -> None:
        made, self._testcontainer = self._testcontainer, None
        if made is not None:
            made.stop(force=True, delete_volume=True)

    def _await_ready(self) -> None:
        """Return once the server answers.

        Raises:
            ServerFailed: it ended, or did not answer in time.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_ready():
            if not self.running:
                raise ServerFailed(self._epitaph("ended while it started"))
            if time.monotonic() >= deadline:
                raise ServerFailed(self._epitaph(f"was not ready in {START_TIMEOUT_S:g} s"))
            time.sleep(POLL_S)

    def _is_ready(self) -> bool:
        try:
            return self._recipe.ready()
        except OSError:
            return False

    def _epitaph(self, what: str) -> str:
        tail = self._container.logs(tail=50)[-LOG_TAIL_BYTES:].decode(errors="replace").strip()
        return f"{self._name} {what}; the end of its output:\n{tail or '(it printed nothing)'}"


def _make(recipe: Recipe) -> Any:
    """A container that is not yet started.

    Raises:
        ClientMissing: testcontainers is not installed.
        ServerMissing: no engine answers.
    """
    try:
        from docker.errors import DockerException
        from testcontainers.core.container import DockerContainer
    except ImportError as error:
        raise ClientMissing(
            "servers in containers need testcontainers: pip install antipode-xcy[containers]"
        ) from error
    try:
        made: Any = DockerContainer(recipe.image)
    except DockerException as error:
        raise ServerMissing(
            f"no container engine answers ({error}): start one, as `make containers` does in a"
            " checkout of Antipode"
        ) from error
    return (
        made.with_command(list(recipe.command))
        .with_envs(**recipe.environment)
        .with_kwargs(network_mode="host", labels=LABEL)
    )


def _started(made: Any, image: str) -> None:
    """Start a container.

    Raises:
        ServerMissing: its image is not here and cannot be pulled.
        ServerFailed: the engine refused.
    """
    from docker.errors import APIError, ImageNotFound

    try:
        made.start()
    except ImageNotFound as error:
        raise ServerMissing(_not_here(image, error)) from error
    except APIError as error:
        # What a registry that does not answer looks like.
        if made.get_wrapped_container() is None:
            raise ServerMissing(_not_here(image, error)) from error
        raise ServerFailed(f"the container engine refused to start {image}: {error}") from error


def _not_here(image: str, error: Exception) -> str:
    reason = str(error).splitlines()[0]
    return (
        f"the image {image!r}, or the one of testcontainers' own Ryuk, is not here and cannot be"
        f" pulled ({reason}): `make containers` in a checkout of Antipode builds what stands in"
        " for it; TESTCONTAINERS_RYUK_DISABLED=true does without Ryuk"
    )
