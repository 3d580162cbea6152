"""The same with one call that covers everything, and the kill switch: nothing is in place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import _fastapi, _fastapi_setup

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

__all__ = ["calling", "serve"]


def serve(*, antipode: bool) -> AbstractContextManager[int]:
    """The application with ``ANTIPODE_DISABLED=true``."""
    os.environ["ANTIPODE_DISABLED"] = "true"
    return _fastapi_setup.serve(antipode=antipode)


def calling(port: int, *, antipode: bool) -> AbstractContextManager[Callable[[], None]]:
    """The same request to either side, which neither answers with a lineage."""
    del antipode
    return _fastapi.calling(port, antipode=False)
