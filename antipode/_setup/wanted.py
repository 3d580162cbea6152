"""What ``setup()`` was asked to cover: apart, for diagnostics, which reach no integration."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .targets import Target

#: Until it is undone.
wanted: set[Target] = set()


def is_set_up() -> bool:
    """Whether ``setup()`` was called, and not undone."""
    return bool(wanted)
