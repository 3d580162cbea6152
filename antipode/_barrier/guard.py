"""A read that is held back, as a conversation without I/O: judge, ask, hold, send, take in.

The order of its questions is the decision, and it stands here once: for all stores, and for
threads and asyncio. A store answers for one read (:class:`Guarded`). What a conversation yields is
done with the store's client by one of two drivers (:func:`drive`, :func:`drive_async`).

A read of which nothing is demanded has no floor, and never comes here: :func:`floor` says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from antipode._runtime.cancellation import unless_cancelled

from .contract import Unreachable
from .floor import HeldRead
from .registry import shared_watcher

if TYPE_CHECKING:
    from .contract import Observation
    from .floor import Floor
    from .places import Places
    from .pools import Repeated
    from .store import Store

T = TypeVar("T")


class Step(Protocol):
    """What a conversation yields: something to do, whose result it is sent."""

    def do(self, client: Any, /) -> Any:
        """Do it with a *client* of threads."""
        ...

    def do_async(self, client: Any, /) -> Awaitable[Any]:
        """The same with one of asyncio."""
        ...


#: A conversation that ends with a `T`.
Steps = Generator[Step, Any, T]


class Send:
    """Make the application's call, or put a question of the library's, in a step of the store's."""

    __slots__ = ("_step",)

    def __init__(self, step: Step) -> None:
        """Do *step*."""
        self._step = step

    def do(self, client: Any) -> Any:
        """Do it."""
        return self._step.do(client)

    def do_async(self, client: Any) -> Awaitable[Any]:
        """Do it; what comes after it is not done in a task that was cancelled meanwhile."""
        return unless_cancelled(self._step.do_async(client))


class Pause:
    """Let time go by."""

    __slots__ = ("_pause_s", "_read")

    def __init__(self, read: HeldRead, pause_s: float) -> None:
        """Until the next poll of *read*, in *pause_s* seconds or once it is told of news."""
        self._read, self._pause_s = read, pause_s

    def do(self, client: Any) -> None:
        """Pause this thread."""
        del client
        self._read.pause(self._pause_s)

    def do_async(self, client: Any) -> Awaitable[None]:
        """Pause this task."""
        del client
        return self._read.pause_async(self._pause_s)


class Verdict(Enum):
    """What is known of a read before anything is sent."""

    #: It is shown its floor.
    PASS = "pass"  # noqa: S105 - it lets a read pass
    #: It reads from a snapshot that is older than its floor.
    STALE = "stale"
    #: It depends on what the server alone can say.
    ASK = "ask"
    #: The connection that reads is asked until it shows the floor.
    HOLD = "hold"
    #: Likewise, and the first question goes with the read itself, in one packet.
    RIDE = "ride"
    #: Another connection is asked: whatever is asked on this one takes its snapshot.
    OUTSIDE = "outside"


class Guarded:
    """A store's answers for one read that is held back; a subclass has those that it needs.

    Attributes:
        held: what the read must see.
        shim: whose client reads.
        places: of the pool of a connection that is kept; None without one.
        watched: whether all reads that wait are polled for; not where the server can be waited on.
        leads: whether the floor has to be shown before the read takes a question along.
        unproved: the exceptions of a poll outside that mean that it shows nothing.
    """

    held: Floor
    shim: Store
    places: Places | None = None
    watched = True
    leads = False
    unproved: tuple[type[Exception], ...] = ()

    @property
    def again(self) -> Repeated | None:
        """What makes the read again after each pause; None where its connection is kept."""
        return None

    def judge(self) -> Verdict:
        """What is known already."""
        raise NotImplementedError

    def questions(self) -> Steps[Verdict]:
        """Ask what the server alone can say."""
        raise NotImplementedError

    def poll(self, timeout_s: float, *, outside: bool) -> Steps[Observation]:
        """Ask once what the floor demands: the connection that reads, or another one."""
        raise NotImplementedError

    def ride(self) -> Steps[bool]:
        """Make the read with a question in its packet; whether that shows the floor."""
        raise NotImplementedError

    def settle(self, seen: Observation | None, *, outside: bool) -> Steps[None] | None:
        """Take in that it waits no longer, after what was *seen* last; what is left to ask."""
        raise NotImplementedError

    def stale(self) -> None:
        """End a read from an older snapshot.

        Raises:
            StaleSnapshot: unless such reads are answered.
        """
        raise NotImplementedError


def guard(read: Guarded) -> Steps[bool]:
    """Hold *read* back until it may be sent, or send it with its question.

    Returns:
        Whether it was answered, or may be sent now. False: it is too early. Its attempt ends,
        and another one is made after a pause.

    Raises:
        UnmetError: the time is up, or waiting longer cannot help.
        StaleSnapshot: it reads from an older snapshot.
        Unreachable: the connection failed while there was time left.
    """
    verdict = read.judge()
    if verdict is Verdict.ASK:
        verdict = yield from read.questions()
    if verdict is Verdict.OUTSIDE and not (yield from shown_outside(read)):
        verdict = Verdict.STALE
    if verdict is Verdict.PASS:
        read.held.passed()
    elif verdict is Verdict.STALE:
        read.stale()
    elif verdict is Verdict.HOLD:
        return (yield from _shown(read))
    elif verdict is Verdict.RIDE:
        return (yield from _answered(read))
    return True


def _answered(read: Guarded) -> Steps[bool]:
    """Send a read with its question, until that shows the floor; all else is asked alone."""
    if read.leads and not (yield from _shown(read)):
        return False
    while not (yield from read.ride()):
        if not (yield from _shown(read)):
            return False
    return True


def shown_outside(read: Guarded) -> Steps[bool]:
    """Poll on another connection; False where that cannot prove what the read will see."""
    try:
        return (yield from _shown(read, outside=True))
    except read.unproved:
        return False


def _shown(read: Guarded, *, outside: bool = False) -> Steps[bool]:
    """Poll until the floor is shown; once, where the read is made again after a pause."""
    held, again, seen = read.held, read.again, None
    if not held.over:
        waiting = _waiting(read) if again is None else again.held(held)
        try:
            while True:
                seen = yield from read.poll(waiting.poll_s, outside=outside)
                pause_s = waiting.take(seen)
                if again is not None and not again.noted(pause_s):
                    return False
                if pause_s is None:
                    break
                yield Pause(waiting, pause_s)
        except Unreachable as away:
            waiting.late(away)
            raise
        finally:
            if again is None:
                waiting.end()
    if (left := read.settle(seen, outside=outside)) is not None:
        yield from left
    return True


def _waiting(read: Guarded) -> HeldRead:
    watcher = shared_watcher(read.shim) if read.watched else None
    return HeldRead(read.held, watcher, read.places)


def drive(steps: Steps[T], client: Any) -> T:
    """Do all that *steps* yields with a *client* of threads."""
    answer: Callable[[Any], Step] = steps.send
    given: Any = None
    try:
        while True:
            step = answer(given)
            try:
                given, answer = step.do(client), steps.send
            except BaseException as error:  # noqa: BLE001 - it goes to the conversation
                given, answer = error, steps.throw
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        given = None  # An error's traceback has this frame.


async def drive_async(steps: Steps[T], client: Any) -> T:
    """The asyncio twin of :func:`drive`."""
    answer: Callable[[Any], Step] = steps.send
    given: Any = None
    try:
        while True:
            step = answer(given)
            try:
                given, answer = await step.do_async(client), steps.send
            except BaseException as error:  # noqa: BLE001 - it goes to the conversation
                given, answer = error, steps.throw
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        given = None
