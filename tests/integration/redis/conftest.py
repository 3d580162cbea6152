"""Fixtures of the tests of Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def plain(make: Callable[..., Any]) -> Any:
    """A Redis client without the library."""
    return make(plain=True)
