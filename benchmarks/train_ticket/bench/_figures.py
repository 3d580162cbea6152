"""What the measured cells come to: shares, costs and their intervals, and the verdict."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from benchmarks._statistics import percentile
from benchmarks.judge import FAILED, SHOWN, Trial, Verdict, judge, over_blocks

from ._plan import GUARDED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks._statistics import Interval
    from benchmarks.train_ticket._variants import VariantName

    from ._measure import Block
    from ._run import Found

#: The share of the baseline's throughput below which it counts as less.
THROUGHPUT = 0.95


@dataclass(frozen=True, slots=True)
class Missing:
    """Look-ups of a variant that showed no refund.

    Attributes:
        number: of them.
        of: answered look-ups.
    """

    number: int
    of: int

    @property
    def percent(self) -> float:
        """Their share."""
        return 100 * self.number / self.of if self.of else 0.0


def missing(blocks: Sequence[Block], variant: VariantName) -> Missing:
    """How many look-ups of a variant showed no refund."""
    trials = [it for block in of(blocks, variant) for it in block.trials]
    answered = [it for it in trials if it[0] == "1"]
    return Missing(sum(it[1] == "0" for it in answered), len(answered))


def of(blocks: Sequence[Block], variant: VariantName) -> list[Block]:
    """The blocks of a variant."""
    return [it for it in blocks if it.variant == variant]


def figure(
    blocks: Sequence[Block], variant: VariantName, value: Callable[[Block], float]
) -> Interval | None:
    """The mean of a figure over the blocks of a variant, with its interval."""
    return over_blocks(value(it) for it in of(blocks, variant))


def ratio(
    blocks: Sequence[Block],
    variant: VariantName,
    base: VariantName,
    value: Callable[[Block], float],
) -> Interval | None:
    """How many times the figure of *base* that of a variant is, block by block."""
    bases = {it.block: value(it) for it in of(blocks, base)}
    pairs = [(value(it), bases.get(it.block, 0.0)) for it in of(blocks, variant)]
    return over_blocks(one / other for one, other in pairs if other)


def cpu_us(block: Block) -> float:
    """Processor time of all services for a cancel."""
    return sum(block.cpu_us.values())


def cpu_us_of(service: str) -> Callable[[Block], float]:
    """Processor time of one service for a cancel."""
    return lambda block: block.cpu_us.get(service, 0.0)


def throughput(block: Block) -> float:
    """Cancels a second."""
    return block.throughput


def both_ms(block: Block) -> float:
    """The median of a cancellation and that of a look-up."""
    return sum(median(it) if it else 0.0 for it in (block.cancel_ms, block.look_up_ms))


def pooled(
    blocks: Sequence[Block], variant: VariantName, values: Callable[[Block], list[float]]
) -> list[float]:
    """The values of all blocks of a variant, in ascending order."""
    return sorted(value for it in of(blocks, variant) for value in values(it))


def quantile(ordered: Sequence[float], percent: float) -> float | None:
    """A percentile; None where there are no values."""
    return percentile(ordered, percent) if ordered else None


def peak(rates: Sequence[Found]) -> Found | None:
    """The highest rate at which the baseline keeps up: answers come as fast as requests."""
    kept_up = [
        it for it in rates if all(b.throughput >= 0.8 * it.cell.rate for b in _base(it.blocks))
    ]
    return max(kept_up, key=lambda it: it.cell.rate, default=None)


def _base(blocks: Sequence[Block]) -> list[Block]:
    return of(blocks, "baseline")


def verdict(found: Sequence[Found]) -> Verdict:
    """What the whole run shows: of what users saw, and of the money."""
    wrong = [f"{it.cell.name}, {block.variant}" for it in found for block in it.blocks
             if not block.money_adds_up]  # fmt: skip
    if wrong:
        return Verdict(FAILED, f"FAILED: the money does not add up ({wrong[0]})")
    violated = [
        f"{it.cell.name}, {name}"
        for it in found
        for name in GUARDED
        if missing(it.blocks, name).number
    ]
    judged = judge(_trials(found), guarded=GUARDED, unguarded="baseline", guard="a barrier")
    if violated and judged.status != FAILED:
        return Verdict(FAILED, f"FAILED: a refund was missing with a barrier ({violated[0]})")
    return Verdict(SHOWN, f"{judged.said}; the money adds up") if not judged.status else judged


def _trials(found: Sequence[Found]) -> Iterator[Trial]:
    for it in found:
        if it.cell.part != "proof":
            continue
        for block in it.blocks:
            for digits in block.trials:
                bits = (digit == "1" for digit in digits)
                yield Trial(block.variant, f"{it.cell.regions} regions", *bits)


def services(blocks: Sequence[Block]) -> list[str]:
    """The names of all services."""
    names: defaultdict[str, None] = defaultdict()
    for block in blocks:
        names.update(dict.fromkeys(sorted(block.cpu_us)))
    return sorted(names)
