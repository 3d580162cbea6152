"""Clients of two regions of an emulator of S3."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from antipode import WriteId, current
from antipode_shims import s3
from antipode_shims.s3._position import Place

if TYPE_CHECKING:
    from contextlib import ExitStack

    from antipode import Lineage
    from antipode_testing import S3Topology, SeaweedFSTopology

POSTS = "posts"


class Regions:
    """Clients of one test, by region."""

    def __init__(self, topology: S3Topology | SeaweedFSTopology, stack: ExitStack) -> None:
        self.topology = topology
        self.home, self.away = topology.regions
        self.urls = dict(zip(topology.regions, topology.urls, strict=True))
        self._stack = stack

    def options(self, region: str) -> dict[str, Any]:
        """What a client of a region takes."""
        return {
            "region_name": region,
            "endpoint_url": self.urls[region],
            **self.topology.credentials,
        }

    def client(self, region: str, **more: Any) -> Any:
        """A plain client, which tries once."""
        config = Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=5)
        made = boto3.client("s3", **{**self.options(region), "config": config, **more})
        self._stack.callback(made.close)
        return made

    def instrumented(self, client: Any, **options: Any) -> Any:
        """The same, instrumented until the test ends."""
        s3.instrument_client(client, datastore=POSTS, regions=self.urls, **options)
        self._stack.callback(s3.uninstrument_client, client)
        return client

    def reader(self, **options: Any) -> Any:
        """An instrumented client of the second region."""
        return self.instrumented(self.client(self.away), reads_from="replica", **options)


def name() -> str:
    """The key of an object that no other test has."""
    return uuid.uuid4().hex


def written(lineage: Lineage | None = None) -> dict[str, WriteId]:
    """The writes of a lineage, of the current one by default, by the keys of their objects."""
    found = {}
    for write in (current() if lineage is None else lineage).only(POSTS):
        place = Place.parse(write.key)
        assert place is not None
        found[place.key] = write
    return found
