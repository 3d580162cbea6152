"""What tests of rules share."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pytest

import antipode

if TYPE_CHECKING:
    from collections.abc import Iterator

_STORES = ("redis", "mysql", "postgresql", "mongodb", "rabbitmq")


@pytest.fixture
def covered() -> Iterator[None]:
    """Whatever a test covers is undone."""
    yield
    antipode.teardown()
    for store in _STORES:
        import_module(f"antipode_shims.{store}").uninstrument()
