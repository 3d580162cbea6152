"""What tests of doctor share."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode.diagnostics import noting_clients

if TYPE_CHECKING:
    from collections.abc import Iterator

_STORES = ("redis", "mysql", "postgresql", "mongodb", "rabbitmq")


@pytest.fixture(autouse=True)
def _noted() -> Iterator[None]:
    """As the program does it; what a test covers is undone."""
    with noting_clients():
        yield
    antipode.teardown()
    for store in _STORES:
        import_module(f"antipode_shims.{store}").uninstrument()
