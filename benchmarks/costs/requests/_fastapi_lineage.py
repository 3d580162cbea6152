"""The same with a request that depends on three writes. Either side reads baggage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _fastapi
from ._fastapi import serve

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

__all__ = ["calling", "serve"]

_HOUR = 490_000


def calling(port: int, *, antipode: bool) -> AbstractContextManager[Callable[[], None]]:
    """The same request to either side."""
    return _fastapi.calling(port, antipode=antipode, lineage=_lineage())


def _lineage() -> bytes:
    """The headers of a request that depends on three writes."""
    from antipode import Lineage, WriteId, serialize

    writes = (
        WriteId("posts", "3e11fa47-71ca-11e1-9e33-c80aa9429562", 1_234_567, written_hour=_HOUR),
        WriteId(
            "users", "8c1e6f0b2d9a4e57b3f8a1c6d5e4f3a2b1c0d9e8", 87_654_321, written_hour=_HOUR
        ),
        WriteId("news", "rs0.3", 7_300_000_000_000_000_001, written_hour=_HOUR),
    )
    return f"baggage: antipode={serialize(Lineage(writes))}\r\nantipode-sent: 1\r\n".encode()
