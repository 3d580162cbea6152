"""A server as a container of a local engine, by testcontainers."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antipode_testing._errors import ClientMissing, ServerFailed, ServerMissing
from antipode_testing._process import LOG_TAIL_BYTES, STOP_TIMEOUT_S

from .guard import GUARD, LABEL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from antipode_testing._address import Address, ReservedPort

# The official images initialise a new database by starting it twice.
START_TIMEOUT_S = 120.0
POLL_S = 0.05
UNIX = "unix://"
DEFAULT_ENGINE = f"{UNIX}/var/run/docker.sock"


@dataclass(frozen=True)
class Recipe:
    """A container.

    Attributes:
        image: by name.
        command: what the image's entry point is given.
        ready: asked until it holds; an `OSError` counts as not ready.
        environment: variables in addition to the image's own.
        settle: done each time once it is ready.
    """

    image: str
    command: tuple[str, ...]
    ready: Callable[[], bool]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    settle: Callable[[ContainerServer], None] = lambda _: None


class ContainerServer:
    """One container.

    Args:
        name: for messages.
        endpoints: where it listens, by name; the one called ``client`` is the address.
        recipe: what runs in it.
        ports: reserved for it, to be given back in the end.
    """

    def __init__(
        self,
        name: str,
        endpoints: Mapping[str, Address],
        recipe: Recipe,
        ports: Iterable[ReservedPort] = (),
    ) -> None:
        self.endpoints: Mapping[str, Address] = dict(endpoints)
        self.address = self.endpoints["client"]
        self._name = name
        self._ports = tuple(ports)
        self._recipe = recipe
        self._testcontainer: Any = None
        self._made: Any = None

    @property
    def running(self) -> bool:
        """Whether its process exists, suspended included."""
        return self._status() in {"running", "paused"}

    def start(self) -> None:
        """Make a container with no data, and start it; return once it answers."""
        self._made = self._make()
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
        for port in self._ports:
            port.close()

    @property
    def _container(self) -> Any:
        """The engine's container."""
        if self._made is None:
            raise ServerFailed(f"{self._name} does not run: its topology is closed")
        return self._made

    def _status(self) -> str:
        if self._made is None:
            return "removed"
        self._made.reload()
        return str(self._made.status)

    def _make(self) -> Any:
        """Make and start the container."""
        GUARD.add(self)
        self._testcontainer = _configured(self._recipe)
        _start(self._testcontainer, self._recipe.image)
        return self._testcontainer.get_wrapped_container()

    def _remove(self) -> None:
        testcontainer, self._testcontainer, self._made = self._testcontainer, None, None
        if testcontainer is not None:
            testcontainer.stop(force=True, delete_volume=True)

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
        self._recipe.settle(self)

    def _is_ready(self) -> bool:
        try:
            return self._recipe.ready()
        except OSError:
            return False

    def _epitaph(self, what: str) -> str:
        tail = self._container.logs(tail=50)[-LOG_TAIL_BYTES:].decode(errors="replace").strip()
        return f"{self._name} {what}; the end of its output:\n{tail or '(it printed nothing)'}"


def _configured(recipe: Recipe) -> Any:
    """A container that is not yet started.

    Raises:
        ClientMissing: testcontainers is not installed.
        ServerMissing: no engine answers.
    """
    try:
        from docker.errors import DockerException
        from testcontainers.core.container import DockerContainer
        from testcontainers.core.docker_client import get_docker_host
    except ImportError as error:
        raise ClientMissing(
            "servers in containers need testcontainers: pip install antipode-xcy[containers]"
        ) from error
    try:
        _connect(get_docker_host() or DEFAULT_ENGINE)
        made: Any = DockerContainer(recipe.image)
    except (DockerException, OSError) as error:
        raise ServerMissing(
            f"no container engine answers ({error}): start one, as `make containers` does in a"
            " checkout of Antipode"
        ) from error
    return (
        made.with_command(list(recipe.command))
        .with_envs(**recipe.environment)
        .with_kwargs(network_mode="host", labels=LABEL)
    )


def _connect(engine: str) -> None:
    """Check whether anybody listens: the engine's client leaves a socket open if nobody does."""
    if engine.startswith(UNIX):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(engine.removeprefix(UNIX))


def _start(made: Any, image: str) -> None:
    """Start a container.

    Raises:
        ServerMissing: its image is not here and cannot be pulled.
        ServerFailed: the engine refused.
    """
    from docker.errors import APIError

    try:
        made.start()
    except APIError as error:
        if not _has_image(made, image):
            raise ServerMissing(_not_here(image, error)) from error
        raise ServerFailed(f"the container engine refused to start {image}: {error}") from error


def _has_image(made: Any, image: str) -> bool:
    from docker.errors import ImageNotFound

    try:
        made.get_docker_client().client.images.get(image)
    except ImageNotFound:
        return False
    return True


def _not_here(image: str, error: Exception) -> str:
    reason = str(error).splitlines()[0]
    return (
        f"the image {image!r} is not here and cannot be pulled ({reason}): `make containers` in a"
        " checkout of Antipode builds what stands in for it"
    )
