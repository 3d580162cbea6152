"""RabbitMQ: lineages in message headers, barriers on what was routed in the reader's region.

Instrumented clients (pika, aio-pika) keep their calls and objects: :func:`instrument_channel`,
:func:`message`. The Table 2 face is :func:`shim`, and :func:`async_shim` for asyncio. See
docs/guides/rabbitmq.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._headers import fulfil
from ._instrument import instrument_channel, uninstrument_channel
from ._message import message
from ._shim import RabbitMQShim, shim
from ._table2 import Delivery
from ._tap import Receipts

if TYPE_CHECKING:
    from ._async_shim import RabbitMQAsyncShim, async_shim

#: Calls of instrumented channels that put the lineage into headers and enter what was confirmed.
COVERED_WRITES = frozenset({"basic_publish", "Exchange.publish"})
#: Calls of instrumented channels whose callbacks run in the scope of their message. What
#: ``basic_get``, ``consume`` (pika's generator), ``Queue.get`` and ``Queue.iterator`` hand out
#: is handled within :func:`message`.
COVERED_READS = frozenset({"basic_consume", "Queue.consume"})

__all__ = [
    "COVERED_READS",
    "COVERED_WRITES",
    "Delivery",
    "RabbitMQAsyncShim",
    "RabbitMQShim",
    "Receipts",
    "async_shim",
    "fulfil",
    "instrument_channel",
    "message",
    "shim",
    "uninstrument_channel",
]


def __getattr__(name: str) -> object:
    """Load what needs asyncio when it is first used."""
    if name in ("RabbitMQAsyncShim", "async_shim"):
        from . import _async_shim

        return getattr(_async_shim, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
