"""Lineages stored in companion keys: what a client with ``lineage="beside"`` is handed."""

from __future__ import annotations

from typing import Any

from .companions import Companions
from .tap import StoredTap


class StoredLineages(Companions):
    """What one client stores and finds in the companions of the keys that its patterns name."""

    def tap(self, *, alone: bool, **plan: Any) -> StoredTap:
        """What goes with commands, and adds what stores and finds their lineages.

        Args:
            alone: False between ``WATCH`` and ``MULTI``, and in a transaction.
            plan: of every tap.
        """
        return StoredTap(self, alone=alone, **plan)
