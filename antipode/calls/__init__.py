"""Calls that happen once: retried requests and redelivered messages have their effect one time.

Nothing of it is loaded unless a program imports it. See docs/guides/calls.md, docs/spec/calls.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._current import Call, call, current, named
from ._errors import (
    BadName,
    CallError,
    Divergent,
    DuplicateWaits,
    EqualCalls,
    InDoubt,
    ReplyTooLarge,
    TooManyDuplicates,
    TransactionEnded,
)
from ._once import once

if TYPE_CHECKING:
    from ._table import create_table, table

__all__ = [
    "BadName",
    "Call",
    "CallError",
    "Divergent",
    "DuplicateWaits",
    "EqualCalls",
    "InDoubt",
    "ReplyTooLarge",
    "TooManyDuplicates",
    "TransactionEnded",
    "call",
    "create_table",
    "current",
    "named",
    "once",
    "table",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    """Load what needs SQLAlchemy when it is used."""
    if name in {"create_table", "table"}:
        from . import _table

        return getattr(_table, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
