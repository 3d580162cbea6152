"""Turns of each way to make a round, interleaved, and what client and servers spend on one."""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import antipode
from benchmarks._processors import spent
from benchmarks._statistics import Summary, bound_of
from benchmarks.judge import differ, rotated
from benchmarks.post_notification._storage import POST_STORAGE, open_post_storage, post_value

from ._profile import profile, spent_us

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from benchmarks._processors import Processors
    from benchmarks._statistics import Interval
    from benchmarks.post_notification._storage import PostStorage

#: How a round is made: by plain clients without a scope; by instrumented ones in a scope, as in a
#: request; with a barrier before its read; and with automatic barriers.
Way = Literal["plain", "instrumented", "at-read", "auto"]
WAYS: tuple[Way, ...] = get_args(Way)
#: Of these the cost is bounded. The others wait for the replica, which is what they are for.
BOUNDED: tuple[Way, ...] = ("instrumented",)
STORES = ("redis", "mysql", "mariadb", "mongodb")
THREADS = 32
#: A barrier that waits for longer fails, which ends the benchmark.
_TIMEOUT_S = 10.0
_POST_BYTES = 1024
_KEYS = 1000
#: Of posts: servers leave out a write that changes nothing, and it has no position.
_versions = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn of one way came to.

    Attributes:
        per_s: rounds a second.
        client_us: microseconds of processor time of the client's process for a round.
        servers_us: the same of both servers; None where the system does not say.
    """

    per_s: float
    client_us: float
    servers_us: float | None


@dataclass(frozen=True, slots=True)
class Measured:
    """One way over one store, beside plain clients.

    Attributes:
        store: which.
        way: of making a round.
        per_s: rounds a second, of the plain clients' turns and of its own.
        servers_us: microseconds of processor time of the servers for a round, of the same.
        plain_us: those of the client's process, of the plain clients' turns.
        ours_us: the same of its own.
        above_us: by how much they differ turn by turn, with its interval; None for few turns.
        ratio: of the means of both.
        rounds: the same ratio, turn by turn.
        bound: what the ratio may be; None where anything may.
        parts: microseconds of one thread's processor time for each call of a round, by plain
            clients and by instrumented ones, without a barrier; empty for ways with one.
        shares: of packages in the processor time of a round, by one thread under a profiler, which
            makes short functions look longer than they are: they say where to look.
    """

    store: str
    way: Way
    per_s: tuple[float, float]
    servers_us: tuple[float, float] | None
    plain_us: Summary
    ours_us: Summary
    above_us: Interval | None
    ratio: float
    rounds: Summary
    bound: float | None
    parts: dict[str, tuple[float, float]]
    shares: dict[str, float]


def measure(
    store: str, *, blocks: int, turn_s: float, processors: Processors, advance: Callable[[], None]
) -> list[Measured]:
    """Measure every way over a store, in turns.

    Raises:
        AntipodeError: a server is missing or does not start.
    """
    with processors.for_servers(), _running(store) as (spec, ports), processors.for_clients():
        turns: dict[Way, list[Turn]] = {way: [] for way in WAYS}
        with _clients(spec) as clients:
            for block in range(blocks + 1):
                for way in rotated(WAYS, block):
                    made = _turn(clients[way != "plain"], way, turn_s, ports)
                    if block:  # the first opens connections
                        turns[way].append(made)
                    advance()
            ours = [way for way in WAYS if way != "plain"]
            shares = {way: _shares(clients[1], way) for way in ours}
            parts = {way: _parts(clients) if way in BOUNDED else {} for way in ours}
    return [
        _beside(store, way, turns["plain"], turns[way], shares=shares[way], parts=parts[way])
        for way in ours
    ]


@contextmanager
def _running(store: str) -> Iterator[tuple[dict[str, Any], tuple[int, ...]]]:
    """A primary and its replica, how clients find them, and the ports that they listen at."""
    from antipode_testing.lab import topology_class

    with topology_class(store)() as topology:
        places = topology.primary, topology.replica
        ports = tuple(place.port for place in places)
        if store in ("mysql", "mariadb"):
            from benchmarks.post_notification._storage_mysql import declare

            places = topology.url(places[0]), topology.url(places[1])
            declare({"writer": places[0]})
            topology.wait_replicated()
        yield {"store": store, "writer": places[0], "reader": places[1]}, ports


Pair = tuple["PostStorage", "PostStorage"]


@contextmanager
def _clients(spec: dict[str, Any]) -> Iterator[tuple[Pair, Pair]]:
    """Clients of primary and replica: plain ones, and instrumented ones."""
    with (
        closing(open_post_storage(spec, place="writer")) as plain_writer,
        closing(open_post_storage(spec, place="reader")) as plain_reader,
        closing(open_post_storage(spec, place="writer", face="client")) as writer,
        closing(open_post_storage(spec, place="reader", face="client")) as reader,
    ):
        yield (plain_writer, plain_reader), (writer, reader)


def round_of(pair: Pair, way: Way) -> Callable[[str], None]:
    """A write to the primary and a read of it at the replica, as one request makes them."""
    writer, reader = pair
    scope: Callable[[], AbstractContextManager[Any]] = (
        nullcontext if way == "plain" else antipode.scope
    )

    def made(post_id: str) -> None:
        with scope():
            writer.write(post_id, post_value(next(_versions), _POST_BYTES))
            if way == "at-read":
                antipode.barrier(timeout=_TIMEOUT_S, only=POST_STORAGE, at="read")
            reader.read(post_id)

    return made


def barriers_of(way: Way) -> AbstractContextManager[None]:
    """Automatic barriers in one of the ways, none in the others."""
    return antipode.barriers("auto" if way == "auto" else "explicit")


def _turn(pair: Pair, way: Way, turn_s: float, ports: Sequence[int]) -> Turn:
    """Make rounds by all threads until the turn is over."""
    made = round_of(pair, way)
    counts, failures = [0] * THREADS, list[BaseException]()
    gate = threading.Barrier(THREADS + 1)

    def work(number: int) -> None:
        try:
            with barriers_of(way):
                gate.wait()
                ends_s = time.monotonic() + turn_s
                for key in itertools.cycle(range(_KEYS)):
                    if time.monotonic() > ends_s:
                        return
                    made(f"{number}-{key}")
                    counts[number] += 1
        except BaseException as error:  # noqa: BLE001 - raised where the turn ends
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    servers_s = _spent_s(ports)
    gate.wait()
    began_s, client_s = time.monotonic(), time.process_time()
    for thread in threads:
        thread.join()
    took_s, client_s = time.monotonic() - began_s, time.process_time() - client_s
    ended_s = _spent_s(ports)
    if failures:
        raise failures[0]
    rounds = sum(counts)
    served = None if None in (servers_s, ended_s) else (ended_s - servers_s) * 1e6 / rounds  # type: ignore[operator]
    return Turn(rounds / took_s, client_s * 1e6 / rounds, served)


def _spent_s(ports: Sequence[int]) -> float | None:
    """Processor time of the servers at *ports*."""
    found = [spent(port) for port in ports]
    return None if None in found else sum(filter(None, found))


def _parts(clients: tuple[Pair, Pair]) -> dict[str, tuple[float, float]]:
    """What each call of a round costs by itself, plain and instrumented."""

    def scope(_: int) -> None:
        with antipode.scope():
            pass

    def costs(call: Callable[[Pair, str], object]) -> tuple[float, float]:
        plain, ours = (
            partial(lambda pair, number: call(pair, f"timed-{number}"), pair) for pair in clients
        )
        return spent_us(plain), spent_us(ours, antipode.scope)

    with barriers_of("instrumented"):
        return {
            "write": costs(
                lambda pair, post_id: pair[0].write(
                    post_id, post_value(next(_versions), _POST_BYTES)
                )
            ),
            "read": costs(lambda pair, post_id: pair[1].read(post_id)),
            "scope": (0.0, spent_us(scope)),
        }


def _shares(pair: Pair, way: Way) -> dict[str, float]:
    """Where the processor time of a round goes."""
    made = round_of(pair, way)
    with barriers_of(way):
        return profile(lambda number: made(f"profiled-{number}"))


def _beside(
    store: str,
    way: Way,
    plain: Sequence[Turn],
    ours: Sequence[Turn],
    *,
    shares: dict[str, float],
    parts: dict[str, tuple[float, float]],
) -> Measured:
    costs: list[Mapping[int, float]] = [
        dict(enumerate(turn.client_us for turn in turns)) for turns in (ours, plain)
    ]
    means = [statistics.fmean(cost.values()) for cost in costs]
    pairs = list(zip(plain, ours, strict=True))
    plain_us, ours_us = (Summary.of(turn.client_us for turn in turns) for turns in (plain, ours))
    rounds = Summary.of(own.client_us / bare.client_us for bare, own in pairs)
    assert plain_us and ours_us and rounds  # noqa: PT018, S101 - there is a turn at least
    served = [[turn.servers_us for turn in turns] for turns in (plain, ours)]
    told = None not in (*served[0], *served[1])
    return Measured(
        store,
        way,
        (statistics.fmean(t.per_s for t in plain), statistics.fmean(t.per_s for t in ours)),
        (_mean(served[0]), _mean(served[1])) if told else None,
        plain_us,
        ours_us,
        differ(*costs),
        means[0] / means[1],
        rounds,
        bound_of(means[1]) if way in BOUNDED else None,
        parts,
        shares,
    )


def _mean(values: Sequence[float | None]) -> float:
    return statistics.fmean(value or 0.0 for value in values)
