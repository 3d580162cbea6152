"""MongoDB: positions of a replica set's oplog, lineages beside values.

Needs PyMongo 4.9 or later (``pip install "antipode-xcy[mongodb]"``), imported when first used, and
a replica set from MongoDB 4.4 on. See docs/guides/mongodb.md.
"""

from __future__ import annotations

from ._commands import COVERED_READS, COVERED_WRITES
from ._instrument import instrument_client, uninstrument_client
from ._shim import MongoAsyncShim, MongoShim, async_shim, shim

__all__ = [
    "COVERED_READS",
    "COVERED_WRITES",
    "MongoAsyncShim",
    "MongoShim",
    "async_shim",
    "instrument_client",
    "shim",
    "uninstrument_client",
]
