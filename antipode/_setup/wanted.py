"""What ``setup()`` was asked to cover: apart, for diagnostics, which reach no integration."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .targets import Target

#: Until it is undone.
wanted: set[Target] = set()


#: What the calls were told to leave alone, as users skip it.
left_alone: set[str] = set()


def skipped() -> frozenset[str]:
    """What ``setup()`` was told to leave alone; nothing where it was not called, or undone."""
    covered = {each.name for each in wanted}
    return frozenset(left_alone - covered) if wanted else frozenset()


def is_set_up() -> bool:
    """Whether ``setup()`` was called, and not undone."""
    return bool(wanted)
