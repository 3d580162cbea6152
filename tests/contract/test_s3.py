"""The S3 shim keeps the contract, over two regions of an emulator (ministack), not on AWS."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import boto3
import pytest
from botocore.config import Config

from antipode_shims import s3 as shims
from antipode_shims.s3._format import NAME, room_in
from antipode_testing import ContractStore, LagProxy, ShimContract

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import Address, S3Topology, SeaweedFSTopology

pytestmark = pytest.mark.store("s3")

BUCKET = "posts"
LONG_MS = 60_000
ESTABLISHED = "01"
HOME_CONNECTIONS = 2
ONCE = {"total_max_attempts": 1}


def client_of(topology: Any, address: Any, region: str, **options: Any) -> Any:
    """A client of boto3, which tries once."""
    config = Config(retries=ONCE, connect_timeout=2, **{"read_timeout": 5, **options})
    url = topology.url(address)
    return boto3.client(
        "s3", region_name=region, endpoint_url=url, config=config, **topology.credentials
    )


def connections_to(address: Address) -> int:
    """How many connections there are to a port of this machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    port = f"{address.port:04X}"
    return sum(row[2].partition(":")[2] == port and row[3] == ESTABLISHED for row in rows)


class S3ContractStore(ContractStore):
    """The reader comes through a proxy, which can be cut."""

    topology: S3Topology | SeaweedFSTopology
    #: A request of botocore takes milliseconds of a processor. Reads that each had the time of
    #: their request would still take four seconds together.
    read_s: ClassVar[float] = 0.1

    def __init__(self, topology: S3Topology | SeaweedFSTopology, stack: ExitStack) -> None:
        self._stack = stack
        self.home, self.away = topology.regions
        self.proxy = stack.enter_context(LagProxy(topology.replica))
        urls = {self.home: topology.url(topology.primary)}
        writer = self._shim(topology, topology.primary, self.home)
        reader = self._shim(
            topology, self.proxy.address, self.away, reads_from="replica", regions=urls
        )
        super().__init__(topology, writer, reader)

    def _client(self, topology: Any, address: Any, region: str, **options: Any) -> Any:
        client = client_of(topology, address, region, **options)
        self._stack.callback(client.close)
        return client

    def _shim(self, topology: Any, address: Any, region: str, **options: Any) -> Any:
        return shims.shim(
            "posts", self._client(topology, address, region), bucket=BUCKET, **options
        )

    def refused_write(self, key: str, value: bytes) -> None:
        """A condition that does not hold."""
        client = self._instrumented()
        try:
            client.put_object(Bucket=BUCKET, Key=key, Body=value, IfMatch='"another"')
        finally:
            shims.uninstrument_client(client)

    def doubtful_write(self, key: str, value: bytes) -> None:
        """The write arrives; the reply does not."""
        with LagProxy(self.topology.primary, lag_ms=0) as slow:
            client = self._client(self.topology, slow.address, self.home, read_timeout=1)
            doubtful = shims.shim("posts", client, bucket=BUCKET)
            try:
                doubtful.read(key)
                slow.set_lag(LONG_MS)
                doubtful.write(key, value)
            finally:
                doubtful.close()

    def unknown_write(self, key: str, value: bytes) -> None:
        """Tags: they make no version."""
        plain = self._client(self.topology, self.topology.primary, self.home)
        plain.put_object(Bucket=BUCKET, Key=key, Body=value)
        client = self._instrumented()
        try:
            client.put_object_tagging(
                Bucket=BUCKET, Key=key, Tagging={"TagSet": [{"Key": "a", "Value": value.decode()}]}
            )
        finally:
            shims.uninstrument_client(client)

    def _instrumented(self) -> Any:
        client = self._client(self.topology, self.topology.primary, self.home)
        return shims.instrument_client(client, datastore="posts")

    def corrupt(self, key: str, text: str) -> None:
        """Put it again with another text, by a client without the shim."""
        text = text[: room_in({})]  # AWS takes no more.
        plain = self._client(self.topology, self.topology.primary, self.home)
        plain.put_object(Bucket=BUCKET, Key=key, Body=b"1", Metadata={NAME: text})
        self.topology.wait_replicated()

    def connections(self) -> int:
        """Those to either region: the emulator leaves a proxy's open after the client's close.

        To the writer's region there may be two at any time: the writer's own, and the one that asks
        about writes, once enough looks have missed one.
        """
        away = connections_to(self.proxy.address)
        return away + max(connections_to(self.topology.primary), HOME_CONNECTIONS)

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        """Refuse connections to the replica."""
        self.proxy.cut()
        try:
            yield
        finally:
            self.proxy.heal()

    @contextmanager
    def regressed(self) -> Iterator[None]:
        """The reader's region has lost its objects."""
        self.topology.pause()
        self.topology.forget()
        try:
            yield
        finally:
            self.topology.resume()
            self.topology.reseed()


class TestS3(ShimContract):
    """An emulator."""

    opt_outs: ClassVar[dict[str, str]] = {
        "deletes": "a delete marker has no metadata: who finds no object depends on none",
        "failover": "a bucket stays in its region: there is no primary to replace",
        "fences": "each object has versions of its own: no position stands for all writes",
        "partial_updates": "Table 2 writes values whole",
        "promises": "records of promises are for a later release",
        "abandonment": "records of promises are for a later release",
    }

    @pytest.fixture
    def store(self, antipode_s3: S3Topology) -> Iterator[S3ContractStore]:
        """A shim in each region."""
        with ExitStack() as stack:
            store = S3ContractStore(antipode_s3, stack)
            yield store
            store.writer.close()
            store.reader.close()
