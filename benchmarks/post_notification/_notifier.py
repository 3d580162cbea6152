"""What carries notifications to the other region: one interface, with the library and without."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._delivery import Publisher, Subscriber
    from ._storage import Spec


def open_publisher(spec: Spec, *, library: bool) -> Publisher:
    """A publisher at the writer region's server, through the library's shim or without it."""
    made: Publisher = _module(spec).publisher(spec, library=library)
    return made


def open_subscriber(spec: Spec, *, library: bool) -> Subscriber:
    """A subscriber at the reader region's server, through the library's shim or without it."""
    made: Subscriber = _module(spec).subscriber(spec, library=library)
    return made


def _module(spec: Spec) -> Any:  # noqa: ANN401 - a module
    """The adapter of a store, whose client library is imported only now."""
    return import_module(f"._notifier_{spec['store']}", __package__)
