"""Promised writes: branches of a request that will still write (paper section 6.2's limit).

A lineage is a prefix: what a branch has not written yet is in none. A promise stands for it. It
is fulfilled by a record that the store commits atomically with the branch's data, so that whoever
sees the one sees the other (docs/spec/barrier-and-outcomes.md, Promises).
"""

from __future__ import annotations

import math
import secrets
import time
from typing import TYPE_CHECKING

from antipode._lineage.errors import ConfigurationError
from antipode._lineage.lineage import Lineage
from antipode._lineage.write_id import Promise
from antipode._request.context import scope_in
from antipode._request.fulfilling import promise_of
from antipode._request.recording import unscoped
from antipode._runtime import observers
from antipode._runtime.clock import NoThread, within
from antipode._runtime.config import config
from antipode._runtime.metrics import count

from .arguments import bounded
from .contract import Unreachable
from .decisions import PROMISE_GRACE_S
from .registry import shims_of

if TYPE_CHECKING:
    from .store import Store

#: Seconds by which a client may be late before it is left alone.
_GRACE_S = 0.25


def promise(datastore: str, *, expires_in_s: float) -> Promise:
    """Promise that a branch of this request will write to *datastore*.

    The promise enters the current scope: whoever gets its lineage waits until the branch has
    fulfilled the promise. Hand ``promise.token`` to the branch, in its message or arguments.

    Args:
        datastore: where the branch will record the fulfilment, atomically with its data.
        expires_in_s: seconds after which the promise counts as abandoned, whatever became of
            the branch; rather too long than too short.

    Raises:
        TypeError: *datastore* is no text.
        ValueError: it is empty, or *expires_in_s* is not positive, or more than ``max_promise``.
        ConfigurationError: there is no scope, and ``on_unscoped="raise"``.
    """
    most_s = config().max_promise.total_seconds()
    if not 0 < expires_in_s <= most_s:
        msg = (
            f"expires_in_s must be positive and at most {most_s:g}, not {expires_in_s}: "
            "configure(max_promise=...) of all services bounds it"
        )
        raise ValueError(msg)
    made = Promise(datastore, secrets.token_hex(16), math.ceil(time.time() + expires_in_s))
    held = scope_in()
    if held is None:
        unscoped("promise", datastore)
    else:
        held.merge(Lineage(promises=[made]))
        if (observer := observers.dry_run) is not None:
            observer.wrote(held, (made,))
    return made


def abandon(promise: Promise | str, *, timeout: float = 5.0) -> bool:
    """Give *promise* up for good: who waits for it learns at once that it is ``abandoned``.

    A later fulfilment fails with ``PromiseAbandoned``. What was fulfilled before stays so.

    Args:
        promise: the promise, or its ``token``.
        timeout: seconds that the store may take.

    Returns:
        Whether it is abandoned now; False where it was fulfilled before.

    Raises:
        LineageDecodeError: *promise* is a text and no token.
        ConfigurationError: nothing is registered for its datastore that can record it.
        Unreachable: (of ``antipode.shim``) the store does not answer; worth repeating.
    """
    given_up = promise_of(promise)
    shim = _abandoning(given_up.datastore)
    timeout_s = bounded(timeout, config().max_timeout)
    try:
        abandoned = within(
            timeout_s + _GRACE_S, lambda: shim.abandon_promise(given_up, timeout_s=timeout_s)
        )
    except (TimeoutError, NoThread) as error:
        msg = f"{given_up} may not be abandoned: {error}"
        raise Unreachable(msg) from error
    count("promise_abandoned" if abandoned else "promise_fulfilled_first", given_up.datastore)
    return abandoned


async def abandon_async(promise: Promise | str, *, timeout: float = 5.0) -> bool:
    """The asyncio twin of :func:`abandon`: never blocks the loop.

    Raises:
        LineageDecodeError: as :func:`abandon`.
        ConfigurationError: as :func:`abandon`.
        Unreachable: as :func:`abandon`.
    """
    import asyncio

    return await asyncio.to_thread(abandon, promise, timeout=timeout)


def record_seconds(promise: Promise) -> int:
    """How long the record of *promise* must live from now on. For shims.

    Until its expiry, the grace after it, and the horizon: from then on its absence says nothing.
    """
    settings = config()
    kept_s = max(settings.horizon.total_seconds(), PROMISE_GRACE_S) + PROMISE_GRACE_S
    lives_s = min(promise.expires_s - time.time(), settings.max_promise.total_seconds())
    return math.ceil(max(lives_s, 0.0) + kept_s)


def _abandoning(datastore: str) -> Store:
    """The registered shim of *datastore* that can record an abandonment.

    Raises:
        ConfigurationError: there is none.
    """
    for shim in shims_of(datastore):
        if shim.abandons:
            return shim
    msg = (
        f"nothing is registered for {datastore!r} that can record that a promise was abandoned: "
        "register a shim or instrument a client of its primary"
    )
    raise ConfigurationError(msg)
