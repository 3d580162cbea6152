"""Reads that automatic barriers let go although they may be stale, and what is counted of them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from antipode import Lineage, WriteId
from antipode.telemetry import Metric, metrics

if TYPE_CHECKING:
    from collections.abc import Iterator


def doubtful(datastore: str) -> tuple[Lineage, ...]:
    """What lets a read go at once: a mark, and a log that no server knows, which a poll says."""
    return (
        Lineage(incomplete=[(datastore, "in_doubt")]),
        Lineage([WriteId(datastore, "6ba7b810-9dad-11d1-80b4-00c04fd430c8", 5)]),
    )


@contextmanager
def served(datastore: str, by: int) -> Iterator[None]:
    """Within it, the count of reads that were answered stale grows *by* so much."""
    metric = Metric("served_stale", datastore)
    before = metrics().get(metric, 0)
    yield
    assert metrics().get(metric, 0) == before + by
