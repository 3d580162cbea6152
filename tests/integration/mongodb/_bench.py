"""What the tests of the MongoDB topology ask its servers."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pymongo

from antipode_testing import wait_until

if TYPE_CHECKING:
    from antipode_testing import Address, MongoDBTopology

TIMEOUT_S = 15.0


def client(address: Address) -> Any:
    return closing(
        pymongo.MongoClient(*address, directConnection=True, serverSelectionTimeoutMS=5000)
    )


def discovering(topology: MongoDBTopology, **options: Any) -> Any:
    return closing(
        pymongo.MongoClient(topology.set_url, serverSelectionTimeoutMS=5000, **options),
    )


def things(connection: Any, **options: Any) -> Any:
    return connection["topology"].get_collection("things", **options)


def put(connection: Any, key: str) -> None:
    things(connection).replace_one({"_id": key}, {"_id": key}, upsert=True)


def has(connection: Any, key: str) -> bool:
    return things(connection).find_one({"_id": key}) is not None


def hello(address: Address) -> dict[str, Any]:
    with client(address) as connection:
        return dict(connection.admin.command("hello"))


def term(address: Address) -> int:
    return int(hello(address)["lastWrite"]["opTime"]["t"])


def rollbacks(address: Address) -> int:
    with client(address) as connection:
        return int(connection.admin.command("replSetGetRBID")["rbid"])


def await_value(connection: Any, key: str) -> float:
    """Wait until a secondary shows a document; the moment it did."""
    wait_until(lambda: has(connection, key), what=key, timeout_s=TIMEOUT_S, interval_s=0.0005)
    return time.perf_counter()
