"""Who looks at a server where several clients of this process know it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from .shim import Shim

_lock = threading.Lock()
_claims: dict[Hashable, list[Shim]] = {}


def claim(where: Hashable, shim: Shim) -> None:
    """Let *shim* look at *where*, unless another one of this process does already.

    A service has a sync and an asyncio client of one replica, or a shim beside them: for
    barriers they are one server, not several replicas under one name.
    """
    with _lock:
        held = _claims.setdefault(where, [])
        held.append(shim)
        shim.looks = held[0] is shim


def release(where: Hashable, shim: Shim) -> None:
    """Give the claim up; the next one looks. Idempotent."""
    with _lock:
        held = _claims.get(where, [])
        if shim in held:
            held.remove(shim)
        if held:
            held[0].looks = True
        else:
            _claims.pop(where, None)
