"""PyMongo of asyncio, beside the client whose times the benchmarks measure."""

from __future__ import annotations

from typing import Any

from antipode_shims.mongodb import instrument_client, uninstrument_client
from benchmarks.costs.overhead._clients import DATASTORE, VALUE, Server, versions
from tests.budgets._loop import OnLoop


class AsyncPyMongo(OnLoop):
    """PyMongo of asyncio: ``replace_one`` with upsert and ``find_one`` by ``_id``."""

    def __init__(self, server: Server, *, instrumented: bool) -> None:
        import pymongo

        super().__init__()
        self._client: Any = pymongo.AsyncMongoClient(*server.address, directConnection=True)
        if instrumented:
            instrument_client(self._client, datastore=DATASTORE)
        self._collection: Any = self._client.benchmarks.overhead

    def write(self, number: int) -> None:
        document = {"value": VALUE, "version": next(versions)}
        self.run(self._collection.replace_one({"_id": number}, document, upsert=True))

    def read(self, number: int) -> None:
        self.run(self._collection.find_one({"_id": number}))

    def close(self) -> None:
        uninstrument_client(self._client)
        self.run(self._client.close())
        self.end()
