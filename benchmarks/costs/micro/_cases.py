"""What is timed: each operation of the library beside the OpenTelemetry call it is compared to."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from opentelemetry import baggage
from opentelemetry import context as otel_context
from opentelemetry.baggage.propagation import W3CBaggagePropagator

import antipode
from antipode import Lineage, WriteId
from antipode.propagation import AntipodePropagator

if TYPE_CHECKING:
    from opentelemetry.context import Context

Operation = Literal["append", "merge", "encode", "decode", "inject", "extract"]
Inputs = Literal["cold", "warm"]
Calls = list[Callable[[], object]]

OPERATIONS: tuple[Operation, ...] = ("append", "merge", "encode", "decode", "inject", "extract")
INPUTS: tuple[Inputs, ...] = ("warm", "cold")
SIZES = (1, 5, 20, 100)

#: What each operation is compared to, with a text as long as its lineage's.
FLOORS: dict[Operation, str] = {
    "append": "set_baggage + attach + detach",
    "merge": "set_baggage + attach + detach",
    "encode": "inject",
    "decode": "extract",
    "inject": "inject",
    "extract": "extract",
}

# A propagator drops members longer than this, which costs less than sending them.
_LONGEST_TEXT = 4000
_HOUR = 480_000
_STORES = ("mysql", "redis", "mongodb", "post-storage", "timeline")
_PLAIN = W3CBaggagePropagator()
_OURS = AntipodePropagator(_PLAIN)
_UNBOUNDED = 65_536


@dataclass(frozen=True, slots=True)
class Case:
    """One operation on lineages of one size.

    Attributes:
        operation: what is timed.
        entries: in the lineage.
        inputs: ``cold``: logs that the process never saw before, at every call; ``warm``: logs
            that it knows, at new positions, as most requests have.
    """

    operation: Operation
    entries: int
    inputs: Inputs


class Source:
    """Makes inputs. Not timed."""

    def __init__(self, seed: int) -> None:
        """Draw from *seed*."""
        self._random = random.Random(seed)
        self._known = [self._log(number) for number in range(max(SIZES))]
        self._version = 1_000_000

    def lineage(self, entries: int, inputs: Inputs) -> Lineage:
        """A lineage of logs with UUIDs, as MySQL's and the embedded store's."""
        if inputs == "warm":
            logs = self._known[:entries]
        else:
            logs = [self._log(number) for number in range(entries)]
        return Lineage(self.write(log) for log in logs)

    def write(self, log: tuple[str, str]) -> WriteId:
        """A later write to *log*."""
        self._version += 1
        return WriteId(*log, self._version, _HOUR)

    def another(self, inputs: Inputs) -> WriteId:
        """A later write to a known log, or one to a log never seen."""
        return self.write(self._known[0] if inputs == "warm" else self._log(0))

    def _log(self, number: int) -> tuple[str, str]:
        digits = f"{self._random.getrandbits(128):032x}"
        parts = digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]
        return _STORES[number % len(_STORES)], "-".join(parts)


def calls(case: Case, source: Source, count: int) -> tuple[Calls, Calls]:
    """*count* calls of the operation, and as many of its floor, with everything prepared."""
    ours = [_MAKERS[case.operation](case, source) for _ in range(count)]
    floor = _floor(case, source)
    return ours, [floor] * count


def _append(case: Case, source: Source) -> Callable[[], object]:
    context = _context(source.lineage(case.entries, case.inputs))
    write = source.another(case.inputs)
    return lambda: antipode.append(write, context=context)


def _merge(case: Case, source: Source) -> Callable[[], object]:
    scope = antipode.shim.Scope(source.lineage(case.entries, case.inputs))
    other = source.lineage(case.entries, case.inputs)
    return lambda: antipode.transfer(other, target=scope)


def _encode(case: Case, source: Source) -> Callable[[], object]:
    lineage = source.lineage(case.entries, case.inputs)
    return lambda: antipode.serialize(lineage, max_bytes=_UNBOUNDED)


def _decode(case: Case, source: Source) -> Callable[[], object]:
    text = antipode.serialize(source.lineage(case.entries, case.inputs), max_bytes=_UNBOUNDED)
    return lambda: antipode.deserialize(text)


def _inject(case: Case, source: Source) -> Callable[[], object]:
    context = _context(source.lineage(case.entries, case.inputs))
    return lambda: _OURS.inject({}, context)


def _extract(case: Case, source: Source) -> Callable[[], object]:
    carrier: dict[str, str] = {}
    _OURS.inject(carrier, _context(source.lineage(case.entries, case.inputs)))
    return lambda: _OURS.extract(carrier, _EMPTY)


_EMPTY = otel_context.Context()
_MAKERS: dict[Operation, Callable[[Case, Source], Callable[[], object]]] = {
    "append": _append,
    "merge": _merge,
    "encode": _encode,
    "decode": _decode,
    "inject": _inject,
    "extract": _extract,
}


def _context(lineage: Lineage) -> Context:
    """A context whose scope has *lineage*."""
    with antipode.scope(lineage):
        return otel_context.get_current()


def _floor(case: Case, source: Source) -> Callable[[], object]:
    """The bare call, with an unreserved text as long as what the operation handles."""
    text = "x" * text_length(case, source)
    what = FLOORS[case.operation]
    if what == "inject":
        context = baggage.set_baggage("k" * len("antipode"), text, context=_EMPTY)
        return lambda: _PLAIN.inject({}, context)
    if what == "extract":
        carrier: dict[str, str] = {}
        _PLAIN.inject(carrier, baggage.set_baggage("k" * len("antipode"), text, context=_EMPTY))
        return lambda: _PLAIN.extract(carrier, _EMPTY)

    def set_attach_detach() -> None:
        otel_context.detach(otel_context.attach(baggage.set_baggage("antipode", text)))

    return set_attach_detach


def text_length(case: Case, source: Source) -> int:
    """How long a lineage's text is, as it travels or is stored."""
    lineage = source.lineage(case.entries, case.inputs)
    if case.operation in ("inject", "extract"):
        return len(antipode.serialize(lineage))
    return min(len(antipode.serialize(lineage, max_bytes=_UNBOUNDED)), _LONGEST_TEXT)
