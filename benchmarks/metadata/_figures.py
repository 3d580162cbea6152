"""What is counted of many requests, and can be added up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._trees import Request

#: A stateless service that calls so many others fans out (paper, section 4.1).
FANS_OUT = 5


def _histogram() -> Counter[int]:
    return Counter()


@dataclass(slots=True)
class Figures:
    """Histograms of some requests, and what they add up to.

    Attributes:
        calls: of stateful services, by request.
        stores: unique stateful services, by request.
        depth: of the tree of stateless services, by request.
        call_bytes: of the lineage's text with each call of a stateless service.
        answer_bytes: of the text in each answer.
        largest_bytes: of the largest text of each request.
        whole_bytes: of the lineage in the end of each request, without a bound.
        entries: of that lineage.
        parts: characters of its entries by what they say: name, position, log, framing.
        requests: how many.
        services: calls of stateless services, the first of each request included.
        fanning: how many of these call five services or more, stateful ones included.
        capped: requests that the distribution gave more calls than are simulated.
        texts: sent with calls and answers.
        shortened: texts that did not hold all entries.
        dropped: entries that were not in a text.
        shortened_requests: that had such a text.
        processor_s: of sending, without drawing requests.
    """

    calls: Counter[int] = field(default_factory=_histogram)
    stores: Counter[int] = field(default_factory=_histogram)
    depth: Counter[int] = field(default_factory=_histogram)
    call_bytes: Counter[int] = field(default_factory=_histogram)
    answer_bytes: Counter[int] = field(default_factory=_histogram)
    largest_bytes: Counter[int] = field(default_factory=_histogram)
    whole_bytes: Counter[int] = field(default_factory=_histogram)
    entries: Counter[int] = field(default_factory=_histogram)
    parts: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    services: int = 0
    fanning: int = 0
    capped: int = 0
    texts: int = 0
    shortened: int = 0
    dropped: int = 0
    shortened_requests: int = 0
    processor_s: float = 0.0

    def drawn(self, request: Request) -> None:
        """Count what a request is like."""
        self.requests += 1
        self.calls[request.calls] += 1
        self.stores[request.stores] += 1
        self.depth[request.depth] += 1
        self.services += len(request.services)
        self.fanning += sum(service.fan_out >= FANS_OUT for service in request.services)
        self.capped += request.capped

    def ended(self, text: str) -> None:
        """Count the text of all that a request depends on in the end."""
        self.whole_bytes[len(text)] += 1
        items = text.split("~")[1:]
        self.entries[len(items)] += 1
        for item in items:
            name, position, log = item.split(".", 2)
            self.parts["name"] += len(name) - 1
            self.parts["position"] += len(position)
            self.parts["log"] += len(log)
            self.parts["framing"] += len("k" + "." + "." + "~")

    def add(self, other: Figures) -> None:
        """Add the figures of other requests."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def summary(self) -> dict[str, Any]:
        """The figures, as they are written down."""
        entries = max(total(self.entries), 1)
        return {
            "requests": self.requests,
            "calls": _described(self.calls),
            "stores": _described(self.stores),
            "depth": spread(self.depth),
            "from_20_calls": share_from(self.calls, 20),
            "from_5_stores": share_from(self.stores, 5),
            "over_20_stores": share_from(self.stores, 21),
            "fanning": self.fanning / max(self.services, 1),
            "capped": self.capped,
            "call_bytes": spread(self.call_bytes),
            "answer_bytes": spread(self.answer_bytes),
            "largest_bytes": spread(self.largest_bytes),
            "whole_bytes": spread(self.whole_bytes),
            "entries": spread(self.entries),
            "entry_bytes": sum(self.parts.values()) / entries,
            "entry_parts": {part: count / entries for part, count in sorted(self.parts.items())},
            "texts": self.texts,
            "shortened": self.shortened,
            "dropped": self.dropped,
            "shortened_requests": self.shortened_requests,
            "processor_us_a_text": 1e6 * self.processor_s / max(self.texts, 1),
            "processor_us_a_request": 1e6 * self.processor_s / max(self.requests, 1),
        }


class Texts:
    """Counts the texts of one request (``_travel.Sizes``)."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures
        self._largest, self._shortened = 0, False

    def sent(self, text: str, *, entries: int, arrived: int, answer: bool) -> None:
        """Count a text."""
        figures, size = self._figures, len(text)
        (figures.answer_bytes if answer else figures.call_bytes)[size] += 1
        self._largest = max(self._largest, size)
        figures.texts += 1
        if arrived < entries:
            figures.shortened += 1
            figures.dropped += entries - arrived
            self._shortened = True

    def end(self) -> None:
        """Count what the request has in all."""
        self._figures.largest_bytes[self._largest] += 1
        self._figures.shortened_requests += self._shortened


def total(histogram: Counter[int]) -> int:
    """The sum of all values."""
    return sum(value * count for value, count in histogram.items())


def share_from(histogram: Counter[int], least: int) -> float:
    """The share of values that are *least* or more."""
    return sum(n for value, n in histogram.items() if value >= least) / max(histogram.total(), 1)


def spread(histogram: Counter[int]) -> dict[str, float]:
    """Mean, percentiles and maximum; zeros without values."""
    count = histogram.total()
    if not count:
        return {"mean": 0.0, "p50": 0, "p90": 0, "p99": 0, "most": 0}
    p50, p90, p99 = quantiles(histogram, (0.5, 0.9, 0.99))
    return {
        "mean": total(histogram) / count,
        "p50": p50,
        "p90": p90,
        "p99": p99,
        "most": max(histogram),
    }


def _described(histogram: Counter[int]) -> dict[str, Any]:
    """The spread, and each percentile from 0 to 100 for a curve."""
    percentiles = quantiles(histogram, [percent / 100 for percent in range(1, 101)])
    return {**spread(histogram), "percentiles": [min(histogram, default=0), *percentiles]}


def quantiles(histogram: Counter[int], shares: Sequence[float]) -> list[int]:
    """For each share, ascending, the least value that so many values do not exceed."""
    found: list[int] = []
    below, count = 0, histogram.total()
    for value in sorted(histogram):
        below += histogram[value]
        while len(found) < len(shares) and below >= shares[len(found)] * count:
            found.append(value)
    return found
