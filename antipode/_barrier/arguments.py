"""The arguments of barriers and checks, as they are meant."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, SupportsFloat

from antipode._lineage.errors import ConfigurationError
from antipode._lineage.lineage import Lineage
from antipode._request.context import is_stopped
from antipode._request.lineage_text import readable, received
from antipode._request.recording import unscoped
from antipode._runtime import switch
from antipode._runtime.call_site import call_site
from antipode._runtime.config import config
from antipode._runtime.metrics import count, log_once

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


def tell_of_stall() -> None:
    """Count, and log once for each place, a wait that keeps an event loop from running."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:  # noqa: SLF001 - as asyncio does
        return
    count("blocked_loop")
    site = call_site()
    message = (
        "%s: a barrier or check blocks the event loop that runs here, and all of its tasks: await "
        "barrier_async() or check_async()"
    )
    log_once("blocked_loop", "", site, message, site)


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


def bounded(timeout: object, max_timeout: float) -> float:
    """*timeout*, at most *max_timeout*, in seconds.

    Raises:
        TypeError: it is no number.
        ValueError: it is not positive, or endless.
    """
    # The protocol comes last: to ask by it takes longer than all else here.
    if isinstance(timeout, bool) or not isinstance(timeout, (float, int, SupportsFloat)):
        msg = f"timeout must be a number of seconds, such as 5, not {timeout!r}"
        if timeout is None:
            msg += ": a barrier always has a deadline; to check once, use check()"
        raise TypeError(msg)
    timeout = float(timeout)
    if not timeout > 0 or math.isinf(timeout):
        msg = f"timeout must be positive and finite, not {timeout}: to check once, use check()"
        raise ValueError(msg)
    if timeout > max_timeout:
        message = "a barrier asks for %s s and gets max_timeout=%s s"
        log_once("max_timeout", "", timeout, message, timeout, max_timeout)
    return min(timeout, float(max_timeout))
