"""``python -m benchmarks.costs.held_reads``: independent reads beside reads that wait.

A hundred threads read what their request depends on and the replica never shows, through one
instrumented client whose pool has five connections; another thread reads meanwhile, of a request
that depends on nothing. Its reads are compared with those of the same client while nobody waits,
round by round: each round has both.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import antipode
from antipode import AntipodeError, Lineage
from antipode_testing.lab import topology_class
from benchmarks._machine import versions
from benchmarks._processors import AS_IS
from benchmarks._report import Start, write
from benchmarks._statistics import BOUND_US, Summary, bound_of, percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antipode_testing import MongoDBTopology, MySQLTopology, RedisTopology

DATASTORE = "posts"
POOL = 5
WAITING = 100
ROUNDS, QUICK_ROUNDS = 20, 3
#: Independent reads of each kind in a round.
READS, QUICK_READS = 200, 60
#: For how long reads wait in a round, and after how long all of them do.
HOLD_S, SETTLED_S = 8.0, 1.0
#: Further than any replica gets meanwhile, in the numbers of every store's log.
AHEAD = 1 << 45

#: A read, which takes its connection from the pool.
Read = Callable[[], object]


@contextmanager
def _redis(topology: RedisTopology) -> Iterator[tuple[Lineage, Read]]:
    import redis

    from antipode_shims.redis import instrument_client

    with redis.Redis(*topology.primary) as writer:
        instrument_client(writer, datastore=DATASTORE)
        with antipode.scope():
            writer.set("k", "v")
            written = antipode.current()
    pool: Any = redis.BlockingConnectionPool(  # type: ignore[no-untyped-call]
        host=topology.replica.host, port=topology.replica.port, max_connections=POOL, timeout=30
    )
    with redis.Redis.from_pool(pool) as reader:
        instrument_client(reader, datastore=DATASTORE, reads_from="replica")
        yield written, lambda: reader.get("k")


def _sqlalchemy(driver: str) -> Callable[[Any], Any]:
    @contextmanager
    def opened(topology: MySQLTopology) -> Iterator[tuple[Lineage, Read]]:
        from sqlalchemy import create_engine, text

        from antipode_shims.mysql import instrument_engine

        writer = create_engine(topology.url(topology.primary, driver=driver))
        instrument_engine(writer, datastore=DATASTORE)
        with antipode.scope():
            with writer.begin() as connection:
                connection.execute(text("CREATE TABLE IF NOT EXISTS held (id INT PRIMARY KEY)"))
            with writer.begin() as connection:
                connection.execute(text("REPLACE INTO held VALUES (1)"))
            written = antipode.current()
        reader = create_engine(
            topology.url(topology.replica, driver=driver), pool_size=POOL, max_overflow=0
        )
        instrument_engine(reader, datastore=DATASTORE, reads_from="replica")
        topology.wait_replicated()
        select = text("SELECT id FROM held WHERE id = 1")

        def read() -> object:
            with reader.connect() as connection:
                return connection.execute(select).all()

        yield written, read
        reader.dispose()
        writer.dispose()

    return opened


@contextmanager
def _mongodb(topology: MongoDBTopology) -> Iterator[tuple[Lineage, Read]]:
    from pymongo import MongoClient

    from antipode_shims.mongodb import instrument_client

    with ExitStack() as opened:
        writer: Any = MongoClient(*topology.primary, directConnection=True)
        opened.enter_context(writer)
        instrument_client(writer, datastore=DATASTORE)
        with antipode.scope():
            writer.held.posts.replace_one({"_id": 1}, {"v": 1}, upsert=True)
            written = antipode.current()
        reader: Any = MongoClient(
            *topology.replica,
            directConnection=True,
            readPreference="secondary",
            maxPoolSize=POOL,
        )
        opened.enter_context(reader)
        instrument_client(reader, datastore=DATASTORE, reads_from="replica")
        yield written, lambda: reader.held.posts.find_one({"_id": 1})


#: By name: the store, the client's package, and what opens it.
CLIENTS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "redis": ("redis", "redis", _redis),
    "pymongo": ("mongodb", "pymongo", _mongodb),
    "sqlalchemy-pymysql": ("mysql", "PyMySQL", _sqlalchemy("mysql+pymysql")),
    "sqlalchemy-mysqlclient": ("mysql", "mysqlclient", _sqlalchemy("mysql+mysqldb")),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """Independent reads of one client, over all rounds.

    Attributes:
        client: which.
        ratio: of the medians of all reads, beside those that wait over alone.
        rounds: the same ratio, round by round.
        alone_us: microseconds while nobody waits.
        beside_us: microseconds beside those that wait.
        bound: what the ratio may be: 5 % or 30 µs, whichever is more.
    """

    client: str
    ratio: float
    rounds: Summary
    alone_us: Summary
    beside_us: Summary
    bound: float


@contextmanager
def waiting(read: Read, lineage: Lineage) -> Iterator[None]:
    """A block beside which threads read what never comes; at its end all have given up."""

    def wait() -> None:
        # A client gives up a connection that was asked when the time was up: its own error.
        with antipode.scope(lineage), contextlib.suppress(Exception):
            antipode.barrier(timeout=HOLD_S, at="read")
            read()

    threads = [threading.Thread(target=wait) for _ in range(WAITING)]
    for each in threads:
        each.start()
    time.sleep(SETTLED_S)
    yield
    if not all(each.is_alive() for each in threads[:2]):
        msg = f"reads did not wait for {HOLD_S:g} s: there are too many of the others in a round"
        raise AntipodeError(msg)
    for each in threads:
        each.join()


def timed(read: Read, reads: int) -> list[float]:
    """Microseconds of each of so many reads of a request that depends on nothing."""
    found = []
    with antipode.scope():
        for _ in range(reads):
            begun = time.perf_counter()
            read()
            found.append((time.perf_counter() - begun) * 1e6)
    return found


def measure(name: str, rounds: int, reads: int) -> Measured:
    """Measure one client, on servers of its own."""
    store, _, opened = CLIENTS[name]
    alone: list[float] = []
    beside: list[float] = []
    ratios = []
    with topology_class(store)() as topology, opened(topology) as (written, read):
        never = Lineage([replace(each, version=each.version + AHEAD) for each in written])
        timed(read, reads)
        for number in range(rounds):
            for waits in (False, True) if number % 2 else (True, False):
                with waiting(read, never) if waits else contextlib.nullcontext():
                    found = timed(read, reads)
                (beside if waits else alone).extend(found)
            ratios.append(_median(beside[-reads:]) / _median(alone[-reads:]))
    plain, held = _spread(alone), _spread(beside)
    ratio = held.median / plain.median
    return Measured(name, ratio, _spread(ratios), plain, held, bound_of(plain.median))


def _spread(values: list[float]) -> Summary:
    found = Summary.of(values)
    if found is None:
        msg = "a round has no reads"
        raise ValueError(msg)
    return found


def _median(values: list[float]) -> float:
    return percentile(sorted(values), 50)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.costs.held_reads",
        description=f"What a read costs that depends on nothing, beside {WAITING} reads that wait, "
        f"with a pool of {POOL} connections. Starts the stores' servers itself. May be 5 % or "
        f"{BOUND_US:g} µs more.",
        epilog="exit status: 1 if --check is given and a bound is missed; else 0",
    )
    add = parser.add_argument
    add("--quick", action="store_true", help=f"{QUICK_ROUNDS} short rounds in place of {ROUNDS}")
    add("--clients", nargs="+", choices=CLIENTS, default=list(CLIENTS), help="which (all)")
    add("--json", type=Path, metavar="FILE", help="write the figures there")
    add("--check", action="store_true", help="fail where a bound is missed")
    given = parser.parse_args(arguments)
    rounds, reads = (QUICK_ROUNDS, QUICK_READS) if given.quick else (ROUNDS, READS)
    start, measured = Start.now(), []
    for name in given.clients:
        one = measure(name, rounds, reads)
        measured.append(one)
        print(
            f"{name:24}alone {one.alone_us.median:7.0f} µs, beside {one.beside_us.median:7.0f} µs:"
            f" ratio {one.ratio:.3f} ({one.rounds.least:.3f} to {one.rounds.greatest:.3f}),"
            f" bound {one.bound:g}",
            flush=True,
        )
    if given.json is not None:
        conditions = start.conditions(
            "python -m benchmarks.costs.held_reads",
            ["--quick"] if given.quick else [],
            short=given.quick,
            versions=versions(
                sorted({CLIENTS[name][1] for name in given.clients}),
                sorted({CLIENTS[name][0] for name in given.clients}),
            ),
            processors=AS_IS,
        )
        report = {"benchmark": "held_reads", **conditions, "rounds": rounds, "waiting": WAITING}
        write(given.json, report, [asdict(each) for each in measured])
    return int(given.check and any(each.ratio > each.bound for each in measured))


if __name__ == "__main__":
    sys.exit(main())
