"""What carries notifications to the other region: one interface, with the library and without."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ._storage import Spec

#: The datastore's name in lineages.
NOTIFICATIONS = "notifications"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A notification that has arrived.

    Attributes:
        body: what was published.
        scope: the block in which it is handled: with the library, its lineage is current there.
    """

    body: bytes
    scope: Callable[[], AbstractContextManager[object]]


class Publisher(Protocol):
    """The writer region's end. Thread-safe."""

    def publish(self, body: bytes) -> int:
        """Publish a notification; returns when the store has acknowledged it.

        Returns:
            The bytes that the store carries: the body, and a lineage beside it if there is one.
        """
        ...

    def close(self) -> None:
        """Release the connections."""
        ...


class Subscriber(Protocol):
    """The reader region's end. Used by one thread."""

    def run(self, handle: Callable[[Delivery], None]) -> None:
        """Hand over each notification as it arrives, for as long as this process lives."""
        ...


def open_publisher(spec: Spec, *, library: bool) -> Publisher:
    """A publisher at the writer region's server, through the library's shim or without it."""
    if spec["store"] == "embedded":
        from . import _notifier_embedded as store
    else:
        from . import _notifier_rabbitmq as store  # type: ignore[no-redef]
    publisher: Publisher = store.publisher(spec, library=library)
    return publisher


def open_subscriber(spec: Spec, *, library: bool) -> Subscriber:
    """A subscriber at the reader region's server, through the library's shim or without it."""
    if spec["store"] == "embedded":
        from . import _notifier_embedded as store
    else:
        from . import _notifier_rabbitmq as store  # type: ignore[no-redef]
    subscriber: Subscriber = store.subscriber(spec, library=library)
    return subscriber
