"""Generators that hold a scope over a ``yield``: it is then their callers' scope as well."""

from __future__ import annotations

import inspect
import sys
import threading
from typing import TYPE_CHECKING

from antipode._runtime.call_site import call_site
from antipode._runtime.metrics import count, log_once

if TYPE_CHECKING:
    from types import FrameType

_GENERATOR = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_CONTEXTLIB = "contextlib"
#: Whose generators are meant to do so: a fixture's scope is the test's.
_FIXTURES = frozenset({"_pytest", "pytest_asyncio"})


class Holder:
    """The generator whose ``with`` opened a scope."""

    __slots__ = ("_frame", "_runner", "_site")

    def __init__(self, frame: FrameType) -> None:
        """Keep the *frame* of a generator that runs."""
        self._frame = frame
        self._runner = _runner()
        self._site = f"{frame.f_code.co_filename}:{frame.f_lineno}"

    def wrote(self, datastore: str) -> None:
        """Count, and log once, a write that enters while the generator is not running.

        Its caller makes it: whatever works for the generator runs in another thread or task.
        """
        if self._frame.f_back is not None or self._runner != _runner():
            return
        count("generator_scope", datastore)
        message = (
            "%s: a write to %r enters the scope that a generator opened at %s and holds over a "
            "yield: its caller's context has it until the generator goes on"
        )
        log_once(
            "generator_scope", datastore, self._site, message, call_site(), datastore, self._site
        )


def holder(frame: FrameType) -> Holder | None:
    """The generator that opens a scope by ``with`` in *frame*; None for any other code.

    A generator that :mod:`contextlib` made a context manager is none: its caller's block is meant.
    """
    if not frame.f_code.co_flags & _GENERATOR and frame.f_globals.get("__name__") != _CONTEXTLIB:
        return None  # Nearly always.
    found = _beyond_contextlib(frame)
    while found is not None and found.f_code.co_flags & _GENERATOR:
        driver = found.f_back
        if driver is None or _is_of(driver, *_FIXTURES):
            return None
        if not _is_of(driver, _CONTEXTLIB):
            return Holder(found)
        found = _beyond_contextlib(driver)
    return None


def _beyond_contextlib(frame: FrameType | None) -> FrameType | None:
    while frame is not None and _is_of(frame, _CONTEXTLIB):
        frame = frame.f_back
    return frame


def _is_of(frame: FrameType, *packages: str) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in packages


def _runner() -> tuple[int, int]:
    """The thread and the task that run now."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:  # noqa: SLF001 - as asyncio does
        return threading.get_ident(), 0
    return threading.get_ident(), id(asyncio.current_task())
