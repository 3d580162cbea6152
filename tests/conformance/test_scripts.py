"""Level 4, in this process: barriers and reads on a virtual clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance import _vectors as vectors
from tests.conformance._agents import InProcess
from tests.conformance._checks import hold

if TYPE_CHECKING:
    from tests.conformance._vectors import Vector


@vectors.replayed("L4-barrier", "L4-automatic")
def test_vector(vector: Vector) -> None:
    """Every barrier and every read ends as, and when, the script says."""
    hold(InProcess(), vector)
