"""The extras with the oldest releases of their clients that pyproject.toml promises."""

from __future__ import annotations

from typing import ClassVar

import pytest

from ._extras import Extras, wheel

__all__ = ["wheel"]

pytestmark = pytest.mark.timeout(300)


class TestOldest(Extras):
    """What a user may have."""

    oldest: ClassVar[bool] = True
