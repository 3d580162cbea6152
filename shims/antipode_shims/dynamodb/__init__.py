"""DynamoDB: stamps that the client makes, lineages beside values, native clients instrumented.

Needs boto3 (``pip install "antipode-xcy[dynamodb]"``) or, for asyncio, aiobotocore
(``antipode-xcy[aiobotocore]``), imported when first used. See docs/guides/dynamodb.md.
"""

from __future__ import annotations

from ._clients.process_wide import instrument, uninstrument
from ._commands import COVERED_READS, COVERED_WRITES
from ._events import lineage
from ._instrument import instrument_client, uninstrument_client
from ._promises import fulfil
from ._shim.async_shim import DynamoDBAsyncShim, shim_async
from ._shim.shim import DynamoDBShim, shim

__all__ = [
    "COVERED_READS",
    "COVERED_WRITES",
    "DynamoDBAsyncShim",
    "DynamoDBShim",
    "fulfil",
    "instrument",
    "instrument_client",
    "lineage",
    "shim",
    "shim_async",
    "uninstrument",
    "uninstrument_client",
]


def __dir__() -> list[str]:
    return __all__
