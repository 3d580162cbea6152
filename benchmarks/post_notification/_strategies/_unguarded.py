"""The library without its barrier: the lineage travels, and nobody waits for what it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ._none import Unprotected

if TYPE_CHECKING:
    from benchmarks.post_notification._storage import Face


class Unguarded(Unprotected):
    """What is left of `Barrier` when the call is forgotten: a dry run finds the place."""

    face: ClassVar[Face] = "shim"
