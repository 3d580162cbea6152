"""Two clusters of SeaweedFS, of which the first is copied to the second."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any, ClassVar

from antipode import ConfigurationError
from antipode_testing._errors import ClientMissing
from antipode_testing._proxy import LagProxy
from antipode_testing._topology import ServerTopology
from antipode_testing._wait import wait_until
from antipode_testing.servers.emulated import AWAY, HOME
from antipode_testing.servers.ministack import ACCOUNT
from antipode_testing.servers.server import make_directory, started

from .link import ChangesProxy
from .topology import BUCKET
from .weed import filer_sync, seaweedfs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from antipode_testing._address import Address
    from antipode_testing._process import ServerProcess
    from antipode_testing.servers.server import NativeServer

REPLICATION_TIMEOUT_S = 60.0
POLL_S = 0.02
#: Versions of one page of a listing, and of one request that deletes them.
_PAGE = 1000


class SeaweedFSTopology(ServerTopology):
    """Two regions of S3 on real servers: clusters of SeaweedFS, ``us`` and ``eu``.

    What is written to a bucket of ``us`` is copied to the bucket of the same name in ``eu`` by
    SeaweedFS's own ``filer.sync``: with the same ``VersionId``, delete markers too, and, other than
    on AWS, what is deleted for good. It reports no replication status. Lag delays that alone.

    Args:
        lag_ms: the replication lag to begin with, and to return to at `reset`.

    Raises:
        ServerMissing: on `start`, if SeaweedFS is not installed.
        ClientMissing: on `start`, if boto3 is not.
    """

    store: ClassVar[str] = "seaweedfs"
    #: What clients call the regions, the primary's first.
    regions: ClassVar[tuple[str, str]] = (HOME, AWAY)
    #: What signs requests: the servers take any.
    credentials: ClassVar[Mapping[str, str]] = ACCOUNT

    def __init__(self, *, lag_ms: float = 0.0) -> None:
        self._lag_from(lag_ms)
        self._servers: dict[str, NativeServer] = {}
        self._clients: dict[str, Any] = {}
        #: To the first region's filer: by HTTP, for content, and by gRPC, for what changed.
        self._links: tuple[LagProxy, ...] = ()
        self._folder: Path | None = None
        self._copying: ServerProcess | None = None
        self._since_ms = 0

    @property
    def primary(self) -> Address:
        """The endpoint of the first region, ``us``."""
        return self._server(HOME).address

    @property
    def replica(self) -> Address:
        """The endpoint of the second region, ``eu``."""
        return self._server(AWAY).address

    @property
    def closed(self) -> bool:
        """Whether no server of this topology runs any more."""
        return not self._servers

    def url(self, server: Address | None = None) -> str:
        """The ``endpoint_url`` of *server*, by default the primary."""
        return f"http://{server or self.primary}"

    @property
    def urls(self) -> tuple[str, str]:
        """The ``endpoint_url`` of each of `regions`."""
        return self.url(self.primary), self.url(self.replica)

    def start(self) -> None:
        """Start both clusters; return once what is written in one comes to the other."""
        if self._servers:
            return
        try:
            import boto3
            from botocore.config import Config
        except ImportError as error:
            msg = 'the Python client is missing: pip install "antipode-xcy[s3]"'
            raise ClientMissing(msg) from error
        self._since_ms = int(time.time() * 1000)
        for region in self.regions:
            self._servers[region] = started(seaweedfs(region))
            self._clients[region] = boto3.client(
                "s3",
                region_name=region,
                endpoint_url=self.url(self._servers[region].address),
                # A volume is made when it is first written to, and refuses until then.
                config=Config(retries={"total_max_attempts": 10}),
                **self.credentials,
            )
        home = self._server(HOME).endpoints
        self._links = LagProxy(home["filer"]), ChangesProxy(home["filer-grpc"])
        self._folder = make_directory("seaweedfs-sync")
        self.create_bucket(BUCKET)
        self._copy_all()
        self._clients[HOME].put_object(Bucket=BUCKET, Key="antipode-probe")
        self.wait_replicated()
        self._lag_as_begun()

    def close(self) -> None:
        """Stop what copies, and both clusters. Idempotent."""
        if self._copying is not None:
            self._copying.kill()
            self._copying = None
        while self._clients:
            self._clients.popitem()[1].close()
        while self._servers:
            self._servers.popitem()[1].close()
        for link in self._links:
            link.close()
        self._links = ()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def reset(self) -> None:
        """Undo lag and faults for the next test; what was written stays."""
        if not all(server.running for server in self._servers.values()):
            self.close()
            self.start()
            return
        self.set_lag(0.0)
        self.resume()
        self.heal()
        self._lag_as_begun()

    def create_bucket(self, name: str, *, versioned: bool = True) -> None:
        """Create a bucket in both regions.

        Args:
            name: of the bucket.
            versioned: whether it keeps versions.
        """
        for client in self._clients.values():
            client.create_bucket(Bucket=name)
            if versioned:
                client.put_bucket_versioning(
                    Bucket=name, VersioningConfiguration={"Status": "Enabled"}
                )

    def set_lag(self, ms: float) -> None:
        """Delay what the second region gets of the first by this many milliseconds."""
        _, changes = self._running_links
        changes.set_lag(ms)

    def pause(self) -> None:
        """Hold replication; its connections stay open."""
        self._sync.suspend()

    def resume(self) -> None:
        """Let what `pause` held go on."""
        self._sync.resume_process()

    def cut(self) -> None:
        """Partition the regions: what is written waits for `heal`."""
        for link in self._running_links:
            link.cut()

    def heal(self) -> None:
        """End the partition; replication connects again within two seconds."""
        for link in self._running_links:
            link.heal()

    def failover(self, *, lose_unreplicated: bool = True) -> None:
        """Refused.

        Raises:
            ConfigurationError: always.
        """
        del lose_unreplicated
        raise ConfigurationError("a bucket of S3 has no second region to go to")

    def reseed(self) -> None:
        """Throw the second region's objects away and copy the first region's."""
        self.forget()
        self._copy_all()
        self.wait_replicated()

    def forget(self) -> None:
        """Throw the second region's objects away, as if they had never come, until `reseed`."""
        for bucket, versions in self._versions(AWAY):
            gone = [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in versions]
            for start in range(0, len(gone), _PAGE):
                self._clients[AWAY].delete_objects(
                    Bucket=bucket, Delete={"Objects": gone[start : start + _PAGE], "Quiet": True}
                )

    def wait_replicated(self, *, timeout_s: float = REPLICATION_TIMEOUT_S) -> None:
        """Return once the second region has all that was written before.

        Raises:
            TopologyTimeout: it did not get it in time.
        """
        wait_until(
            lambda: self._shown(HOME) == self._shown(AWAY),
            what="the regions to have the same versions",
            timeout_s=timeout_s,
            interval_s=POLL_S,
        )

    def _copy_all(self) -> None:
        """Copy what was written since the beginning, and what will be."""
        assert self._folder is not None
        if self._copying is not None:
            self._copying.kill()
        http, grpc = (link.address for link in self._running_links)
        away = self._server(AWAY).endpoints
        self._copying = filer_sync(
            (http, grpc),
            (away["filer"], away["filer-grpc"]),
            since_ms=self._since_ms,
            directory=self._folder,
        )
        self._copying.start()

    def _shown(self, region: str) -> dict[str, set[tuple[str, ...]]]:
        """By bucket, the versions that a region has."""
        return {
            bucket: {
                (each["Key"], each["VersionId"], each.get("ETag", ""), str(each["IsLatest"]))
                for each in versions
            }
            for bucket, versions in self._versions(region)
        }

    def _versions(self, region: str) -> Iterator[tuple[str, list[Any]]]:
        """By bucket, the versions and the delete markers of a region."""
        client = self._clients[region]
        pages = client.get_paginator("list_object_versions")
        for bucket in client.list_buckets()["Buckets"]:
            found = []
            for page in pages.paginate(Bucket=bucket["Name"]):
                found += [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
            yield bucket["Name"], found

    @property
    def _running_links(self) -> tuple[LagProxy, ...]:
        self._server(HOME)
        return self._links

    @property
    def _sync(self) -> ServerProcess:
        self._server(HOME)
        assert self._copying is not None
        return self._copying

    def _server(self, region: str) -> NativeServer:
        if region not in self._servers:
            raise ConfigurationError("the topology does not run: use it as a context manager")
        return self._servers[region]
