"""Fixtures of the tests of events that stores emit."""

from __future__ import annotations

from tests.integration.dynamodb.conftest import regions
from tests.integration.postgresql.conftest import clients

__all__ = ["clients", "regions"]
