"""Calls within a dry run and outside of it, by turns in one process."""

from __future__ import annotations

from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol

from antipode._dry_run.dry_run import DryRun
from antipode._runtime import observers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Turn(Protocol):
    """Makes calls happen within the dry run or outside of it."""

    def __call__(self, call: Callable[[int], object], *, dry: bool) -> Callable[[int], object]:
        """*call*, within if *dry*."""
        ...


@contextmanager
def observing() -> Iterator[Turn]:
    """A dry run that writes its records down, and throws them away at the end."""
    with TemporaryDirectory(prefix="antipode-overhead-") as records:
        observer = DryRun(records, None)

        def turn(call: Callable[[int], object], *, dry: bool) -> Callable[[int], object]:
            def run(number: int) -> None:
                # As configure() does, which would begin another file each time.
                observers.dry_run = observer if dry else None
                call(number)
                # Requests begin and end in the dry run, whichever call was the last.
                observers.dry_run = observer

            return run

        observers.dry_run = observer
        try:
            yield turn
        finally:
            observers.dry_run = None
            observer.close()
