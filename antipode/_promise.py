"""Promised writes: branches of a request that will still write (paper section 6.2's limit).

A lineage is a prefix: what a branch has not written yet is in none. A promise stands for it. It
is fulfilled by a record that the store commits atomically with the branch's data, so that whoever
sees the one sees the other (docs/spec/barrier-and-outcomes.md, Promises).
"""

from __future__ import annotations

import math
import secrets
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry import context as otel_context

from . import _seam
from ._arguments import bounded
from ._branch import Branch
from ._config import config
from ._engine import PROMISE_GRACE_S
from ._errors import ConfigurationError
from ._lineage import Lineage
from ._metrics import count
from ._registry import shims_of
from ._scope import context_with, scope_in
from ._unscoped import unscoped
from ._write_id import Promise

if TYPE_CHECKING:
    from collections.abc import Generator

    from .shim import Shim


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
        ValueError: it is empty, or *expires_in_s* is not positive and finite.
        ConfigurationError: there is no scope, and ``on_unscoped="raise"``.
    """
    if not expires_in_s > 0 or math.isinf(expires_in_s):
        msg = f"expires_in_s must be positive and finite, not {expires_in_s}"
        raise ValueError(msg)
    made = Promise(datastore, secrets.token_hex(16), math.ceil(time.time() + expires_in_s))
    held = scope_in()
    if held is None:
        unscoped("promise", datastore)
    else:
        held.merge(Lineage(promises=[made]))
        if (observer := _seam.observer) is not None:
            observer.wrote(held, (made,))
    return made


@contextmanager
def fulfilling(promise: Promise | str) -> Generator[Promise]:
    """Run a block as the branch that fulfils *promise*.

    The lineage that came with the branch's message holds that very promise: waiting for it here,
    or in a service that is called from here, would wait for this block itself. So the block runs
    in a scope of its own, which has everything of the current one but the promise; what it
    gathers enters the current scope at its end, however that comes.

    Leaving the block records nothing. The branch fulfils the promise in the transaction of its
    data, by its store's ``fulfil`` or ``fulfils=``. After an error a queue may deliver the
    message again; who gives up for good says so with :func:`abandon`.

    Args:
        promise: the promise, or its ``token``.

    Raises:
        LineageDecodeError: *promise* is a text and no token.
    """
    mine = promise_of(promise)
    outer = scope_in()
    if outer is None:
        yield mine
        return
    inner = Branch(outer, mine)
    token = otel_context.attach(context_with(inner))
    try:
        yield mine
    finally:
        otel_context.detach(token)
        inner.join(outer)


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
    abandoned = shim.abandon_promise(given_up, timeout_s=bounded(timeout, config().max_timeout))
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


def promise_of(promise: Promise | str) -> Promise:
    """A promise, or the one that a token stands for.

    Raises:
        LineageDecodeError: it is a text and no token.
    """
    return Promise.parse(promise) if isinstance(promise, str) else promise


def record_seconds(promise: Promise) -> int:
    """How long the record of *promise* must live from now on. For shims.

    Until its expiry, the grace after it, and the horizon: from then on its absence says nothing.
    """
    kept_s = max(config().horizon.total_seconds(), PROMISE_GRACE_S) + PROMISE_GRACE_S
    return math.ceil(max(promise.expires_s - time.time(), 0.0) + kept_s)


def _abandoning(datastore: str) -> Shim:
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
