"""The arguments of barriers and checks, as they are meant."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from antipode._lineage.errors import ConfigurationError
from antipode._lineage.lineage import Lineage
from antipode._request.context import is_stopped
from antipode._request.lineage_text import readable, received
from antipode._request.recording import unscoped
from antipode._runtime import switch
from antipode._runtime.config import config
from antipode._runtime.metrics import log_once

if TYPE_CHECKING:
    from antipode._request.scope import Scope
    from antipode._runtime.clock import Clock
    from antipode._runtime.config import Mode

Names = str | Iterable[str]


def lineage_of(
    lineage: Lineage | str | None, held: Scope | None, mode: Mode, clock: Clock
) -> Lineage:
    """The lineage a barrier is about; the empty one where the library is disabled.

    Raises:
        LineageDecodeError: it is a text and no lineage, and this is no dry run.
        ConfigurationError: there is none and no scope, where the barrier would wait for what is
            in one, and ``on_unscoped="report"`` was not configured.
    """
    if switch.disabled:
        return Lineage()
    if isinstance(lineage, str):
        return readable("", lineage) if mode == "dry-run" else received(lineage, clock)
    if lineage is not None:
        return lineage
    if held is not None:
        return held.lineage
    if not is_stopped():
        waits = mode == "enforce"
        unscoped("barrier", "", policy=(config().on_unscoped or "raise") if waits else "report")
    return Lineage()


def names_of(names: Names) -> frozenset[str]:
    """One name, or several."""
    return frozenset([names] if isinstance(names, str) else names)


def one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Refuse what is not *allowed*.

    Raises:
        ConfigurationError: *value* is none of them.
    """
    if value not in allowed:
        msg = f"{name} must be {' or '.join(map(repr, allowed))}, not {value!r}"
        raise ConfigurationError(msg)


def bounded(timeout: float, max_timeout: float) -> float:
    """*timeout*, at most *max_timeout*, in seconds.

    Raises:
        TypeError: it is a bool.
        ValueError: it is not positive, or endless.
    """
    if isinstance(timeout, bool):
        msg = "timeout must be a number of seconds, not a bool"
        raise TypeError(msg)
    if not timeout > 0 or math.isinf(timeout):
        msg = f"timeout must be positive and finite, not {timeout}: to look once, use check()"
        raise ValueError(msg)
    if timeout > max_timeout:
        message = "a barrier asks for %s s and gets max_timeout=%s s"
        log_once("max_timeout", "", timeout, message, timeout, max_timeout)
    return float(min(timeout, max_timeout))
