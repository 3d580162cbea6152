"""What one call of a native client read or wrote, told to the test that made it."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from antipode import Lineage
from antipode.shim import defer_read, record_read, record_write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode import WriteId

#: What the call that runs here read, or wrote.
FOUND: ContextVar[list[Lineage] | None] = ContextVar("found", default=None)
#: What samples, later, what it read.
LATER: ContextVar[list[Callable[[], Lineage]] | None] = ContextVar("later", default=None)


def note(lineage: Lineage) -> None:
    """Tell the test."""
    box = FOUND.get()
    if box is not None:
        box.append(lineage)


def noted_read(lineage: Lineage) -> None:
    """Do as the shim does, and tell."""
    record_read(lineage)
    note(lineage)


def noted_later(sample: Callable[[], Lineage]) -> None:
    """Likewise, once the call is over."""
    defer_read(sample)
    box = LATER.get()
    if box is not None:
        box.append(sample)


def noted_write(*writes: WriteId) -> None:
    """Likewise."""
    record_write(*writes)
    note(Lineage(writes))


@contextmanager
def noting() -> Iterator[list[Lineage]]:
    """What a block reads and writes."""
    box: list[Lineage] = []
    later: list[Callable[[], Lineage]] = []
    token, later_token = FOUND.set(box), LATER.set(later)
    try:
        yield box
    finally:
        FOUND.reset(token)
        LATER.reset(later_token)
    box += [sample() for sample in later]
