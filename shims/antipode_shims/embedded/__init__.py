"""The embedded store: a SQLite file for each region, and a replicator with adjustable lag."""

from __future__ import annotations

from ._file import NotPrimary, StoreUnavailable
from ._replicator import Replicator
from ._store import EmbeddedStore, Entry, State, Token

__all__ = [
    "EmbeddedStore",
    "Entry",
    "NotPrimary",
    "Replicator",
    "State",
    "StoreUnavailable",
    "Token",
]
