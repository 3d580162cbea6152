"""Where an application is while a dry run observes: its lines, and the test that runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .records import encoded

if TYPE_CHECKING:
    from types import CodeType

    Line = tuple[CodeType, int]

_RUNNING_TEST = "PYTEST_CURRENT_TEST"
_MOST = 10_000


class Place(NamedTuple):
    """A line of the application's code.

    Attributes:
        file: relative to the working directory where it is below it.
        line: from 1.
        text: as records have it.
    """

    file: str
    line: int
    text: str


class Places:
    """The lines that were met, found by their code."""

    def __init__(self) -> None:
        """None yet; files are named from the working directory of now."""
        self._here = _working_directory()
        self._met: dict[Line, Place] = {}

    def of(self, line: Line) -> Place:
        """What records call *line*."""
        known = self._met.get(line)
        if known is None:
            if len(self._met) >= _MOST:
                self._met.clear()  # Code that was made while it ran would be kept for ever.
            known = self._met[line] = self._found(*line)
        return known

    def _found(self, code: CodeType, line: int) -> Place:
        file = code.co_filename
        if file.startswith(self._here):
            file = file[len(self._here) :].replace(os.sep, "/")
        place = {"file": file, "line": line, "function": code.co_name}
        return Place(file, line, encoded(place))


def _working_directory() -> str:
    """With a separator after it; where it was removed, what no file lies below."""
    try:
        return f"{Path.cwd()}{os.sep}"
    except FileNotFoundError:
        return "\0"


def running_test() -> str | None:
    """The test that runs; in a process that is not pytest's own, the one that started it."""
    in_tests = "pytest" in sys.modules
    return _without_phase(os.environ.get(_RUNNING_TEST)) if in_tests else _STARTED_BY


def _without_phase(test: str | None) -> str | None:
    return None if test is None else test.rpartition(" (")[0] or test


#: The test that started this process.
_STARTED_BY = _without_phase(os.environ.get(_RUNNING_TEST))
