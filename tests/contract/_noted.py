"""What one call of a native client read or wrote, told to the test that made it."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from antipode import Lineage
from antipode.shim import record_read, record_write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode import WriteId

#: What the call that runs here read, or wrote.
FOUND: ContextVar[list[Lineage] | None] = ContextVar("found", default=None)


def note(lineage: Lineage) -> None:
    """Tell the test."""
    box = FOUND.get()
    if box is not None:
        box.append(lineage)


def noted_read(lineage: Lineage) -> None:
    """Do as the shim does, and tell."""
    record_read(lineage)
    note(lineage)


def noted_write(*writes: WriteId) -> None:
    """Likewise."""
    record_write(*writes)
    note(Lineage(writes))


@contextmanager
def noting() -> Iterator[list[Lineage]]:
    """What a block reads and writes."""
    box: list[Lineage] = []
    token = FOUND.set(box)
    try:
        yield box
    finally:
        FOUND.reset(token)
