"""The embedded store: a SQLite file for each region, and a replicator with adjustable lag."""

from __future__ import annotations

from ._shim import EmbeddedShim, Message, shim
from ._store.file import NotPrimary, StoreUnavailable
from ._store.replicator import Replicator
from ._store.store import EmbeddedStore, Entry, State, Token
from ._topology import EmbeddedTopology

__all__ = [
    "EmbeddedShim",
    "EmbeddedStore",
    "EmbeddedTopology",
    "Entry",
    "Message",
    "NotPrimary",
    "Replicator",
    "State",
    "StoreUnavailable",
    "Token",
    "shim",
]


def __dir__() -> list[str]:
    return __all__
