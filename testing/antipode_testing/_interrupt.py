"""Ctrl-C put off for the moment in which a process exists that nobody knows of yet."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What ends a program in order, if it has a handler for it.
_ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off SIGINT and SIGTERM until the end of a block that starts a process and notes it down.

    A handler that raises, as Python's own for Ctrl-C does, may do so inside `subprocess.Popen`,
    when the child runs and the caller does not know it: nobody would end it. Keep the block
    short. Signals without a handler do what they do, and outside the main thread, which alone
    runs handlers, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    late: list[int] = []
    handlers = {number: signal.getsignal(number) for number in _ENDING}
    ours = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in ours:
            signal.signal(number, lambda got, _: late.append(got))
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
    if late:
        signal.raise_signal(late[0])
