"""Fixtures of single stores that end-to-end tests use too."""

from __future__ import annotations

from tests.integration.mysql.conftest import posts

__all__ = ["posts"]
