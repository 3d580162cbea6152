"""What the published numbers say of requests, and what has to be assumed beyond them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Published: more than half of the requests call 5 or more unique stateful services, 10 % more than
#: 20; more than 20 % make 20 or more calls to stateful services (paper, section 2.1, figure 1). For
#: the median of calls no number is published: 8 is the one that gives calls the same spread.
STORES_MEDIAN, STORES_TAIL = 5.0, (20.0, 0.10)
CALLS_MEDIAN, CALLS_TAIL = 8.0, (20.0, 0.20)
#: 80 % of 17,000 microservices are stateful (paper, section 2.1).
STORES_IN_ALL = 13_600
#: No request is larger: the tail of a log-logistic distribution has no end. Counted where it cuts.
CALLS_AT_MOST = 2_000

TAILS = ("lognormal", "log-logistic")
#: What names a log: a UUID, 40 hexadecimal digits, `set.term`.
LOGS = ("mysql", "redis", "mongodb")


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What no published number says. Shares are from 0 to 1.

    Attributes:
        writes: share of the calls of stateful services that are dependencies.
        tail: of calls and of unique services, through the published percentiles.
        keyed: share of the stores that have an entry for each key, instead of one for a log.
        services_a_log: how many stateful services share one log.
        mysql: share of the logs that a UUID names, as MySQL's.
        redis: share of the logs that 40 hexadecimal digits name, as those of Redis; MongoDB has
            the rest.
        name_chars: length of a datastore's name.
        depth: mean depth of the tree of stateless services, a geometric distribution from 2.
        calls_a_service: mean of the calls of stateful services by a stateless one.
        parallel: share of the stateless services that call others concurrently, each with the
            lineage that there is before, and join what comes back.
        answers: whether answers bring back what was added.
    """

    writes: float = 0.3
    tail: str = "lognormal"
    keyed: float = 0.0
    services_a_log: int = 1
    mysql: float = 0.4
    redis: float = 0.3
    name_chars: int = 8
    depth: float = 4.5
    calls_a_service: float = 1.5
    parallel: float = 0.5
    answers: bool = True

    def __post_init__(self) -> None:
        for name in ("writes", "keyed", "mysql", "redis", "parallel"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                msg = f"{name} must be a share from 0 to 1: {share}"
                raise ValueError(msg)
        if self.mysql + self.redis > 1:
            msg = f"mysql and redis must be at most 1 together: {self.mysql} and {self.redis}"
            raise ValueError(msg)
        if self.tail not in TAILS:
            msg = f"tail must be one of {', '.join(TAILS)}: {self.tail!r}"
            raise ValueError(msg)
        for name, least in (
            ("services_a_log", 1),
            ("name_chars", 4),
            ("depth", 2),
            ("calls_a_service", 1),
        ):
            if not getattr(self, name) >= least:
                msg = f"{name} must be at least {least}: {getattr(self, name)}"
                raise ValueError(msg)

    def stores(self, rank: float) -> int:
        """How many unique stateful services the request of this rank calls.

        Args:
            rank: the share of requests that call fewer; over 0 and below 1.
        """
        return min(
            max(round(_quantile(self.tail, STORES_MEDIAN, *STORES_TAIL, rank)), 1), STORES_IN_ALL
        )

    def calls(self, rank: float) -> int:
        """How many calls of stateful services the request of this rank makes."""
        return max(round(_quantile(self.tail, CALLS_MEDIAN, *CALLS_TAIL, rank)), 1)

    def changed(self) -> dict[str, object]:
        """What differs from the default, by name."""
        default = Assumptions()
        names = (field.name for field in fields(self))
        return {
            name: getattr(self, name)
            for name in names
            if getattr(self, name) != getattr(default, name)
        }


#: The paper's worst case: all stateful operations are part of the dependency chain (section 7.4).
WORST = Assumptions(writes=1.0)


def _quantile(tail: str, median: float, value: float, above: float, rank: float) -> float:
    """The *rank* quantile of a distribution with this median; a share *above* exceeds *value*."""
    if tail == "lognormal":
        normal = NormalDist()
        sigma = math.log(value / median) / normal.inv_cdf(1 - above)
        return median * math.exp(sigma * normal.inv_cdf(rank))
    # Burr's distribution of type XII with one shape: log-logistic.
    shape = math.log((1 - above) / above) / math.log(value / median)
    odds: float = (rank / (1 - rank)) ** (1 / shape)
    return median * odds


def label(changed: Mapping[str, object]) -> str:
    """What a case changes of the default, for a person."""
    return ", ".join(f"{name} = {value}" for name, value in changed.items()) or "default"
