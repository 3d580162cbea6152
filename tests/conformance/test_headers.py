"""Level 3, in this process: headers, sessions, scopes, hosts and dry runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance import _vectors as vectors
from tests.conformance._agents import InProcess
from tests.conformance._checks import hold

if TYPE_CHECKING:
    from tests.conformance._vectors import Vector


@vectors.replayed("L3-headers")
def test_vector(vector: Vector) -> None:
    """What requests bring, take along and leave behind is as each vector has it."""
    hold(InProcess(), vector)
