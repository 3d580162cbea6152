"""What carries notifications to the other region: one interface, with the library and without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ._delivery import Publisher, Subscriber
    from ._storage import Spec


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
