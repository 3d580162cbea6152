"""The same with everything that one call covers: frameworks, clients, threads and event loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _fastapi
from ._fastapi import calling

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = ["calling", "serve"]


def serve(*, antipode: bool) -> AbstractContextManager[int]:
    """The application; ``antipode.setup()`` where the library is there."""
    return _fastapi.serve(antipode=antipode, cover=setup)


def setup(_: Any) -> None:  # noqa: ANN401 - an application
    """Cover the process."""
    import antipode

    antipode.setup()
