"""The services of a run: which programs, with which arguments, in which region."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import redis

from antipode_testing._address import ReservedPort
from benchmarks._maven import class_path
from benchmarks._processors import spent_by
from benchmarks.post_notification._options import BenchmarkError
from benchmarks.post_notification._process import ServiceProcess

from ._build import DESCRIPTORS, JAVA
from ._graph import USERS, Friendship
from ._servers import REGIONS, Servers
from ._workload import Workload, username

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

#: Without the library, and with OpenTelemetry's own propagation in its place; with it and no
#: barrier; and a barrier where timelines are written, as the paper's, one where they are read, and
#: reads that wait by themselves.
Variant = Literal[
    "baseline", "opentelemetry", "instrumented", "barrier", "barrier-at-read", "automatic"
]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
#: Those that promise that no reader is shown a post that is not there.
GUARDED: tuple[Variant, ...] = ("barrier", "barrier-at-read", "automatic")
#: The library is not switched off in these: it is not there.
_WITHOUT = ("baseline", "opentelemetry")
_BARRIERS = {"barrier": "write", "barrier-at-read": "read"}
#: They protect who reads timelines, and the paper's workload has no such readers.
_AT_READ = ("barrier-at-read",)
#: A read that waits holds its thread: there are as many as messages that may wait at once.
_AUTOMATIC = {"workers": "64", "prefetch": "1"}
_AUTOMATIC_ENVIRONMENT = {
    "ANTIPODE_BARRIERS": "auto",
    "ANTIPODE_AUTO_TIMEOUT": "5",
    "ANTIPODE_ON_STALE": "raise",
}

#: The services, by region: their programs, and the arguments that are of theirs alone.
_HOME = ("unique-id", "text", "user-mention", "url-shorten", "user-timeline")
_BOTH = ("social-graph", "post-storage", "write-home-timeline", "home-timeline")
#: Sizes that a service of this kind needs; the second compiler costs more than it brings here.
_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss512k", "-Xmx96m", "-XX:-UsePerfData")
_USER = "socialgraph.user.UserApplication"
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
#: Milliseconds within which eu has the graph.
_COPIED_MS = 30_000


def fitting(variants: Sequence[Variant], workload: Workload) -> tuple[Variant, ...]:
    """Those of some variants that can be judged by a workload."""
    return tuple(it for it in variants if workload != "paper" or it not in _AT_READ)


#: What a service prints is handed on with the region and the name of the service.
Take = Callable[[str, dict[str, Any]], None]


class Services:
    """The services while they run.

    Attributes:
        edges: where HTTP is answered: to compose in `us`, and to read home timelines by region.
    """

    def __init__(self, edges: Mapping[str, str], take: Take) -> None:
        """Note where the edges are, and who gets what services print."""
        self.edges = edges
        self._take = take
        self._commands: dict[str, tuple[list[str], dict[str, str]]] = {}
        self._running: dict[str, ServiceProcess] = {}

    @property
    def names(self) -> list[str]:
        """All services, as `us compose-post`."""
        return list(self._commands)

    def add(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        """Begin to start a service."""
        self._commands[name] = command, environment
        self._launch(name)

    def wait(self) -> None:
        """Return once all listen.

        Raises:
            BenchmarkError: one does not start.
        """
        for process in self._running.values():
            process.configure({})

    def kill(self, name: str) -> None:
        """Kill a service."""
        process = self._running.pop(name)
        process.kill()
        process.close()

    def start(self, name: str) -> None:
        """Start a service that was killed; return once it listens.

        Raises:
            BenchmarkError: it does not start.
        """
        self._launch(name)
        self._running[name].configure({})

    def spent_s(self) -> dict[str, float]:
        """Seconds of processor time of each service since it was started."""
        return {name: spent_by(process.pid) or 0.0 for name, process in self._running.items()}

    def check(self) -> None:
        """Make sure that all run.

        Raises:
            BenchmarkError: one ended.
        """
        for process in self._running.values():
            process.check()

    def close(self) -> None:
        """End all."""
        for process in self._running.values():
            process.release()
        for process in self._running.values():
            process.close()

    def _launch(self, name: str) -> None:
        command, environment = self._commands[name]
        self._running[name] = ServiceProcess(
            name, partial(self._take, name), command=command, environment=environment
        )


@contextmanager
def services(
    servers: Servers,
    built: Path,
    variant: Variant,
    take: Take,
    *,
    fixed_ports: bool = False,
    environment: Mapping[str, str] | None = None,
    arguments: Mapping[str, str] | None = None,
) -> Iterator[Services]:
    """Start the services of one variant; return once all listen.

    Args:
        servers: the stores under them.
        built: the folder of the programs, of `build`.
        variant: which.
        take: gets what services observed of posts.
        fixed_ports: listen at `PORTS` instead of ports that the system chooses.
        environment: more of it, for all.
        arguments: more of them, for all: a service reads those that it knows.

    Raises:
        BenchmarkError: one does not start.
    """
    with ExitStack() as stack:
        addresses: dict[str, str] = {}
        for region in REGIONS:
            for name in _names(region):
                addresses[f"{region} {name}"] = _address(name, region, stack, fixed=fixed_ports)
        edges = {
            "compose": addresses["us compose-post http"],
            **{region: addresses[f"{region} home-timeline http"] for region in REGIONS},
        }
        running = Services(edges, take)
        stack.callback(running.close)
        for region in REGIONS:
            for name in (name for name in _names(region) if not name.endswith(" http")):
                command = _command(name, region, addresses, servers, built, variant)
                more = [f"{key}={value}" for key, value in (arguments or {}).items()]
                automatic = _AUTOMATIC_ENVIRONMENT if variant == "automatic" else {}
                around = {"ANTIPODE_REGION": region, **automatic, **(environment or {})}
                running.add(f"{region} {name}", [*command, *more], around)
        running.wait()
        yield running


def seed(at: tuple[str, int], graph: list[Friendship]) -> None:
    """Put the users and who follows whom into Redis in us: each friendship is two follows.

    Args:
        at: that server, which has a replica in eu.
        graph: of friends.

    Raises:
        BenchmarkError: eu does not get it.
    """
    with redis.Redis(*at) as client:
        lines = client.pipeline()
        lines.hset("user-ids", mapping={username(user): user for user in range(USERS)})
        for one, other in graph:
            for follower, followee in ((one, other), (other, one)):
                lines.sadd(f"{followee}:followers", follower)
                lines.sadd(f"{follower}:followees", followee)
        lines.execute()
        if not client.wait(1, _COPIED_MS):
            raise BenchmarkError("the replica of Redis in eu does not copy the graph")


def _names(region: str) -> tuple[str, ...]:
    own = ("compose-post", *_HOME, "media", "user", "compose-post http") if region == "us" else ()
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
    build = variant if variant in _WITHOUT else "antipode"
    found = {
        key.removeprefix(f"{region} "): value
        for key, value in addresses.items()
        if key.startswith(f"{region} ") and not key.endswith(" http")
    }
    found |= {
        "port": addresses[f"{region} {name}"].split(":")[1],
        "region": region,
        "redis": str((servers.graph if name == "social-graph" else servers.redis)[region].address),
        "mongodb": str(servers.posts(region)),
        "rabbitmq": servers.broker(region),
        "barrier": _BARRIERS.get(variant, "none") if region == "eu" else "none",
        **(_AUTOMATIC if variant == "automatic" and region == "eu" else {}),
    }
    if name in _HTTP:
        found["http"] = addresses[f"{region} {name} http"].split(":")[1]
    if name == "media":
        found |= {"build": build, "descriptors": str(built / DESCRIPTORS)}
        program = [sys.executable, "-m", "benchmarks.social_graph.services.media"]
    elif name == "user":
        program = ["java", *_JVM, "-cp", class_path(JAVA, build), _USER]
    else:
        program = [str(built / build / name.replace("-", "_"))]
    return [*program, *(f"{key}={value}" for key, value in found.items())]
