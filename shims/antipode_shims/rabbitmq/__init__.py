"""RabbitMQ: lineages in message headers, barriers on what was routed in the reader's region.

Instrumented clients (pika, aio-pika) keep their calls and objects: :func:`instrument_channel`,
:func:`message`. Workers that give back what they cannot handle yet: :func:`consume`, and
:func:`consume_async` for asyncio. The Table 2 face is :func:`shim`, and :func:`shim_async` for
asyncio. See docs/guides/rabbitmq.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._consumer import RabbitMQConsumer, consume
from ._headers import fulfil
from ._instrument import instrument_channel, uninstrument_channel
from ._message import message
from ._shim import RabbitMQShim, shim
from ._table2 import Delivery
from ._tap import Receipts
from ._terms import BY_REJECTION

if TYPE_CHECKING:
    from ._async_consumer import RabbitMQAsyncConsumer, consume_async
    from ._async_shim import RabbitMQAsyncShim, shim_async

#: Calls of instrumented channels that put the lineage into headers and enter what was confirmed.
COVERED_WRITES = frozenset({"basic_publish", "Exchange.publish"})
#: Calls of instrumented channels whose callbacks run in the scope of their message. What
#: ``basic_get``, ``consume`` (pika's generator), ``Queue.get`` and ``Queue.iterator`` hand out
#: is handled within :func:`message`.
COVERED_READS = frozenset({"basic_consume", "Queue.consume"})

__all__ = [
    "BY_REJECTION",
    "COVERED_READS",
    "COVERED_WRITES",
    "Delivery",
    "RabbitMQAsyncConsumer",
    "RabbitMQAsyncShim",
    "RabbitMQConsumer",
    "RabbitMQShim",
    "Receipts",
    "consume",
    "consume_async",
    "fulfil",
    "instrument_channel",
    "message",
    "shim",
    "shim_async",
    "uninstrument_channel",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    """Load what needs asyncio when it is first used."""
    if name in ("RabbitMQAsyncShim", "shim_async"):
        from . import _async_shim

        return getattr(_async_shim, name)
    if name in ("RabbitMQAsyncConsumer", "consume_async"):
        from . import _async_consumer

        return getattr(_async_consumer, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
