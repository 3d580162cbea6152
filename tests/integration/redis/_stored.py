"""Causes, and what a request learns, for the tests of lineages beside Redis keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import antipode
from antipode import Lineage, WriteId

if TYPE_CHECKING:
    from collections.abc import Callable

CAUSE = WriteId("users", "log-1", 7, 480_000)
OTHER = WriteId("carts", "log-2", 9, 480_001)
KEYS = ["k:*"]


def under(cause: WriteId | None, work: Callable[[], Any]) -> Any:
    """Do *work* as a request that depends on *cause*."""
    with antipode.scope(Lineage([cause] if cause else [])):
        return work()


def found(work: Callable[[], Any]) -> Lineage:
    """What a request that starts with nothing depends on once it has done *work*."""
    with antipode.scope() as reader:
        work()
        return reader.lineage


def causes(lineage: Lineage) -> set[WriteId]:
    """What is of other stores."""
    return {write for write in lineage if write.datastore != "posts"}
