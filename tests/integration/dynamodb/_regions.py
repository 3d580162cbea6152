"""Clients of two regions of an emulator of DynamoDB."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from antipode import WriteId, current
from antipode_shims import dynamodb
from antipode_shims.dynamodb._position import Place

if TYPE_CHECKING:
    from contextlib import ExitStack

    from antipode import Lineage
    from antipode_testing import DynamoDBTopology

POSTS = "posts"


class Regions:
    """Clients of one test, by region."""

    def __init__(self, topology: DynamoDBTopology, stack: ExitStack) -> None:
        self.topology = topology
        self.home, self.away = topology.regions
        self.urls = {
            self.home: topology.url(topology.primary),
            self.away: topology.url(topology.replica),
        }
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
        made = boto3.client("dynamodb", **{**self.options(region), "config": config, **more})
        self._stack.callback(made.close)
        return made

    def resource(self, region: str) -> Any:
        """A plain resource."""
        made = boto3.resource("dynamodb", **self.options(region))
        self._stack.callback(made.meta.client.close)
        return made

    def instrumented(self, client: Any, **options: Any) -> Any:
        """The same, instrumented until the test ends."""
        dynamodb.instrument_client(client, datastore=POSTS, regions=self.urls, **options)
        self._stack.callback(dynamodb.uninstrument_client, client)
        return client

    def reader(self) -> Any:
        """An instrumented client of the second region."""
        return self.instrumented(self.client(self.away), reads_from="replica")


def name() -> str:
    """The id of an item that no other test has."""
    return uuid.uuid4().hex


def item(key: str, **more: str) -> dict[str, Any]:
    """An item as the API has it."""
    return {"id": {"S": key}, **{each: {"S": value} for each, value in more.items()}}


def written(lineage: Lineage | None = None) -> dict[str, WriteId]:
    """The writes of a lineage, of the current one by default, by the ids of their items."""
    found = {}
    for write in current() if lineage is None else lineage:
        place = Place.parse(write.key)
        assert place is not None
        ((_, _, value),) = place.item.key
        found[value] = write
    return found
