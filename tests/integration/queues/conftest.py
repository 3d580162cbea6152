"""What tests of queues share."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.integration.postgresql.conftest import clients

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["clients"]


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """A worker that runs in the test's process handles its signals no longer than the test."""
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)
