"""Very many requests at once over mixed transports: no answer holds what is not its own."""

from __future__ import annotations

import os
import sys

import pytest

from ._exchange import exchange, services

pytestmark = pytest.mark.timeout(3600)

#: ``make load`` has a million of them.
RESPONSES = int(os.environ.get("ANTIPODE_LOAD_RESPONSES", "4000"))


def test_responses_hold_their_own() -> None:
    """A thousand requests at a time, whose calls branch, fail and are given up: each has its own.

    The lineage of each is what it wrote and what its own call wrote, nothing of another's, and
    nothing less; where a call was given up it says that something may be missing.
    """
    with services() as ports:
        done = exchange(RESPONSES, ports, seed=6)
    sys.stdout.write(f"{done}\n")
    assert not done.wrong, "\n".join(done.wrong)
    assert done.ended.total() == RESPONSES
