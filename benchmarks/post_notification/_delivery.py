"""Notifications on their way to the other region: one interface for every store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

#: The datastore's name in lineages.
NOTIFICATIONS = "notifications"
#: The exchange that is federated from the writer's broker to the reader's.
EXCHANGE = "geo.notifications"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A notification that has arrived.

    Attributes:
        body: what was published.
        size: bytes of the body and of what the store carries beside it.
        scope: the block in which it is handled: with the library, its lineage is current there.
    """

    body: bytes
    size: int
    scope: Callable[[], AbstractContextManager[object]]


class Publisher(Protocol):
    """The writer region's end. Thread-safe."""

    def publish(self, body: bytes) -> None:
        """Publish a notification; returns when the store has acknowledged it."""
        ...

    def close(self) -> None:
        """Release the connections."""
        ...


class Subscriber(Protocol):
    """The reader region's end. Used by one thread."""

    def run(self, handle: Callable[[Delivery], None]) -> None:
        """Hand over each notification as it arrives, for as long as this process lives."""
        ...
