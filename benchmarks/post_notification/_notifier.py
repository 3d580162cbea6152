"""What carries notifications to the other region: one interface, with the library and without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ._storage import Spec

#: The datastore's name in lineages.
NOTIFICATIONS = "notifications"


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


def open_publisher(spec: Spec, *, library: bool) -> Publisher:
    """A publisher at the writer region's server, through the library's shim or without it."""
    return _module(spec).publisher(spec, library=library)


def open_subscriber(spec: Spec, *, library: bool) -> Subscriber:
    """A subscriber at the reader region's server, through the library's shim or without it."""
    return _module(spec).subscriber(spec, library=library)


class _Module(Protocol):
    def publisher(self, spec: Spec, *, library: bool) -> Publisher: ...

    def subscriber(self, spec: Spec, *, library: bool) -> Subscriber: ...


def _module(spec: Spec) -> _Module:
    """The adapter of a store, whose client library is imported only now."""
    if spec["store"] == "embedded":
        from . import _notifier_embedded

        return _notifier_embedded
    from . import _notifier_rabbitmq

    return _notifier_rabbitmq
