"""RabbitMQ: lineages in message headers, barriers on what was routed in the reader's region.

Instrumented clients (pika, aio-pika) keep their calls and objects: :func:`instrument_channel`,
:func:`message`. Workers that give back what they cannot handle yet: :func:`consume`, and
:func:`consume_async` for asyncio. The Table 2 API is :func:`shim`, and :func:`shim_async` for
asyncio. See docs/guides/rabbitmq.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode_shims._messages.headers import fulfil

from ._clients.message import message
from ._clients.process_wide import instrument, uninstrument
from ._consumers.consumer import RabbitMQConsumer, consume
from ._consumers.consumer_options import BY_REJECTION
from ._endpoint.tap import Receipts
from ._instrument import instrument_channel, uninstrument_channel
from ._shim.shim import RabbitMQShim, shim
from ._table2 import Delivery

if TYPE_CHECKING:
    from ._consumers.async_consumer import RabbitMQAsyncConsumer, consume_async
    from ._shim.async_shim import RabbitMQAsyncShim, shim_async

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
    "instrument",
    "instrument_channel",
    "message",
    "shim",
    "shim_async",
    "uninstrument",
    "uninstrument_channel",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    """Load what needs asyncio when it is first used."""
    if name in ("RabbitMQAsyncShim", "shim_async"):
        from ._shim import async_shim as _async_shim

        return getattr(_async_shim, name)
    if name in ("RabbitMQAsyncConsumer", "consume_async"):
        from ._consumers import async_consumer as _async_consumer

        return getattr(_async_consumer, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
