"""``as_of_now()``: a primary's position of now, for an event of its store that names none."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ParamSpec

from antipode._lineage.errors import ConfigurationError
from antipode._lineage.lineage import Lineage
from antipode._runtime.config import config
from antipode._runtime.metrics import count, logger
from antipode._runtime.switch import is_disabled

from .arguments import bounded
from .contract import PRIMARY_KEY
from .registry import primaries_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode._lineage.write_id import WriteId

    from .fence import Fence

_Args = ParamSpec("_Args")
#: Seconds by which a client may be late before it is left alone.
_GRACE_S = 0.25


def as_of_now(datastore: str, *, timeout: float = 5.0) -> Lineage:
    """All that *datastore* has committed by now, as one position of its primary.

    For events that a store emits and that name no position, such as PostgreSQL's ``NOTIFY``: who
    handles one in ``antipode.scope(antipode.as_of_now("app"))`` reads at a replica what the event
    is of. The primary is asked once, on a connection of the library's own. The position covers
    more than the event, and is never counted as a violation.

    Args:
        datastore: whose client in this process reaches its primary.
        timeout: seconds that the primary may take.

    Returns:
        The position; where the primary has none, or does not answer in time, a lineage that is
        incomplete (``unsampled``): a barrier asks again, and fails where that fails. Empty where
        the library is disabled.

    Raises:
        ConfigurationError: no client here reaches the primary of *datastore*, or it has no log.
        ValueError: *timeout* is none.
    """
    timeout_s = bounded(timeout, config().max_timeout)
    return _taken(datastore, _asked(datastore, timeout_s), timeout_s)


async def as_of_now_async(datastore: str, *, timeout: float = 5.0) -> Lineage:
    """The asyncio twin of :func:`as_of_now`: never blocks the loop.

    Raises:
        ConfigurationError: as :func:`as_of_now`.
        ValueError: as :func:`as_of_now`.
    """
    import asyncio

    timeout_s = bounded(timeout, config().max_timeout)
    asked = _asked(datastore, timeout_s)
    if asked:
        waiting = [asyncio.wrap_future(fence) for fence in asked]
        done, _ = await asyncio.wait(waiting, timeout=timeout_s + _GRACE_S)
        for each in done:
            each.exception()  # Or the loop logs it as one that nobody saw.
    return _taken(datastore, asked, 0.0)


def of_an_event(function: Callable[_Args, Lineage]) -> Callable[_Args, Lineage]:
    """Let *function*, a shim's ``lineage()``, ask nobody where the library is disabled. For shims.

    What it returns is empty then, as all lineages are.
    """

    @functools.wraps(function)
    def call(*args: _Args.args, **kwargs: _Args.kwargs) -> Lineage:
        return Lineage() if is_disabled() else function(*args, **kwargs)

    return call


def positions_now(datastore: str, *, timeout_s: float) -> frozenset[WriteId] | None:
    """The positions of the primary of *datastore*, asked once; None where there is none. For shims.

    Raises:
        ConfigurationError: no client here reaches it, or it has no log.
    """
    return _positions(datastore, _asked(datastore, timeout_s), timeout_s)


def _asked(datastore: str, timeout_s: float) -> list[Fence]:
    """Begin to ask; nobody where the library is disabled."""
    if is_disabled():
        return []
    if not (primaries := primaries_of(datastore)):
        msg = (
            f"no client in this process can ask the primary of {datastore!r} for its position: "
            "instrument one that reaches it, or have the event itself name its position; stores "
            "without a log have no position at all"
        )
        raise ConfigurationError(msg)
    return [shim.fencer.ask(timeout_s) for shim in primaries]


def _taken(datastore: str, asked: list[Fence], timeout_s: float) -> Lineage:
    if not asked:
        return Lineage()
    found = _positions(datastore, asked, timeout_s)
    return Lineage(incomplete=[(datastore, "unsampled")]) if found is None else Lineage(found)


def _positions(datastore: str, asked: list[Fence], timeout_s: float) -> frozenset[WriteId] | None:
    """What was answered; None where any of several primaries did not: it may be the one."""
    from concurrent.futures import wait

    if not asked:
        return frozenset()
    wait(asked, timeout_s + _GRACE_S if timeout_s else 0)
    found: set[WriteId] = set()
    for fence in asked:
        fence.cancel()
        try:
            answered = [write for write in fence.result(0) if write.key != PRIMARY_KEY]
        except Exception:  # noqa: BLE001 - whatever a client raises, nothing is known then
            logger.warning("no position from the primary of %r", datastore, exc_info=True)
            answered = []
        if not answered:
            count("fence_failed", datastore)
            return None
        found.update(answered)
    count("fences", datastore)
    return frozenset(found)
