"""Timing: single calls of two kinds by turns, call by call."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import antipode
from antipode import Lineage, WriteId
from benchmarks._statistics import Summary, bound_of, percentile

from . import _dry_run
from ._clients import Server
from ._network import network
from ._registry import BROKERS, CLIENTS, NETWORK_BOUND, running, store_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import Address
    from benchmarks._processors import Processors

    from ._brokers import MakeBroker
    from ._clients import Make

#: Microseconds of each call: of the plain client, of the instrumented one.
Times = tuple[list[float], list[float]]
#: A call of each.
_Pair = Sequence[Callable[[int], object]]
#: What one round finds, by call.
Round = Callable[[], dict[str, Times]]
#: There and back: half a millisecond.
ONE_WAY_S = 0.000_25
LINKS = ("loopback", "0.5 ms")
#: Of calls of a client of a store.
_KINDS = 3
#: Calls of each client between two looks at the clock of the wall: a round.
CALLS = 80
KEYS = 100
#: What a request depends on that wrote to a store of another name.
ELSEWHERE = Lineage([WriteId("elsewhere", "log", 7)])
#: Behind a write a server replicates it, and lets whoever did not write go first meanwhile.
SETTLE_S = 0.003


@dataclass(frozen=True, slots=True)
class Measured:
    """One call of one client, over all rounds.

    Attributes:
        client: which, and over what store.
        link: ``loopback`` or ``0.5 ms``.
        call: ``write``, ``read``, ``read after a barrier``; compared with an instrumented read
            without automatic barriers, ``read, automatic barriers``, of a request that depends on
            nothing, and ``read after a write elsewhere, automatic barriers``, on nothing there; in
            a dry run, which are compared with
            an instrumented read without one, ``read, dry run``, of what the request did not write,
            ``unguarded read, dry run``, ``another unguarded read, dry run`` right behind such a
            one, ``guarded read, dry run`` behind a barrier, and ``read after a barrier, dry run``
            behind one that is enforced all the same, and whose floor the read has to look up. Of
            a broker, ``publish`` and ``receive``.
        ratio: of the medians of all calls, with the library (automatic barriers, the dry run) over
            without.
        rounds: the same ratio, round by round.
        plain_us: microseconds without.
        instrumented_us: microseconds with it.
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


def measure(
    names: list[str], rounds: int, processors: Processors, advance: Callable[[], None]
) -> Iterator[Measured]:
    """Measure the clients *names*, one store after another."""
    for name in names:
        with ExitStack() as running_store:
            with processors.for_servers():
                topology = running_store.enter_context(running(store_of(name)))
            for link in LINKS:
                with ExitStack() as stack:
                    address: Address = topology.primary
                    if link != "loopback":
                        with processors.for_servers():
                            address = stack.enter_context(network(address, one_way_s=ONE_WAY_S))
                    stack.enter_context(processors.for_clients())
                    server = Server.of(topology, address)
                    for compared, most in _compared(name, server, link):
                        with compared as one_round:
                            timed = _rounds(one_round, rounds, advance)
                        for call, times in timed.items():
                            yield _summary(name, link, call, times, most)


def rounds_of(names: list[str], rounds: int) -> int:
    """How many rounds, and how often `measure` says that it advanced."""
    kinds = sum(_KINDS if name in CLIENTS else 1 for name in names)
    return kinds * len(LINKS) * (rounds + 1)


def _compared(
    name: str, server: Server, link: str
) -> Iterator[tuple[AbstractContextManager[Round], float | None]]:
    """What makes the rounds of each kind of call, and the bound of its calls."""
    if name in BROKERS:
        yield _brokers(BROKERS[name][1], server), None
        return
    _, make, bound = CLIENTS[name]
    yield _clients(make, server), bound and (bound if link == "loopback" else NETWORK_BOUND)
    yield _automatic(make, server), None
    yield _dry_runs(make, server), None


def _rounds(one_round: Round, rounds: int, advance: Callable[[], None]) -> dict[str, list[Times]]:
    """What every round found, by call. Without the first, which warms everything up."""
    found: dict[str, list[Times]] = {}
    for number in range(rounds + 1):
        gc.collect(0)
        gc.disable()
        try:
            timed = one_round()
        finally:
            gc.enable()
        if number:
            for call, times in timed.items():
                found.setdefault(call, []).append(times)
        advance()
    return found


def _summary(
    client: str, link: str, call: str, timed: list[Times], bound: float | None
) -> Measured:
    """What all rounds say of one call; without a *bound* of the store's the common one holds."""
    plain = Summary.of(time for times, _ in timed for time in times)
    ours = Summary.of(time for _, times in timed for time in times)
    ratios = Summary.of(_median(ours) / _median(plain) for plain, ours in timed)
    assert plain and ours and ratios  # noqa: PT018, S101 - there is a round at least
    most = bound or bound_of(plain.median)
    return Measured(client, link, call, ours.median / plain.median, ratios, plain, ours, most)


@contextmanager
def _clients(make: Make, server: Server) -> Iterator[Round]:
    """Calls of a plain and of an instrumented client."""
    with ExitStack() as stack:
        pair = [stack.enter_context(closing(make(server, instrumented=e))) for e in (False, True)]
        writes, reads = [each.write for each in pair], [each.read for each in pair]

        def behind_a_barrier(number: int) -> None:
            pair[1].write(number)
            antipode.barrier(timeout=10)

        yield lambda: {
            "write": _by_turns(writes),
            "read": _by_turns(reads),
            "read after a barrier": _behind(reads, behind_a_barrier),
        }


@contextmanager
def _brokers(make: MakeBroker, server: Server) -> Iterator[Round]:
    """Messages of a plain and of an instrumented client, each of which brings a lineage."""
    with ExitStack() as stack:
        pair = [stack.enter_context(closing(make(server, instrumented=e))) for e in (False, True)]
        yield lambda: {
            "publish": _by_turns([each.publish for each in pair], ELSEWHERE),
            "receive": _by_turns([each.receive for each in pair]),
        }


@contextmanager
def _automatic(make: Make, server: Server) -> Iterator[Round]:
    """Reads of requests that depend on nothing there, without automatic barriers and with them."""
    with closing(make(server, instrumented=True, reads_from="replica")) as client:

        def read(which: Literal["auto", "explicit"]) -> Callable[[int], object]:
            def run(number: int) -> None:
                with antipode.barriers(which):
                    client.read(number)

            return run

        reads = [read("explicit"), read("auto")]
        yield lambda: {
            "read, automatic barriers": _by_turns(reads),
            "read after a write elsewhere, automatic barriers": _by_turns(reads, ELSEWHERE),
        }


@contextmanager
def _dry_runs(make: Make, server: Server) -> Iterator[Round]:
    """Reads of an instrumented client, outside of a dry run and within."""
    with (
        closing(make(server, instrumented=True, reads_from="replica")) as client,
        _dry_run.observing() as turn,
    ):
        reads = [turn(client.read, dry=dry) for dry in (False, True)]
        write = turn(client.write, dry=False)

        def behind(mode: Literal["enforce", "dry-run"]) -> Callable[[int], object]:
            def run(number: int) -> None:
                write(number)
                antipode.barrier(timeout=10, mode=mode)

            return run

        yield lambda: {
            "read, dry run": _by_turns(reads),
            "unguarded read, dry run": _behind(reads, write),
            "another unguarded read, dry run": _behind(reads, write, again=reads),
            "guarded read, dry run": _behind(reads, behind("dry-run")),
            "read after a barrier, dry run": _behind(reads, behind("enforce")),
        }


def _by_turns(calls: _Pair, lineage: Lineage | None = None) -> Times:
    """Microseconds of every call, in scopes as requests have them, which depend on *lineage*."""
    times: Times = ([], [])
    for number in range(CALLS):
        with antipode.scope(lineage):
            first = number % 2
            for which in (first, 1 - first):
                times[which].append(_timed_us(calls[which], number))
    return times


def _behind(calls: _Pair, before: Callable[[int], object], *, again: _Pair | None = None) -> Times:
    """Microseconds of every call, each in a scope of its own behind what is made *before*.

    Both in one scope would be two kinds of call: the first finds caches cold, the second does not.

    Args:
        calls: what is timed.
        before: what comes first, then a pause.
        again: what comes right before the call, of its kind.
    """
    times: Times = ([], [])
    for number in range(CALLS):
        first = number % 2
        for which in (first, 1 - first):
            with antipode.scope():
                before(number % KEYS)
                _settle()
                if again is not None:
                    again[which](number % KEYS)
                times[which].append(_timed_us(calls[which], number))
    return times


def _timed_us(call: Callable[[int], object], number: int) -> float:
    began_ns = time.perf_counter_ns()
    call(number % KEYS)
    return (time.perf_counter_ns() - began_ns) / 1000


def _settle() -> None:
    """Let other threads and processes go on for a while, awake: who slept starts slowly."""
    due_s = time.perf_counter() + SETTLE_S
    while time.perf_counter() < due_s:
        time.sleep(0)


def _median(times: list[float]) -> float:
    return percentile(sorted(times), 50)
