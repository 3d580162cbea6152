"""S3: versions of objects, lineages in their user metadata, native clients instrumented.

Needs boto3 (``pip install "antipode-xcy[s3]"``) or, for asyncio, aiobotocore
(``antipode-xcy[aiobotocore]``), imported when first used. See docs/guides/s3.md.
"""

from __future__ import annotations

from ._clients.process_wide import instrument, uninstrument
from ._commands import COVERED_READS, COVERED_WRITES
from ._events import lineage
from ._instrument import instrument_client, uninstrument_client
from ._shim.async_shim import S3AsyncShim, shim_async
from ._shim.shim import S3Shim, shim

__all__ = [
    "COVERED_READS",
    "COVERED_WRITES",
    "S3AsyncShim",
    "S3Shim",
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
