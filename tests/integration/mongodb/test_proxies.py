"""MongoDB behind a TCP balancer: HAProxy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode_testing import wait_until
from tests.integration._balancers import haproxy

from ._clients import DB, client, plain_client

if TYPE_CHECKING:
    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")

READER: dict[str, Any] = {"reads_from": "replica", "one_server": False}
NEAREST: dict[str, Any] = {"readPreference": "nearest"}


def test_no_guarded_read_through_a_balancer_is_early(antipode_mongodb: MongoDBTopology) -> None:
    """Whichever server a new client is on, its read waits there; plain ones are early."""
    topology = antipode_mongodb
    with (
        client(topology.primary) as writer,
        haproxy(topology.primary, topology.replica) as address,
    ):
        posts = writer[DB].posts
        posts.delete_many({})
        topology.wait_replicated()
        topology.pause()
        posts.insert_one({"_id": -1})
        found = set()

        def both() -> bool:
            with plain_client(address, **NEAREST) as plain:
                found.add(plain[DB].posts.find_one({"_id": -1}) is not None)
            return len(found) == 2

        wait_until(both, what="clients on both servers", timeout_s=20)
        topology.resume()
        topology.set_lag(20)
        for number in range(12):
            with antipode.scope(), client(address, READER, **NEAREST) as one:
                posts.insert_one({"_id": number})
                antipode.barrier(timeout=20, at="read")
                assert one[DB].posts.find_one({"_id": number}) is not None
