"""Who watches the refunds where users look, with a client that knows nothing of Antipode."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pymongo
from pymongo.errors import PyMongoError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from typing_extensions import Self

_PAUSE_S = 0.001
_SETTLE_S = 30.0


@dataclass(slots=True)
class Sight:
    """When a refund became visible.

    Attributes:
        absent_s: when the last poll began that did not find it; 0 where none did.
        seen_s: when the poll ended that found it; 0 where none did.
    """

    absent_s: float = 0.0
    seen_s: float = 0.0


class Observer:
    """Polls for expected refunds, in a thread, for the block.

    Args:
        url: of the server where users look.
        database: with the refunds.
    """

    def __init__(self, url: str, database: str) -> None:
        """Start nothing yet."""
        self._client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(url)
        self._money = self._client[database].money
        self._sights: dict[str, Sight] = {}
        self._pending: set[str] = set()
        self._due: deque[tuple[str, float]] = deque()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="train-ticket-observer")

    def expect(self, order: str) -> None:
        """Watch for the refund of an order from now on."""
        with self._lock:
            self._sights[order] = Sight()
            self._pending.add(order)

    def expect_at(self, due: Sequence[tuple[str, float]]) -> None:
        """Watch for the refund of each order from the time that it is given with, in order."""
        with self._lock:
            self._sights.update((order, Sight()) for order, _ in due)
            self._due.extend(due)

    def sight(self, order: str) -> Sight:
        """What was seen of a refund."""
        with self._lock:
            return self._sights.get(order, Sight())

    def settle(self, timeout_s: float = _SETTLE_S) -> None:
        """Return once every expected refund is visible, or will hardly become so any more."""
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s and (self._pending or self._due):
            time.sleep(0.01)

    def __enter__(self) -> Self:
        """Begin to watch."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""
        self._closing.set()
        self._thread.join()
        self._client.close()

    def _watch(self) -> None:
        while not self._closing.wait(_PAUSE_S):
            with self._lock:
                while self._due and self._due[0][1] <= time.monotonic():
                    self._pending.add(self._due.popleft()[0])
                pending = list(self._pending)
            if not pending:
                continue
            began_s = time.monotonic()
            try:
                found = {
                    it["_id"] for it in self._money.find({"_id": {"$in": pending}}, {"_id": 1})
                }
            except PyMongoError:
                continue  # A server that is killed answers again later.
            self._note(pending, found, began_s, time.monotonic())

    def _note(self, pending: list[str], found: set[str], began_s: float, ended_s: float) -> None:
        with self._lock:
            for order in pending:
                if order in found:
                    self._sights[order].seen_s = ended_s
                    self._pending.discard(order)
                else:
                    self._sights[order].absent_s = began_s
