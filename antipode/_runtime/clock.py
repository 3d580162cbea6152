"""Time as the core sees it; ``antipode.testing.VirtualClock`` is the other implementation."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol

from opentelemetry import context as otel_context

if TYPE_CHECKING:
    from .wake import Wake

SECONDS_PER_HOUR = 3600
#: What instrumentations of clients look for in the context. A watcher's looks are of no request and
#: may be many: each would be a trace of its own.
UNTRACED = "suppress_instrumentation"


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
        """Run *stepper* in the background until it is done."""
        ...


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
        """Run *stepper* in a thread of its own."""

        def run() -> None:
            otel_context.attach(otel_context.set_value(UNTRACED, value=True))
            while (delay_s := stepper.step()) is not None:
                stepper.pause(delay_s)

        thread = threading.Thread(target=run, name=stepper.name, daemon=True)
        thread.start()
        return thread


SYSTEM_CLOCK: Clock = SystemClock()
