"""A run: every variant cancels in turns, and what its users saw is judged."""

from __future__ import annotations

import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.judge import Trial, rotated, shares

from ._build import build
from ._customers import cancel_all
from ._money import Money, count
from ._observer import Observer, Sight
from ._services import Services
from ._stores import Order, started
from ._variants import VARIANTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ._customers import Seen
    from ._services import Edge
    from ._stores import Stores
    from ._variants import VariantName

_USERS = 10
_LEAST_CENTS, _MORE_CENTS = 5_000, 97


@dataclass(frozen=True, slots=True)
class Options:
    """What one run is told.

    Attributes:
        variants: that are compared.
        cancels: measured ones of each variant.
        blocks: turns in which each variant makes them.
        warmup: cancellations of each variant that are left out.
        rate: cancellations a second, on average.
        think_ms: for how long a user waits before the look-up.
        lag_ms: by how much replicas are late, where there are two regions.
        regions: 1 or 2.
        seed: of the times.
        json_path: for every observation.
    """

    variants: tuple[VariantName, ...]
    cancels: int
    blocks: int
    warmup: int
    rate: float
    think_ms: float
    lag_ms: float
    regions: int
    seed: int
    json_path: Path | None


@dataclass(slots=True)
class Outcome:
    """What became of one variant.

    Attributes:
        variant: which.
        seen: what its users saw, in all blocks.
        sights: when the refund of each became visible where they look.
        money: counted at the end, the warm-up included.
    """

    variant: VariantName
    seen: list[Seen] = field(default_factory=list)
    sights: list[Sight] = field(default_factory=list)
    money: Money | None = None

    def trials(self) -> Iterator[Trial]:
        """Each look-up, as the judge takes it."""
        for seen, sight in zip(self.seen, self.sights, strict=True):
            yield Trial(
                strategy=self.variant,
                case="refund",
                answered=seen.answered,
                right=seen.refunded,
                told=sight.seen_s > 0,
                exposed=seen.looked_at_s < sight.absent_s or self._waited_before(seen, sight),
                early=seen.refunded and seen.shown_at_s < sight.absent_s,
            )

    def _waited_before(self, seen: Seen, sight: Sight) -> bool:
        """Whether the answer to the cancellation waited, so that the look-up needed not."""
        sent_s = seen.looked_at_s - seen.cancel_s
        return self.variant == "answer" and sent_s < sight.absent_s

    def windows_ms(self) -> list[float]:
        """For how long after its cancellation was answered each refund was not visible."""
        pairs = zip(self.seen, self.sights, strict=True)
        return [
            max(0.0, sight.seen_s - seen.looked_at_s) * 1000
            for seen, sight in pairs
            if seen.cancelled and sight.seen_s
        ]

    def late_ms(self) -> list[float]:
        """How long after its refund was visible each look-up was answered that waited for it."""
        pairs = zip(self.seen, self.sights, strict=True)
        return [
            (seen.shown_at_s - sight.seen_s) * 1000
            for seen, sight in pairs
            if seen.refunded and seen.looked_at_s < sight.absent_s
        ]


def orders_of(name: str, number: int) -> list[Order]:
    """Orders of a few users, no two of a run alike."""
    run = os.urandom(4).hex()
    return [
        Order(f"{name}-{run}-{it}", f"user-{it % _USERS}", _LEAST_CENTS + it % _MORE_CENTS * 5)
        for it in range(number)
    ]


def run(options: Options, said: Callable[[str], None]) -> list[Outcome]:
    """Start everything, measure, and stop it.

    Raises:
        TrainTicketError: something is missing or did not start.
    """
    for library in sorted({VARIANTS[it].library for it in options.variants}):
        said(f"building the services {'with' if library else 'without'} the library")
        build(library=library)
    with tempfile.TemporaryDirectory(prefix="train-ticket-") as folder:
        said("starting MySQL, MongoDB, RabbitMQ and Redis")
        with started(two_regions=options.regions == 2) as stores:
            said("starting the services")
            chosen = [VARIANTS[it] for it in options.variants]
            with Services(stores, Path(folder), chosen) as services:
                return measure(options, stores, services.edges, said)


def measure(
    options: Options, stores: Stores, edges: dict[str, Edge], said: Callable[[str], None]
) -> list[Outcome]:
    """Let users of each variant cancel, in turns; the variants in the order of the options."""
    counts = shares(options.cancels, options.blocks)
    orders = {it: orders_of(it, options.warmup + options.cancels) for it in options.variants}
    stores.seed([order for each in orders.values() for order in each])
    if stores.two_regions:
        stores.set_lag(options.lag_ms)
    outcomes = {it: Outcome(it) for it in options.variants}
    left = {it: iter(each) for it, each in orders.items()}
    for name in options.variants:
        said(f"warming up: {name}")
        _cancel(options, stores, edges[name], _take(left[name], options.warmup), block=-1)
    for block, number in enumerate(counts):
        for name in rotated(options.variants, block):
            said(f"block {block + 1} of {options.blocks}: {name}")
            taken = _take(left[name], number)
            seen, sights = _cancel(options, stores, edges[name], taken, block=block)
            outcomes[name].seen += seen
            outcomes[name].sights += sights
    for name, outcome in outcomes.items():
        outcome.money = count(stores, edges[name].database, orders[name])
    return list(outcomes.values())


def _cancel(
    options: Options, stores: Stores, edge: Edge, orders: Sequence[Order], *, block: int
) -> tuple[list[Seen], list[Sight]]:
    """Cancel *orders*, and watch their refunds until each is visible."""
    if not orders:
        return [], []
    with Observer(stores.mongodb_url(reads=True), edge.database) as observer:
        seen = cancel_all(
            edge,
            orders,
            observer,
            rate=options.rate,
            think_ms=options.think_ms,
            seed=options.seed + block,
        )
        observer.settle()
        return seen, [observer.sight(it.id) for it in orders]


def _take(orders: Iterator[Order], number: int) -> list[Order]:
    return [next(orders) for _ in range(number)]


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Everything that was observed of a variant."""
    return {
        "variant": outcome.variant,
        "money": outcome.money and asdict(outcome.money),
        "cancels": [
            {**asdict(seen), **asdict(sight)}
            for seen, sight in zip(outcome.seen, outcome.sights, strict=True)
        ],
    }
