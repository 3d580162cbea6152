"""Level 4, in this process: one read that is held back, without a server and without a clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance import _vectors as vectors
from tests.conformance._agents import InProcess
from tests.conformance._checks import hold

if TYPE_CHECKING:
    from tests.conformance._vectors import Vector


@vectors.replayed("L4-guard")
def test_vector(vector: Vector) -> None:
    """The guard asks, waits, sends and ends in the order that the vector gives."""
    hold(InProcess(), vector)
