"""The fixture that holds what was counted to its budget, or moves the budget."""

from __future__ import annotations

import math
import os
import sys
from typing import TYPE_CHECKING

import pytest

from antipode._telemetry import telemetry
from tests.budgets._file import BudgetFile, NotApplicableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.budgets._file import Counted

WRITE = "--write-budgets"
REASON = "--budgets-reason"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make budgets` gives these."""
    group = parser.getgroup("budgets of counts")
    group.addoption(WRITE, action="store_true", help="write what is counted into tests/budgets")
    group.addoption(REASON, default="", help="why counts rise, beside each that does")


#: What is counted here, as files of other languages are named by theirs.
PYTHON = "python-{}.{}".format(*sys.version_info)


@pytest.fixture(autouse=True)
def _no_telemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    """No SDK is looked for meanwhile, which is done by the clock."""
    monkeypatch.setattr(telemetry, "_recorded", False)
    monkeypatch.setattr(telemetry, "_ask_again_s", math.inf)


@pytest.fixture
def hold(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Hold what was counted to the file of a language and version: this Python's by default.

    What the file was not counted with is skipped, and fails in CI, where all releases are locked.
    """

    def hold(counted: Counted, name: str = PYTHON) -> None:
        budgets = BudgetFile(name)
        if request.config.getoption(WRITE, default=False):
            budgets.move(counted, request.config.getoption(REASON))
            return
        try:
            budgets.compare(counted)
        except NotApplicableError as error:
            if os.environ.get("CI") == "true":
                pytest.fail(f"{error}; in CI that is a failure", pytrace=False)
            pytest.skip(str(error))

    return hold
