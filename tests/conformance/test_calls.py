"""Level C1, in this process: names of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance import _vectors as vectors
from tests.conformance._agents import InProcess
from tests.conformance._checks import hold

if TYPE_CHECKING:
    from tests.conformance._vectors import Vector


@vectors.replayed("C1-calls")
def test_vector(vector: Vector) -> None:
    """A name, a digest and a header are what the vector says, or the code of the error is."""
    hold(InProcess(), vector)
