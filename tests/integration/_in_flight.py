"""Requests that are on their way, as a proxy sees them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antipode_testing import LagProxy, Traffic


async def sent(proxy: LagProxy, before: Traffic) -> None:
    """Wait until a request is on its way and its sender waits for the reply.

    Not only for the first byte: ``asyncio.wait_for``, by which clients send, swallows a
    cancellation at that very moment before Python 3.12.
    """
    while (proxy.traffic() - before).request_bytes == 0:  # noqa: ASYNC110 - it has no event
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)
