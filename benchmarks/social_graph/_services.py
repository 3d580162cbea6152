"""The services of a run: which programs, with which arguments, in which region."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Literal

import redis

from antipode_testing import LagProxy
from antipode_testing._address import ReservedPort
from benchmarks.post_notification._process import ServiceProcess

from ._build import DESCRIPTORS
from ._graph import USERS, Friendship
from ._servers import REGIONS, Servers
from ._workload import username

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

#: Without the library; with it and no barrier; with one where timelines are written, as the paper.
Variant = Literal["baseline", "instrumented", "barrier"]
VARIANTS: tuple[Variant, ...] = ("baseline", "instrumented", "barrier")

#: The services, by region: their programs, and the arguments that are of theirs alone.
_HOME = ("unique-id", "text", "user-mention", "url-shorten", "social-graph", "user-timeline")
_BOTH = ("post-storage", "write-home-timeline", "home-timeline")
_PYTHON = {"media": "media", "user": "user"}
#: The ports of `up`; in the region eu a hundred more.
PORTS = {
    "compose-post": 9101,
    "unique-id": 9102,
    "text": 9103,
    "user-mention": 9104,
    "url-shorten": 9105,
    "social-graph": 9106,
    "user-timeline": 9107,
    "media": 9108,
    "user": 9109,
    "post-storage": 9110,
    "write-home-timeline": 9111,
    "home-timeline": 9112,
    "compose-post http": 9180,
    "home-timeline http": 9181,
}
_HTTP = ("compose-post", "home-timeline")


class Services:
    """The services while they run.

    Attributes:
        edges: where HTTP is answered: to compose in `us`, and to read home timelines by region.
    """

    def __init__(self, edges: Mapping[str, str]) -> None:
        """Note where the edges are."""
        self.edges = edges
        self._running: list[ServiceProcess] = []

    def add(self, process: ServiceProcess) -> None:
        """Note a process."""
        self._running.append(process)

    def check(self) -> None:
        """Make sure that all run.

        Raises:
            BenchmarkError: one ended.
        """
        for process in self._running:
            process.check()


@contextmanager
def services(
    servers: Servers,
    built: Path,
    variant: Variant,
    take: Callable[[dict[str, Any]], None],
    *,
    link_ms: float,
    fixed_ports: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Services]:
    """Start the services of one variant; return once all listen.

    Args:
        servers: the stores under them.
        built: the folder of the programs, of `build`.
        variant: which.
        take: gets what write-home-timeline in eu observed of each message.
        link_ms: how long a call from eu to us takes, one way.
        fixed_ports: listen at `PORTS` instead of ports that the system chooses.
        environment: more of it, for all.

    Raises:
        BenchmarkError: one does not start.
    """
    with ExitStack() as stack:
        addresses: dict[str, str] = {}
        for region in REGIONS:
            for name in _names(region):
                addresses[f"{region} {name}"] = _address(name, region, stack, fixed=fixed_ports)
        host, port = addresses["us social-graph"].split(":")
        link = LagProxy((host, int(port)), lag_ms=link_ms, request_lag_ms=link_ms)
        stack.enter_context(link)
        addresses["eu social-graph"] = str(link.address)
        edges = {
            "compose": addresses["us compose-post http"],
            **{region: addresses[f"{region} home-timeline http"] for region in REGIONS},
        }
        running = Services(edges)
        for region in REGIONS:
            for name in (name for name in _names(region) if not name.endswith(" http")):
                observes = (region, name) == ("eu", "write-home-timeline")
                process = ServiceProcess(
                    f"{name} in {region}",
                    take if observes else _ignore,
                    command=_command(name, region, addresses, servers, built, variant),
                    environment={"ANTIPODE_REGION": region, **(environment or {})},
                )
                stack.callback(process.close)
                running.add(process)
                process.configure({})
        yield running


def seed(servers: Servers, graph: list[Friendship]) -> None:
    """Put the users and who follows whom into the stores: each friendship is two follows."""
    host, port = servers.redis["us"]
    with redis.Redis(host, port) as client:
        lines = client.pipeline()
        lines.hset("user-ids", mapping={username(user): user for user in range(USERS)})
        for one, other in graph:
            for follower, followee in ((one, other), (other, one)):
                lines.sadd(f"{followee}:followers", follower)
                lines.sadd(f"{follower}:followees", followee)
        lines.execute()


def _names(region: str) -> tuple[str, ...]:
    own = ("compose-post", *_HOME, *_PYTHON, "compose-post http") if region == "us" else ()
    return (*own, *_BOTH, "home-timeline http")


def _address(name: str, region: str, stack: ExitStack, *, fixed: bool) -> str:
    if fixed:
        return f"127.0.0.1:{PORTS[name] + 100 * REGIONS.index(region)}"
    # Held until the end: a service that is started again finds its port free.
    port = ReservedPort()
    stack.callback(port.close)
    return str(port.address)


def _command(  # noqa: PLR0917 - what a deployment is made of
    name: str,
    region: str,
    addresses: Mapping[str, str],
    servers: Servers,
    built: Path,
    variant: Variant,
) -> list[str]:
    """The program of a service and its arguments; what one does not need, it does not read."""
    library = variant != "baseline"
    found = {
        key.removeprefix(f"{region} "): value
        for key, value in addresses.items()
        if key.startswith(f"{region} ") and not key.endswith(" http")
    }
    found |= {
        "port": addresses[f"{region} {name}"].split(":")[1],
        "region": region,
        "redis": str(servers.redis[region]),
        "mongodb": str(servers.posts(region)),
        "rabbitmq": servers.broker(region),
        "barrier": "write" if variant == "barrier" and region == "eu" else "none",
    }
    if name in _HTTP:
        found["http"] = addresses[f"{region} {name} http"].split(":")[1]
    if name in _PYTHON:
        found |= {"library": "yes" if library else "no", "descriptors": str(built / DESCRIPTORS)}
        module = f"benchmarks.social_graph.services.{_PYTHON[name]}"
        program = [sys.executable, "-m", module]
    else:
        folder = built / ("antipode" if library else "baseline")
        program = [str(folder / name.replace("-", "_"))]
    return [*program, *(f"{key}={value}" for key, value in found.items())]


def _ignore(record: dict[str, Any]) -> None:
    """Of no service but one is anything measured by what it says."""
