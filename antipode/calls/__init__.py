"""Calls that happen once: retried requests and redelivered messages have their effect one time.

Nothing of it is loaded unless a program imports it. See docs/guides/calls.md, docs/spec/calls.md.
"""

from __future__ import annotations

from importlib import import_module
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
    from ._celery import instrument_celery, uninstrument_celery
    from ._clients import instrument_client, uninstrument_client
    from ._known import KnownCall, known, sweep
    from ._servers import instrument_server
    from ._table import create_table, table

__all__ = [
    "BadName",
    "Call",
    "CallError",
    "Divergent",
    "DuplicateWaits",
    "EqualCalls",
    "InDoubt",
    "KnownCall",
    "ReplyTooLarge",
    "TooManyDuplicates",
    "TransactionEnded",
    "call",
    "create_table",
    "current",
    "instrument_celery",
    "instrument_client",
    "instrument_server",
    "known",
    "named",
    "once",
    "sweep",
    "table",
    "uninstrument_celery",
    "uninstrument_client",
]


def __dir__() -> list[str]:
    return __all__


#: What needs a library, or not each process, and where it is.
_LATER = {
    "KnownCall": "_known",
    "create_table": "_table",
    "instrument_celery": "_celery",
    "instrument_client": "_clients",
    "instrument_server": "_servers",
    "known": "_known",
    "sweep": "_known",
    "table": "_table",
    "uninstrument_celery": "_celery",
    "uninstrument_client": "_clients",
}


def __getattr__(name: str) -> object:
    """Load a part when it is used."""
    if name in _LATER:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
