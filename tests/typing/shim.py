"""A shim as its author writes it, seen by a type checker: this file is only checked, never run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import assert_type

import antipode
from antipode import Lineage, Promise, Status, WriteId
from antipode.shim import Endpoint, Floor, Observation, Shim, Unreachable, Wake, floor, record_write

if TYPE_CHECKING:
    from collections.abc import Collection


class OwnEndpoint(Endpoint):
    """A connection; only two methods are required."""

    def observe(self, writes: Collection[WriteId], *, timeout_s: float) -> Observation:
        """Statuses by write; what is left out is not yet visible."""
        if timeout_s < 0:
            raise Unreachable
        return Observation("incarnation", dict.fromkeys(writes, Status.VISIBLE), eta_s=0.5)

    def close(self) -> None:
        """Release it."""


class PushingEndpoint(OwnEndpoint):
    """One that waits for the server's push."""

    pinned = True

    def pause(self, timeout_s: float, wake: Wake) -> None:
        """Return early when woken."""
        assert_type(wake.wait(timeout_s), bool)
        assert_type(wake.fileno(), int)


class OwnShim(Shim):
    """A shim; Table 2's methods have the shape of its store."""

    floors = True

    def open_endpoint(self, *, timeout_s: float) -> OwnEndpoint:
        """May say more exactly what it opens."""
        del timeout_s
        return PushingEndpoint()

    def write(self, key: str, value: bytes) -> Lineage:
        """Enter the write once it is acknowledged."""
        del value
        record_write(WriteId(self.datastore, key, 1))
        return antipode.current()


def registered() -> None:
    """A shim is a context manager of its own type."""
    with OwnShim("posts", reads_from="primary") as shim:
        assert_type(shim, OwnShim)
        antipode.shim.register(shim)
        assert_type(shim.wait(timeout=1), antipode.BarrierResult)
    OwnShim("posts", reads_from="somewhere")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Shim("posts")  # type: ignore[abstract]  # pyright: ignore[reportAbstractUsage]


async def floors(shim: OwnShim) -> None:
    """An instrumented client asks for the floor of its datastore, and holds reads back."""
    demanded = floor(shim)
    assert_type(demanded, Floor | None)
    if demanded is not None:
        seen = Observation("incarnation", {})
        assert_type(demanded.accepts(seen), bool)
        demanded.hold(lambda _timeout_s: seen)


def values_are_immutable(write: WriteId, promise: Promise, lineage: Lineage) -> None:
    """Nothing of a lineage can be changed in place."""
    write.version = 2  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    promise.id = "0"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    lineage.incomplete = frozenset()  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    lineage.add(write)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
