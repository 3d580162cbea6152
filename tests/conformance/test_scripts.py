"""Level 4 in this process, without an agent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agent import _scripts
from tests.conformance import _vectors as vectors
from tests.conformance._scripts import check


@pytest.mark.parametrize(
    "script",
    [*vectors.cases("L4-barrier", "scripts"), *vectors.cases("L4-automatic", "scripts")],
)
def test_script(script: dict[str, Any]) -> None:
    """Every barrier and every read ends as, and when, the script says."""
    check(script, _scripts.run(script))
