"""Notifications in the embedded store: an append-only log that the reader region follows."""

from __future__ import annotations

import itertools
import os
import threading
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

from antipode_shims.embedded import EmbeddedStore

from ._delivery import NOTIFICATIONS, Delivery

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._delivery import Publisher, Subscriber
    from ._storage import Spec


class PlainPublisher:
    """Without the library: each notification is an entry of its own."""

    def __init__(self, spec: Spec) -> None:
        """Open the writer region's file."""
        self._store = EmbeddedStore(spec["writer"])
        self._numbers = itertools.count()
        self._prefix = f"{os.getpid():x}"
        self._lock = threading.Lock()

    def publish(self, body: bytes) -> None:
        """Append a notification."""
        self._store.put(self._key(), body)

    def _key(self) -> str:
        with self._lock:
            return f"{self._prefix}-{next(self._numbers)}"

    def close(self) -> None:
        """Release the file."""
        self._store.close()


class ShimmedPublisher(PlainPublisher):
    """With the library: the current lineage is stored beside each notification."""

    def __init__(self, spec: Spec) -> None:
        """Open the writer region's file and register its shim."""
        from antipode_shims import embedded

        super().__init__(spec)
        self._shim = embedded.shim(NOTIFICATIONS, spec["writer"], reads_from="primary")

    def publish(self, body: bytes) -> None:
        """Append a notification; the current lineage then has it."""
        self._shim.write(self._key(), body)

    def close(self) -> None:
        """Release the file and the shim."""
        self._shim.close()
        super().close()


class PlainSubscriber:
    """Without the library: follows the reader region's file from its end on."""

    def __init__(self, spec: Spec) -> None:
        """Open the reader region's file."""
        self._store = EmbeddedStore(spec["reader"])
        self._after = self._store.position()

    def run(self, handle: Callable[[Delivery], None]) -> None:
        """Hand over each entry."""
        for entry in self._store.follow(self._after):
            if entry.value is not None:
                handle(Delivery(entry.value, len(entry.value), nullcontext))


class ShimmedSubscriber:
    """With the library: each notification brings the lineage that was stored beside it."""

    def __init__(self, spec: Spec) -> None:
        """Open the reader region's file and register its shim."""
        from antipode_shims import embedded

        self._shim = embedded.shim(NOTIFICATIONS, spec["reader"], reads_from="replica")
        self._after = self._shim.store.position()

    def run(self, handle: Callable[[Delivery], None]) -> None:
        """Hand over each message."""
        import antipode

        for message in self._shim.follow(self._after):
            if message.value is not None:
                entry = self._shim.store.get(message.key)
                beside = len(entry.lineage or "") if entry is not None else 0
                scope = partial(antipode.scope, message.lineage)
                handle(Delivery(message.value, len(message.value) + beside, scope))


def publisher(spec: Spec, *, library: bool) -> Publisher:
    """See `open_publisher`."""
    return ShimmedPublisher(spec) if library else PlainPublisher(spec)


def subscriber(spec: Spec, *, library: bool) -> Subscriber:
    """See `open_subscriber`."""
    return ShimmedSubscriber(spec) if library else PlainSubscriber(spec)
