"""The extras with the newest releases of their clients, whatever this environment has of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest

from ._extras import Extras, wheel, works

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["wheel"]

pytestmark = pytest.mark.timeout(300)


class TestNewest(Extras):
    """What a user gets today."""

    oldest: ClassVar[bool] = False

    def test_embedded(self, wheel: Path, tmp_path: Path) -> None:
        """The embedded store needs nothing."""
        python = self.alone(wheel, "embedded", tmp_path / "venv")
        works(python, "embedded", str(tmp_path / "posts.db"))
