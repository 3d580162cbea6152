"""One call of a function whose effect, name and reply commit together. Without I/O.

The order is the promise: the name is taken before the function runs, the reply is stored before
the commit, and whoever finds the name taken gets the reply or waits for it. What the store does is
asked for with steps that two small drivers carry out, for threads and for asyncio.
"""

from __future__ import annotations

import asyncio
import enum
import random
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from ._errors import CallError, Divergent, DuplicateWaits, InDoubt
from ._replies import Declined, Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    #: Something to do, whose result, or whose error, the conversation gets.
    Step = Callable[[], Any]
    Conversation = Generator[Step, Any, Reply]

#: The table or collection of calls, with the version of its columns.
TABLE = "antipode_calls_1"
RUNNING = "running"
DONE = "done"
#: Seconds before a repetition after a conflict: a random part of them, at most the second.
_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Key:
    """What identifies an effect, and what it is of.

    Attributes:
        caller: whose call it is.
        name: of the call.
        effect: which of the call's effects.
        digest: of the declared arguments.
    """

    caller: str
    name: str
    effect: str
    digest: str


@dataclass(frozen=True, slots=True)
class Found:
    """A row of another call with the same key.

    Attributes:
        digest: of its arguments.
        reply: None where that call committed its name without a reply.
    """

    digest: str
    reply: Reply | None


class Verdict(enum.Enum):
    """What an error of a store says of the transaction in which it came."""

    #: It did not commit, or may have: run it again, which finds out.
    REPEAT = enum.auto()
    #: Another call with the same name goes on still: it was waited for, as long as there was time.
    WAITED = enum.auto()
    #: As REPEAT; where the name was taken, another call with that name goes on still.
    CONFLICT = enum.auto()
    #: It is the caller's.
    RAISE = enum.auto()


class Store(Protocol):
    """Where effects, names and replies are, with transactions. Each method may be asynchronous."""

    def begin(self) -> Any:  # noqa: ANN401 - a handle that the store alone looks into
        """A new transaction."""

    def take(self, handle: Any, key: Key, wait_s: float) -> Any:  # noqa: ANN401 - as above
        """Take the name: None, or what is :class:`Found` in its place."""

    def savepoint(self, handle: Any) -> Any:  # noqa: ANN401 - as above
        """From here the function's effects can be taken back."""

    def back(self, handle: Any) -> Any:  # noqa: ANN401 - as above
        """Take back what happened since the savepoint."""

    def keep(self, handle: Any, key: Key, reply: Reply) -> Any:  # noqa: ANN401 - as above
        """Store the reply."""

    def commit(self, handle: Any) -> Any:  # noqa: ANN401 - as above
        """Commit, and give back what is held."""

    def rollback(self, handle: Any) -> Any:  # noqa: ANN401 - as above
        """Roll back, and give back what is held."""

    def verdict(self, error: BaseException) -> Verdict:
        """What *error* says. Raises ConfigurationError where it says that something is missing."""
        ...


def converse(
    store: Store,
    key: Key,
    run: Callable[[Any], Any],
    *,
    deadline_s: float,
    declining: Callable[[Exception], Reply] | None,
) -> Conversation:
    """Run a function once for *key*, or find what an earlier run replied.

    Args:
        store: where.
        key: what identifies it.
        run: called with the transaction's handle; its result is a :class:`Reply`. It raises
            :class:`Declined` with an error that is a reply.
        deadline_s: on the monotonic clock: until then conflicts are repeated, and duplicates wait.
        declining: makes the reply of what was declined; None where no error is a reply.

    Returns:
        The reply, stored now or earlier.

    Raises:
        Divergent: the name is another call's.
        DuplicateWaits: the first call goes on still at the deadline.
        InDoubt: an earlier call committed its name without a reply.
    """
    pause_s = _PAUSE_S
    while True:
        handle = None
        taking = True
        try:
            handle = yield store.begin
            left_s = max(deadline_s - time.monotonic(), 0.0)
            found = cast("Found | None", (yield partial(store.take, handle, key, left_s)))
            taking = False
            if found is not None:
                # Nothing was written, and nobody is to wait for locks of readers.
                held, handle = handle, None
                yield partial(store.rollback, held)
                return _reply_of(found, key)
            reply = yield from _executed(store, handle, run, declining)
            yield partial(store.keep, handle, key, reply)
            held, handle = handle, None
            yield partial(store.commit, held)
        except BaseException as error:
            if handle is not None:
                yield partial(store.rollback, handle)
            verdict = _verdict(store, error, taking=taking)
            if verdict is Verdict.RAISE:
                raise
            if time.monotonic() + pause_s >= deadline_s:
                if taking and verdict is not Verdict.REPEAT:
                    raise _waiting(key) from error
                raise
            yield partial(_Pause, random.uniform(0, pause_s))  # noqa: S311 - no secret
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        else:
            return reply


def _executed(
    store: Store,
    handle: Any,  # noqa: ANN401 - the store's
    run: Callable[[Any], Any],
    declining: Callable[[Exception], Reply] | None,
) -> Conversation:
    """The reply of the function, which may be an error after which its effects are taken back."""
    if declining is None:
        return cast("Reply", (yield partial(run, handle)))
    yield partial(store.savepoint, handle)
    try:
        return cast("Reply", (yield partial(run, handle)))
    except Declined as declined:
        yield partial(store.back, handle)
        return declining(declined.error)


def _verdict(store: Store, error: BaseException, *, taking: bool) -> Verdict:
    if isinstance(error, CallError) or not isinstance(error, Exception):
        return Verdict.RAISE
    verdict = store.verdict(error)
    # A lock that the function itself waited for is its own affair.
    return Verdict.RAISE if verdict is Verdict.WAITED and not taking else verdict


def _reply_of(found: Found, key: Key) -> Reply:
    if found.digest != key.digest:
        msg = (
            f"the call {key.name!r} was made before with other arguments of {key.effect!r}: "
            "nothing was executed"
        )
        raise Divergent(msg)
    if found.reply is None:
        msg = (
            f"the call {key.name!r} committed its name without a reply: {key.effect!r} ended its "
            "transaction itself. It is not executed again"
        )
        raise InDoubt(msg)
    return found.reply


def _waiting(key: Key) -> DuplicateWaits:
    return DuplicateWaits(
        f"the first call {key.name!r} goes on still: ask again for what it replies"
    )


class _Pause(float):
    """Seconds to wait before the next step; what a step returns that shall be waited for."""


def drive(conversation: Conversation) -> Reply:
    """Carry out the steps of *conversation* here."""
    result: Any = None
    try:
        step = next(conversation)
        while True:
            try:
                result = step()
            except BaseException as error:  # noqa: BLE001 - the conversation decides
                step = conversation.throw(error)
                continue
            if isinstance(result, _Pause):
                time.sleep(result)
            step = conversation.send(result)
    except StopIteration as end:
        return cast("Reply", end.value)
    finally:
        conversation.close()


async def drive_async(conversation: Conversation) -> Reply:
    """As :func:`drive`; what a step returns is awaited where that can be."""
    result: Any = None
    try:
        step = next(conversation)
        while True:
            try:
                result = step()
                if isinstance(result, _Pause):
                    await asyncio.sleep(result)
                elif hasattr(result, "__await__"):
                    result = await result
            except BaseException as error:  # noqa: BLE001 - as above
                step = conversation.throw(error)
                continue
            step = conversation.send(result)
    except StopIteration as end:
        return cast("Reply", end.value)
    finally:
        conversation.close()
