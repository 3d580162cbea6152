"""Levels 1 and 2, and released values, in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance import _vectors as vectors
from tests.conformance._agents import InProcess
from tests.conformance._checks import hold

if TYPE_CHECKING:
    from tests.conformance._vectors import Vector


@vectors.replayed("L1-codec", "L2-algebra", "golden/v1")
def test_vector(vector: Vector) -> None:
    """Texts, lineages and what is made of them are as each vector has them."""
    hold(InProcess(), vector)
