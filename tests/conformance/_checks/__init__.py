"""What holds of each vector, by its level and its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import barriers, calls, codec, headers, stores

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.conformance._agents import Answers
    from tests.conformance._vectors import Vector

CHECKS: dict[str, Mapping[str, Callable[[Answers, Vector], None]]] = {
    "C1-calls": calls.KINDS,
    "golden/v1": codec.GOLDEN,
    "L1-codec": codec.CODEC,
    "L2-algebra": codec.ALGEBRA,
    "L3-headers": headers.KINDS,
    "L4-automatic": barriers.KINDS,
    "L4-barrier": barriers.KINDS,
    "L4-guard": barriers.GUARDS,
    "S1-positions": stores.KINDS,
    "S2-commands": stores.KINDS,
    "S3-stored": stores.KINDS,
}


def hold(agent: Answers, vector: Vector) -> None:
    """Fail where *vector* does not hold of what *agent* answers, or nothing checks its kind."""
    kinds = CHECKS.get(vector.level, {})
    assert vector.kind in kinds, f"nothing checks the kind of {vector}"
    kinds[vector.kind](agent, vector)
