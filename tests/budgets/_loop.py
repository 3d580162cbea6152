"""An event loop for a client of asyncio that is called as others are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine


class OnLoop:
    """Whoever has one runs each call to its end, and nothing else meanwhile."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    def run(self, call: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(call)

    def end(self) -> None:
        self._loop.close()
