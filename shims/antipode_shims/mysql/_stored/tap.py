"""The tap of a connection that stores lineages with rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode_shims.mysql._clients.tap import Tap

if TYPE_CHECKING:
    from .lineages import RowLineages


class StoredTap(Tap):
    """A tap that has a part in the lineages of rows.

    Attributes:
        stored: that part.
    """

    __slots__ = ("stored",)

    def __init__(self, stored: RowLineages, *args: Any, **options: Any) -> None:
        """As a tap, with *stored*."""
        self.stored = stored
        super().__init__(*args, **options)

    def renewed(self) -> None:
        """The session's variables are gone, and what it read cannot be asked any more."""
        self.stored.renewed()

    def given_back(self) -> None:
        """Sample what reads put off before somebody else gets the connection."""
        self.stored.settle()
