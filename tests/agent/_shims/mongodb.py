"""MongoDB: documents of the collection `posts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pymongo

from antipode_shims import mongodb

from ._open import Client, OpenShim, Table2, options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import Promise

COLLECTION = "posts"


def open_shim(given: Mapping[str, Any]) -> OpenShim:
    """A shim of the collection."""
    client = _client(given)
    where: dict[str, Any] = {"database": given["server"]["database"], "collection": COLLECTION}
    collection = client[where["database"]][COLLECTION]

    def roll_back(key: str, value: bytes, promise: Promise) -> None:
        with client.start_session() as session, session.start_transaction():
            mongodb.fulfil(collection.database, promise, session=session)
            changed = {"$set": {"value": value}}
            collection.update_one({"_id": key}, changed, upsert=True, session=session)
            session.abort_transaction()

    server = given["server"]
    url = f"mongodb://{server['host']}:{server['port']}/?directConnection=true"
    return Table2(
        mongodb.shim(given["datastore"], client, **where, **options(given)),
        lambda: mongodb.shim_async(given["datastore"], url, **where, **options(given)),
        roll_back,
        client.close,
    )


def open_client(given: Mapping[str, Any]) -> OpenShim:
    """Commands that replace, delete and find one document."""
    client = mongodb.instrument_client(
        _client(given), datastore=given["datastore"], **options(given)
    )
    collection = client[given["server"]["database"]][COLLECTION]

    def read(key: str) -> Any:
        found = collection.find_one({"_id": key})
        return None if found is None else found["value"]

    def close() -> None:
        mongodb.uninstrument_client(client)
        client.close()

    return Client(
        write=lambda key, value: collection.replace_one(
            {"_id": key}, {"value": value}, upsert=True
        ),
        delete=lambda key: collection.delete_one({"_id": key}),
        read=read,
        close=close,
    )


def _client(given: Mapping[str, Any]) -> Any:
    """A client whose connections are all there from now on: tests count them."""
    server = given["server"]
    timeouts = {"socketTimeoutMS": 1000 * given["timeout_s"]} if "timeout_s" in given else {}
    client: Any = pymongo.MongoClient(
        server["host"],
        server["port"],
        directConnection=True,
        serverMonitoringMode="poll",
        **timeouts,
    )
    client.admin.command("ping")
    return client
