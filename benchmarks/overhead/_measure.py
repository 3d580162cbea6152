"""Timing: single calls of the two clients by turns, call by call."""

from __future__ import annotations

import gc
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import antipode
from benchmarks._statistics import Summary, percentile

from ._clients import CLIENTS, NETWORK_BOUND, Server, running
from ._network import network

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode.testing import Address

    from ._clients import Client

#: Microseconds of each call: of the plain client, of the instrumented one.
Times = tuple[list[float], list[float]]
#: There and back: half a millisecond.
ONE_WAY_S = 0.000_25
#: Calls of each client between two looks at the clock of the wall: a round.
CALLS = 200
KEYS = 100


@dataclass(frozen=True, slots=True)
class Measured:
    """One call of one client, over all rounds.

    Attributes:
        client: which, and over what store.
        link: ``loopback`` or ``0.5 ms``.
        call: ``write``, ``read``, or ``read after a barrier``.
        ratio: of the medians of all calls, instrumented over plain.
        rounds: the same ratio, round by round.
        plain_us: microseconds of the plain client.
        instrumented_us: microseconds of the instrumented client.
        bound: what the ratio may be.
    """

    client: str
    link: str
    call: str
    ratio: float
    rounds: Summary
    plain_us: Summary
    instrumented_us: Summary
    bound: float


def measure(names: list[str], rounds: int, advance: Callable[[], None]) -> Iterator[Measured]:
    """Measure the clients *names*, one store after another."""
    for name in names:
        store, make, bound = CLIENTS[name]
        with running(store) as topology:
            for link in ("loopback", "0.5 ms"):
                with ExitStack() as stack:
                    address: Address = topology.primary
                    if link != "loopback":
                        address = stack.enter_context(network(address, one_way_s=ONE_WAY_S))
                    server = Server.of(topology, address)
                    pair = [make(server, instrumented=each) for each in (False, True)]
                    for client in pair:
                        stack.callback(client.close)
                    timed = _rounds(pair, rounds, advance)
                limit = bound if link == "loopback" else NETWORK_BOUND
                for call, times in timed.items():
                    yield _summary(name, link, call, times, limit)


def _rounds(pair: list[Client], rounds: int, advance: Callable[[], None]) -> dict[str, list[Times]]:
    found: dict[str, list[Times]] = {}
    for number in range(rounds + 1):
        for call, timed in _round(pair).items():
            if number:  # The first round warms connections, caches and the interpreter up.
                found.setdefault(call, []).append(timed)
        advance()
    return found


def _summary(client: str, link: str, call: str, timed: list[Times], bound: float) -> Measured:
    plain = Summary.of(time for times, _ in timed for time in times)
    ours = Summary.of(time for _, times in timed for time in times)
    ratios = Summary.of(_median(ours) / _median(plain) for plain, ours in timed)
    assert plain and ours and ratios  # noqa: PT018, S101 - there is a round at least
    return Measured(client, link, call, ours.median / plain.median, ratios, plain, ours, bound)


def _round(pair: list[Client]) -> dict[str, Times]:
    """Microseconds of every call, plain and instrumented, each in a scope as a request has one."""
    gc.collect(0)
    gc.disable()
    try:
        found = {"write": _by_turns([client.write for client in pair], after=None)}
        found["read"] = _by_turns([client.read for client in pair], after=None)
        found["read after a barrier"] = _by_turns(
            [client.read for client in pair], after=pair[1].write
        )
    finally:
        gc.enable()
    return found


def _by_turns(calls: list[Callable[[int], None]], *, after: Callable[[int], None] | None) -> Times:
    times: Times = ([], [])
    for number in range(CALLS):
        with antipode.scope():
            if after is not None:
                after(number % KEYS)
                antipode.barrier(timeout=10)
            first = number % 2
            for which in (first, 1 - first):
                began_ns = time.perf_counter_ns()
                calls[which](number % KEYS)
                times[which].append((time.perf_counter_ns() - began_ns) / 1000)
    return times


def _median(times: list[float]) -> float:
    return percentile(sorted(times), 50)
