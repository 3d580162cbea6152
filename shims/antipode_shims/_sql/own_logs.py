"""What each server was seen to write by itself: connections come and go, and it stays the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

_MOST = 1_000
_logs: dict[tuple[str, Hashable], set[str]] = {}
#: What a replica refuses, whatever it shows besides.
_CHANGES = re.compile(rb"[\s(]*(?:insert|update|delete|replace|merge)\b", re.IGNORECASE)


def own_logs(datastore: str, server: Hashable) -> set[str]:
    """The keys of the logs that clients of *datastore* were seen to write at an address.

    Args:
        datastore: its name.
        server: its address, as settings of clients have it.
    """
    if len(_logs) >= _MOST and (datastore, server) not in _logs:
        _logs.clear()
    return _logs.setdefault((datastore, server), set())


def changes_rows(sql: str | bytes) -> bool:
    """Whether a statement changes rows, as ``INSERT ... RETURNING``: it is made at a primary."""
    text = sql[:64].encode("utf-8", "replace") if isinstance(sql, str) else bytes(sql[:64])
    return _CHANGES.match(text) is not None
