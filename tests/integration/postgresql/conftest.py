"""Fixtures of the tests of PostgreSQL."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import PostgreSQLTopology
    from tests.integration.postgresql._clients import Clients


@pytest.fixture
def clients(antipode_postgresql: PostgreSQLTopology) -> Iterator[Clients]:
    """A primary and a standby with the table of posts, and connections to them."""
    from tests.integration.postgresql._clients import Clients

    with contextlib.closing(Clients(antipode_postgresql)) as made:
        yield made
