"""SeaweedFS as processes of this machine: a server with all that it needs, and what copies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from antipode_testing._process import ServerProcess, find_executable
from antipode_testing.servers.server import NativeServer, make_directory, probe, reserving

if TYPE_CHECKING:
    from antipode_testing._address import Address, ReservedPort

INSTALL = "tools/fetch_seaweedfs.sh .stores"
#: Where clients connect by S3, and what the parts of a server talk to each other by.
PORTS = {
    "client": "s3.port",
    "s3-grpc": "s3.port.grpc",
    "master": "master.port",
    "master-grpc": "master.port.grpc",
    "volume": "volume.port",
    "volume-grpc": "volume.port.grpc",
    "filer": "filer.port",
    "filer-grpc": "filer.port.grpc",
}
#: It takes any credentials, and asks nobody outside of this machine.
_OPTIONS = {
    "s3": "true",
    "s3.port.iceberg": "0",
    "s3.port.lance": "0",
    "master.telemetry": "false",
    "master.volumeSizeLimitMB": "64",
    "volume.max": "40",
}


class SeaweedFS(NativeServer):
    """A server whose parts leave sockets behind, in a directory that no option names."""

    def close(self) -> None:
        """As `NativeServer.close`."""
        super().close()
        for key, address in self.endpoints.items():
            if key.endswith("-grpc"):
                Path(f"/tmp/seaweedfs-{key}-{address.port}.sock").unlink(missing_ok=True)  # noqa: S108 - SeaweedFS's choice


def seaweedfs(name: str) -> NativeServer:
    """A server with its master, volumes, filer and gateway of S3 in one process, not yet started.

    Raises:
        ServerMissing: SeaweedFS is not installed.
    """
    weed = find_executable("weed", install=INSTALL)

    def build(ports: dict[str, ReservedPort]) -> NativeServer:
        directory = make_directory("seaweedfs")
        data = directory / "data"
        address = ports["client"].address
        options = {
            "ip": address.host,
            "ip.bind": address.host,
            "dir": str(data),
            "filer.localSocket": str(directory / "filer.sock"),
            "s3.localSocket": str(directory / "s3.sock"),
            **_OPTIONS,
            **{option: str(ports[key].address.port) for key, option in PORTS.items()},
        }
        process = ServerProcess(
            f"seaweedfs-{name}",
            [str(weed), "server", *_written(options)],
            directory=directory,
            ready=lambda: probe(address, b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1."),
            environment={"HOME": str(directory)},
        )
        return SeaweedFS(directory, ports, process, data=(data,))

    return reserving(PORTS, build)


def filer_sync(
    source: tuple[Address, Address],
    target: tuple[Address, Address],
    *,
    since_ms: int,
    directory: Path,
) -> ServerProcess:
    """What copies all buckets of one server to another's, not yet started.

    Args:
        source: the filer that is copied, by HTTP and by gRPC.
        target: the filer that takes the copies, likewise.
        since_ms: what was written before is not copied; milliseconds since 1970.
        directory: where it runs.
    """
    options = {
        "isActivePassive": "true",
        "a": _filer(*source),
        "b": _filer(*target),
        "a.path": "/buckets",
        "b.path": "/buckets",
        "a.filerProxy": "true",
        "a.fromTsMs": str(since_ms),
        "concurrency": "1",  # More would leave an old version the newest, now and then.
    }
    return ServerProcess(
        "seaweedfs-sync",
        [str(find_executable("weed", install=INSTALL)), "filer.sync", *_written(options)],
        directory=directory,
        ready=lambda: True,
        environment={"HOME": str(directory)},
    )


def _filer(http: Address, grpc: Address) -> str:
    return f"{http}.{grpc.port}"


def _written(options: dict[str, str]) -> list[str]:
    return [f"-{name}={value}" for name, value in options.items()]
