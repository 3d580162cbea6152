"""What is measured: cells, each of which compares variants in turns at one rate and think time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from benchmarks.train_ticket._variants import VariantName

GUARDED: Final[tuple[VariantName, ...]] = ("answer", "look-up", "automatic")
COMPARED: Final[tuple[VariantName, ...]] = ("baseline", *GUARDED)
#: What costs are compared with, and what they are of.
COSTS: Final[tuple[VariantName, ...]] = ("baseline", "propagation", *GUARDED)
#: By how much replicas are late in two regions.
LAG_MS: Final = 50.0
#: In the costs users think for so long that every barrier finds everything visible.
VISIBLE_MS: Final = 200.0
#: What a start of all services and stores takes on two quiet cores, the warm-up included, and what
#: ends a block.
START_S, SETTLE_S = 90.0, 1.0
#: Cancels a second of the warm-up.
WARM_UP_RATE: Final = 40.0


@dataclass(frozen=True, slots=True)
class Cell:
    """One comparison.

    Attributes:
        name: of the cell, and of the file that keeps it.
        part: of the benchmark: ``proof``, ``think``, ``costs``, ``rates`` or ``burst``.
        regions: 1 or 2.
        variants: that take turns.
        rate: cancels a second.
        think_ms: before the look-up.
        cancels: in a block.
        blocks: turns of each variant.
        watched: whether an observer polls for refunds, which takes processor time of a store.
    """

    name: str
    part: str
    regions: int
    variants: tuple[VariantName, ...]
    rate: float
    think_ms: float
    cancels: int
    blocks: int
    watched: bool = True

    @property
    def expected_s(self) -> float:
        """How long it takes on two quiet cores, about."""
        # Beyond saturation the services set the pace.
        block_s = self.cancels / min(self.rate, 80.0) + self.think_ms / 1000 + SETTLE_S
        return len(self.variants) * self.blocks * block_s


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured.

    Attributes:
        name: ``full`` or ``quick``.
        proofs: cancels of each variant that show 0 violations, in five blocks.
        proof_rate: of these, a second.
        thinks_ms: think times of the sweep.
        think_cancels: at each of them.
        cost_blocks: turns in which costs are measured.
        cost_cancels: in each of them.
        rates: cancels a second of Figure 9.
        rate_s: for how long each rate is kept.
        burst: cancels that come at once, to find what saturates the services.
        warm_up: cancels of each variant before anything, in each region setting.
    """

    name: str
    proofs: int
    proof_rate: float
    thinks_ms: tuple[float, ...]
    think_cancels: int
    cost_blocks: int
    cost_cancels: int
    rates: tuple[float, ...]
    rate_s: float
    burst: int
    warm_up: int


FULL: Final = Size(
    "full", 3000, 30, (5, 10, 25, 50, 100, 200), 300, 10, 200, (20, 40, 60, 80, 100, 120, 150),
    10, 400, 500,
)  # fmt: skip
QUICK: Final = Size("quick", 300, 30, (10, 50, 200), 60, 5, 50, (20, 60, 100), 4, 120, 150)
_BLOCKS = 5
_BURST_RATE = 1000.0


def plan(size: Size) -> tuple[Cell, ...]:
    """The cells of a size: those with the same number of regions follow each other."""
    found = [cell for regions in (2, 1) for cell in _violations(size, regions)]
    costs = Cell(
        "costs", "costs", 1, COSTS, 20, VISIBLE_MS, size.cost_cancels, size.cost_blocks,
        watched=False,
    )  # fmt: skip
    rates = (
        Cell(f"rate-{rate:g}", "rates", 1, COMPARED, rate, 0, max(1, round(rate * size.rate_s)), 1)
        for rate in size.rates
    )
    burst = Cell(
        "burst", "burst", 1, COSTS, _BURST_RATE, 0, size.burst, size.cost_blocks, watched=False
    )
    return (*found, costs, *rates, burst)


def _violations(size: Size, regions: int) -> tuple[Cell, ...]:
    """How often refunds are missing: many times at once after the answer, then at think times."""
    proof = Cell(
        f"proof-{regions}", "proof", regions, COMPARED, size.proof_rate, 0,
        size.proofs // _BLOCKS, _BLOCKS,
    )  # fmt: skip
    sweep = (
        Cell(
            f"think-{regions}-{think_ms:g}", "think", regions, COMPARED, size.proof_rate,
            think_ms, size.think_cancels, 1,
        )
        for think_ms in size.thinks_ms
    )  # fmt: skip
    return (proof, *sweep)
