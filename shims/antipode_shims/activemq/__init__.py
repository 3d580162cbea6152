"""ActiveMQ over STOMP: lineages in message headers, barriers on what reached the reader's region.

Needs stomp.py (``pip install "antipode-xcy[activemq]"``), imported when first used. Instrumented
connections keep their calls: :func:`instrument_connection`, or :func:`instrument` for every one
by its address, and :func:`message`. The Table 2 API is :func:`shim`. See docs/guides/activemq.md.
"""

from __future__ import annotations

from ._clients.message import message
from ._clients.process_wide import instrument, uninstrument
from ._endpoint import Receipts
from ._instrument import instrument_connection, uninstrument_connection
from ._shim import ActiveMQShim, Delivery, shim

#: Calls of instrumented connections that put the lineage into headers, and record what was sent.
COVERED_WRITES = frozenset({"commit", "send"})
#: What instrumented connections deliver: its listeners run in the scope of the message.
COVERED_READS = frozenset({"on_message"})

__all__ = [
    "COVERED_READS",
    "COVERED_WRITES",
    "ActiveMQShim",
    "Delivery",
    "Receipts",
    "instrument",
    "instrument_connection",
    "message",
    "shim",
    "uninstrument",
    "uninstrument_connection",
]


def __dir__() -> list[str]:
    return __all__
