"""Time as the core sees it; ``antipode_testing.VirtualClock`` is the other implementation."""

from __future__ import annotations

import contextvars
import threading
import time
from typing import TYPE_CHECKING, Protocol, TypeVar

from opentelemetry import context as otel_context

if TYPE_CHECKING:
    from collections.abc import Callable

    from .wake import Wake

T = TypeVar("T")

SECONDS_PER_HOUR = 3600
#: What instrumentations of clients read in the context. A watcher's polls are of no request and
#: may be many: each would be a trace of its own.
UNTRACED = "suppress_instrumentation"


class NoThread(Exception):  # noqa: N818 - what became of it, like Unreachable
    """The system starts no further thread now: a limit of the process, or no memory."""


class Stepper(Protocol):
    """Something that alternates between work and pauses until it has nothing left to do."""

    name: str
    wake: Wake

    def step(self) -> float | None:
        """Work once; seconds until the next step, None when done."""
        ...

    def pause(self, timeout_s: float) -> None:
        """Wait for *timeout_s* seconds or until there is a reason to work."""
        ...


class Clock(Protocol):
    """A monotonic clock, a coarse calendar, and a way to run steppers on them."""

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    def hour(self) -> int:
        """The Unix hour it is now."""
        ...

    def unix_s(self) -> float:
        """The Unix second it is now: what promises expire by."""
        ...

    def spawn(self, stepper: Stepper) -> threading.Thread | None:
        """Run *stepper* in the background until it is done.

        Raises:
            NoThread: not now.
        """
        ...


class Allowance:
    """Seconds that may be waited in all. Whoever waits at the same time spends them together."""

    def __init__(self, seconds: float) -> None:
        """Allow *seconds*."""
        self._whole_s = self._left_s = seconds
        self._waiting = 0
        self._since_s = 0.0
        self._lock = threading.Lock()

    def left_s(self, now_s: float) -> float:
        """Seconds that are left at *now_s*."""
        with self._lock:
            return max(self._left_s - (now_s - self._since_s if self._waiting else 0.0), 0.0)

    def spent_s(self, now_s: float) -> float:
        """Seconds that were waited until *now_s*."""
        return self._whole_s - self.left_s(now_s)

    def begin(self, now_s: float) -> None:
        """Somebody begins to wait."""
        with self._lock:
            if not self._waiting:
                self._since_s = now_s
            self._waiting += 1

    def end(self, now_s: float) -> None:
        """Somebody who began waits no longer."""
        with self._lock:
            self._left_s = max(self._left_s - (now_s - self._since_s), 0.0)
            self._since_s = now_s
            self._waiting -= 1

    def use_up(self) -> None:
        """Somebody waited for all of it, elsewhere."""
        with self._lock:
            self._left_s = 0.0


class SystemClock:
    """The machine's clocks; steppers run in daemon threads."""

    #: Seconds that never go back. Asked for in reads of a dry run: nothing is called in between.
    monotonic = staticmethod(time.monotonic)

    def hour(self) -> int:
        """The Unix hour it is now."""
        return int(time.time() // SECONDS_PER_HOUR)

    def unix_s(self) -> float:
        """The Unix second it is now."""
        return time.time()

    def spawn(self, stepper: Stepper) -> threading.Thread:
        """Run *stepper* in a thread of its own.

        Raises:
            NoThread: the system starts none now.
        """

        def run() -> None:
            otel_context.attach(otel_context.set_value(UNTRACED, value=True))
            while (delay_s := stepper.step()) is not None:
                stepper.pause(delay_s)

        thread = threading.Thread(target=run, name=stepper.name, daemon=True)
        start(thread)
        return thread


def start(thread: threading.Thread) -> None:
    """Start *thread*.

    Raises:
        NoThread: the system starts none now.
    """
    try:
        thread.start()
    except RuntimeError as error:
        raise NoThread(f"no thread {thread.name!r}: {error}") from error


SYSTEM_CLOCK: Clock = SystemClock()


def within(timeout_s: float, function: Callable[[], T]) -> T:
    """What *function* returns, in a thread that is left alone after *timeout_s* seconds.

    For calls of clients that may take longer than they are allowed: to resolve a name, say.

    Raises:
        TimeoutError: it takes longer.
        NoThread: the system starts none now.
        Exception: as *function* does.
    """
    from concurrent.futures import Future, wait  # Few processes ever ask.

    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            answer.set_exception(error)

    context = contextvars.copy_context()
    start(threading.Thread(target=context.run, args=(run,), name="antipode-call", daemon=True))
    if not wait([answer], timeout_s).done:
        msg = f"no answer within {timeout_s:.3f} s"
        raise TimeoutError(msg)
    return answer.result()
