"""Many sequences, one after the other."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from ._sequences import sequence
from ._shrink import shrink

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._pair import Difference, Pair

#: After so many differences the rest is likely to be more of the same.
MOST = 20


class Run(NamedTuple):
    """What came of it."""

    sequences: int
    families: Counter[str]
    differences: dict[int, Difference]
    seconds: float


def run(
    pair: Pair,
    names: list[str],
    seeds: range,
    *,
    seconds: float = float("inf"),
    most: int = MOST,
    report: Callable[[int, Run], None] = lambda _, __: None,
) -> Run:
    """Compare the sequences of *seeds*, until *most* differ, time is up, or somebody interrupts.

    Args:
        pair: who is asked.
        names: the families to draw from.
        seeds: of the sequences.
        seconds: how long.
        most: after how many differences to stop.
        report: is called after each, with the seed and what came of all so far.
    """
    began_s = time.monotonic()
    families: Counter[str] = Counter()
    found: dict[int, Difference] = {}
    done = Run(0, families, found, 0.0)
    try:
        for nth, seed in enumerate(seeds, 1):
            made = sequence(seed, names)
            if (different := pair.compare(made)) is not None:
                found[seed] = shrink(different, pair.compare)
            families[" ".join(filter(None, (made[0]["op"], made[0].get("kind"))))] += 1
            done = Run(nth, families, found, time.monotonic() - began_s)
            report(seed, done)
            if done.seconds > seconds or len(found) >= most:
                break
    except KeyboardInterrupt:
        pass
    return done


def described(found: Difference, left: str, right: str) -> str:
    """A difference for people: the requests, as lines for an agent, and both answers."""
    lines = [f"differs at {found.where or 'the whole answer'} of request {found.nth + 1}:"]
    for number, request in enumerate(found.sequence[: found.nth + 1], 1):
        lines.append(json.dumps({"id": number, **request}))
    lines += [f"{left}: {json.dumps(found.left)}", f"{right}: {json.dumps(found.right)}"]
    return "\n  ".join(lines)
