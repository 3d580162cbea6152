"""MongoDB: positions of a replica set's oplog, lineages stored with values.

Needs PyMongo 4.9 or later (``pip install "antipode-xcy[mongodb]"``), imported when first used, and
a replica set from MongoDB 4.4 on. See docs/guides/mongodb.md.
"""

from __future__ import annotations

from ._clients.process_wide import instrument, uninstrument
from ._commands import COVERED_READS, COVERED_WRITES
from ._events import lineage
from ._instrument import instrument_client, uninstrument_client
from ._promises.fulfil import fulfil, fulfil_async
from ._promises.records import promises_ddl
from ._shim.async_shim import MongoAsyncShim
from ._shim.shim import MongoShim, shim, shim_async

__all__ = [
    "COVERED_READS",
    "COVERED_WRITES",
    "MongoAsyncShim",
    "MongoShim",
    "fulfil",
    "fulfil_async",
    "instrument",
    "instrument_client",
    "lineage",
    "promises_ddl",
    "shim",
    "shim_async",
    "uninstrument",
    "uninstrument_client",
]


def __dir__() -> list[str]:
    return __all__
