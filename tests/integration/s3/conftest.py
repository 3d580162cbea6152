"""Fixtures of the tests of S3, over an emulator."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.s3._regions import Regions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import S3Topology


@pytest.fixture
def regions(antipode_s3: S3Topology) -> Iterator[Regions]:
    """Two regions and clients of them, which end with the test."""
    with ExitStack() as stack:
        yield Regions(antipode_s3, stack)


@pytest.fixture
def client(regions: Regions) -> Any:
    """An instrumented client of the first region."""
    return regions.instrumented(regions.client(regions.home))
