"""A router over MongoDB asks where the next read goes: to the secondary, or to the primary."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pymongo
import pytest

import antipode
from antipode_shims import mongodb

if TYPE_CHECKING:
    from antipode_testing import MongoDBTopology

pytestmark = [pytest.mark.store("mongodb"), pytest.mark.slow]


def test_a_read_goes_to_the_primary_while_the_secondary_lags(
    antipode_mongodb: MongoDBTopology,
) -> None:
    """What was just written is read; a request that depends on nothing stays at the secondary."""
    antipode.configure(auto_timeout=0.1)
    with ExitStack() as stack:
        clients: dict[str, pymongo.MongoClient[Any]] = {}
        for role in ("primary", "replica"):
            address = getattr(antipode_mongodb, role)
            plain = stack.enter_context(
                pymongo.MongoClient[Any](
                    address.host,
                    address.port,
                    directConnection=True,
                    readPreference="secondaryPreferred",
                )
            )
            clients[role] = mongodb.instrument_client(
                plain,
                datastore="routed",
                reads_from=role,  # type: ignore[arg-type]
            )
            stack.callback(mongodb.uninstrument_client, plain)
        posts = clients["primary"]["app"]["routed"]
        stack.callback(posts.drop)
        antipode_mongodb.cut()
        stack.callback(antipode_mongodb.heal)
        with antipode.scope():
            assert antipode.reads_from("routed") == "replica"
            posts.insert_one({"_id": 1})
            where = antipode.reads_from("routed")
            assert where == "primary"
            assert clients[where]["app"]["routed"].find_one({"_id": 1}) == {"_id": 1}
            antipode_mongodb.heal()
            antipode.barrier(timeout=15)
            assert clients["replica"]["app"]["routed"].find_one({"_id": 1}) == {"_id": 1}
