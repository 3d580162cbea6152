"""What holds of names of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance._agents import asked

if TYPE_CHECKING:
    from tests.conformance._agents import Answers
    from tests.conformance._vectors import Vector


def call(agent: Answers, vector: Vector) -> None:
    """A name, a digest or the code of an error, to the letter."""
    assert asked(agent, "call", kind=vector.kind, given=vector.content) == vector.content["is"]


KINDS = {"digests": call, "headers": call, "identities": call, "nested": call}
