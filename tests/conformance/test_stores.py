"""Levels S1 to S3, in this process: what shims decide without their stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance import _vectors as vectors
from tests.conformance._agents import InProcess
from tests.conformance._checks import hold

if TYPE_CHECKING:
    from tests.conformance._vectors import Vector


@vectors.replayed("S1-positions", "S2-commands", "S3-stored")
def test_vector(vector: Vector) -> None:
    """A shim comes to what the vector says."""
    hold(InProcess(), vector)
