"""Redis: positions of its replication log, stored lineages, instrumented native clients.

Needs redis-py 5 or later (``pip install "antipode-xcy[redis]"``), imported when first used, and
servers from Redis 6.2 on. See docs/guides/redis.md.
"""

from __future__ import annotations

from ._clients.process_wide import instrument, uninstrument
from ._commands import COVERED_READS, COVERED_WRITES
from ._events import lineage
from ._instrument import instrument_client, uninstrument_client
from ._promises.fulfil import fulfil, fulfil_async
from ._shim.shim import RedisAsyncShim, RedisShim, shim, shim_async

__all__ = [
    "COVERED_READS",
    "COVERED_WRITES",
    "RedisAsyncShim",
    "RedisShim",
    "fulfil",
    "fulfil_async",
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
