"""A plugin of pytest: it writes the outcome of each test into the file of ``SUITE_OUTCOMES``.

With ``SUITE_DRIVER`` each test runs in a scope of its own.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import antipode

if TYPE_CHECKING:
    from collections.abc import Generator

# Some suites replace the environment while a test runs.
_TOLD = Path(os.environ["SUITE_OUTCOMES"])
_IN_SCOPES = "SUITE_DRIVER" in os.environ
_found: dict[str, str] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """Run the test, in a scope where that is asked for."""
    with antipode.scope() if _IN_SCOPES else nullcontext():
        return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how a part of a test ended; a part that failed is what counts."""
    if report.when == "call" or report.outcome != "passed":
        before = _found.get(report.nodeid)
        _found[report.nodeid] = "failed" if "failed" in (before, report.outcome) else report.outcome


def pytest_sessionfinish() -> None:
    """Write what was found."""
    lines = (f"{outcome} {name}\n" for name, outcome in _found.items())
    _TOLD.write_text("".join(lines), encoding="utf-8")
