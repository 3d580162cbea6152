"""The library, with automatic barriers: no read of the application says that it waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import antipode

from ._none import Unprotected

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.post_notification._storage import Face, Place

    from ._none import Knobs


class Auto(Unprotected):
    """Every read of the store's own client waits for what the notification depends on."""

    face: ClassVar[Face] = "client"

    def __init__(self, client: Callable[[Place], Any], knobs: Knobs) -> None:
        """Configure this process: as long as an explicit barrier may wait."""
        antipode.configure(barriers="auto", auto_timeout=knobs.timeout_s)
        super().__init__(client, knobs)


class AutoShimmed(Auto):
    """For a store whose only client is the library's own."""

    face: ClassVar[Face] = "shim"
