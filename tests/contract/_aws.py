"""What the contract stores of DynamoDB and S3 share: two regions, each with clients of boto3."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import boto3
from botocore.config import Config

from antipode_testing import ContractStore, LagProxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager, ExitStack

    from antipode_testing import Address, DynamoDBTopology, S3Topology, SeaweedFSTopology

#: The datastore, and its table or bucket.
POSTS = "posts"
LONG_MS = 60_000
ESTABLISHED = "01"
HOME_CONNECTIONS = 2
ONCE = {"total_max_attempts": 1}


def connections_to(address: Address) -> int:
    """How many connections there are to a port of this machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    port = f"{address.port:04X}"
    return sum(row[2].partition(":")[2] == port and row[3] == ESTABLISHED for row in rows)


class RegionsContractStore(ContractStore):
    """The reader comes through a proxy, which can be cut.

    Attributes:
        shims: the store's module.
        service: its name, as boto3 has it.
        kept_in: what holds values there, as an argument of its shims.
    """

    topology: DynamoDBTopology | S3Topology | SeaweedFSTopology
    shims: ClassVar[Any]
    service: ClassVar[str]
    kept_in: ClassVar[str]
    #: A request of botocore takes milliseconds of a processor. Reads that each had the time of
    #: their request would still take four seconds together.
    read_s: ClassVar[float] = 0.1

    def __init__(
        self, topology: DynamoDBTopology | S3Topology | SeaweedFSTopology, stack: ExitStack
    ) -> None:
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
        """A client, which tries once."""
        client = boto3.client(
            self.service,
            region_name=region,
            endpoint_url=topology.url(address),
            config=Config(retries=ONCE, connect_timeout=2, **{"read_timeout": 5, **options}),
            **topology.credentials,
        )
        self._stack.callback(client.close)
        return client

    def _shim(self, topology: Any, address: Any, region: str, **options: Any) -> Any:
        client = self._client(topology, address, region)
        return self.shims.shim(POSTS, client, **{self.kept_in: POSTS}, **options)

    def plain(self) -> Any:
        """A client of the writer's region, without the shim."""
        return self._client(self.topology, self.topology.primary, self.home)

    @contextmanager
    def instrumented(self) -> Iterator[Any]:
        """A client of the writer's region."""
        client = self.shims.instrument_client(self.plain(), datastore=POSTS)
        try:
            yield client
        finally:
            self.shims.uninstrument_client(client)

    def doubtful_write(self, key: str, value: bytes) -> None:
        """The write arrives; the reply does not."""
        with LagProxy(self.topology.primary, lag_ms=0) as slow:
            client = self._client(self.topology, slow.address, self.home, read_timeout=1)
            doubtful = self.shims.shim(POSTS, client, **{self.kept_in: POSTS})
            try:
                doubtful.read(key)
                slow.set_lag(LONG_MS)
                doubtful.write(key, value)
            finally:
                doubtful.close()

    def connections(self) -> int:
        """Those to either region: the emulator leaves a proxy's open after the client's close.

        To the writer's region there may be two at any time: the writer's own, and the one that asks
        about writes, once enough looks have missed one.
        """
        away = connections_to(self.proxy.address)
        return away + max(connections_to(self.topology.primary), HOME_CONNECTIONS)

    def unreachable(self) -> AbstractContextManager[None]:
        """Refuse connections to the replica."""
        return self.proxy.unreachable()

    @contextmanager
    def regressed(self) -> Iterator[None]:
        """The reader's region has lost what it had."""
        self.topology.pause()
        self.topology.forget()
        try:
            yield
        finally:
            self.topology.resume()
            self.topology.reseed()
