"""An hour's worth of barriers in minutes: none passes early, none is late, nothing is left."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from antipode_shims.embedded import EmbeddedTopology
from antipode_testing import (
    Address,
    MariaDBTopology,
    MongoDBTopology,
    MySQLTopology,
    RabbitMQTopology,
    RedisTopology,
    wait_until,
)
from antipode_testing.plugin import USE

from ._census import Census
from ._load import Load, Tally
from ._memory import memory
from ._stalls import Stalls
from ._subjects import (
    EmbeddedSubject,
    MongoDBSubject,
    MySQLSubject,
    RabbitMQSubject,
    RedisSubject,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import ContractStore, Topology

    from ._subject import Subject

pytestmark = pytest.mark.timeout(3600)

#: Over each store; ``make load`` has 100,000 of them.
BARRIERS = int(os.environ.get("ANTIPODE_LOAD_BARRIERS", "4000"))
#: Each is over shims of its own, and ends with a promotion where the store has one.
ROUNDS = 8
#: Rounds after which allocator, pools and caches have what they need.
WARM = 4
#: What each barrier may have left from then to the end of the last round, in blocks of Python's
#: allocator beside those that come and go, and by how much what is allocated natively may have
#: grown.
MOST_BLOCKS, SOME_BLOCKS = 0.05, 3000
MOST_NATIVE_BYTES = 1 << 20
#: How long what was closed may take to be gone, on a machine that has other work, in seconds.
GONE_S = 10.0

STORES = [
    pytest.param(EmbeddedTopology, EmbeddedSubject, id="embedded"),
    pytest.param(RedisTopology, RedisSubject, id="redis", marks=pytest.mark.store("redis")),
    pytest.param(
        RabbitMQTopology, RabbitMQSubject, id="rabbitmq", marks=pytest.mark.store("rabbitmq")
    ),
    pytest.param(MySQLTopology, MySQLSubject, id="mysql", marks=pytest.mark.store("mysql")),
    pytest.param(MariaDBTopology, MySQLSubject, id="mariadb", marks=pytest.mark.store("mariadb")),
    pytest.param(MongoDBTopology, MongoDBSubject, id="mongodb", marks=pytest.mark.store("mongodb")),
]


@pytest.fixture
def before() -> Census:
    """What this process has open before there is a topology."""
    return Census.take()


@pytest.fixture
def topology(before: Census, request: pytest.FixtureRequest) -> Iterator[Topology]:
    """A topology of this test's own, which it closes to count what is left without it."""
    del before
    yield from request.config.stash[USE].run(request.param.store, request.param)


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Print a line at once: a load takes minutes."""

    def write(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    return write


@pytest.mark.parametrize(("topology", "kind"), STORES, indirect=["topology"])
def test_load(
    before: Census, topology: Topology, kind: type[Subject], say: Callable[[str], None]
) -> None:
    """The store bears the load: it passes no barrier early, ends none late and leaves nothing."""
    subject: Any = kind(topology)
    tally, sizes, ports = Tally(), list[tuple[int, int]](), dict[int, str]()
    say(f"\n{topology.store}: {ROUNDS} rounds of {BARRIERS // ROUNDS} barriers")
    began_s = time.monotonic()
    with closing(Stalls()) as stalls:
        for number in range(ROUNDS):
            with subject.open() as store:
                ports.update(named(store, number))
                Load(subject, store, tally, stalls, seed=number).run(BARRIERS // ROUNDS)
                gone(lambda: subject.server_waits() == 0, "waits to end")
            topology.reset()
            gone(lambda: not library_threads(), "threads to end", library_threads)
            sizes.append(memory())
            spent_s = time.monotonic() - began_s
            say(f"  {spent_s:.0f} s: {tally}; the machine stood still for {stalls.total_s:.1f} s")
            tally.check()
    assert tally.ended.total() == BARRIERS // ROUNDS * ROUNDS
    blocks, native = (last - warm for last, warm in zip(sizes[-1], sizes[WARM - 1], strict=True))
    say(f"  since round {WARM}: {blocks} blocks and {native >> 10} KiB of native memory more")
    assert blocks < SOME_BLOCKS + MOST_BLOCKS * BARRIERS * (ROUNDS - WARM) / ROUNDS
    assert native < MOST_NATIVE_BYTES
    topology.close()
    gone(lambda: not before.grown(), "connections to be closed", lambda: before.growth(ports))


def gone(condition: Callable[[], bool], what: str, left: Callable[[], object] = str) -> None:
    """Wait until something of the past is gone; if it never is, say what is *left*."""
    try:
        wait_until(condition, what=what, timeout_s=GONE_S, interval_s=0.05)
    except TimeoutError as error:
        raise AssertionError(f"{error}: {left()}") from error


def named(store: ContractStore, number: int) -> dict[int, str]:
    """What listens on the ports that clients of a round connect to."""
    places = {
        "the primary": store.topology.primary,
        "the replica": store.topology.replica,
        "the reader's proxy": getattr(getattr(store, "proxy", None), "address", None),
    }
    return {
        place.port: f"{name} of round {number}"
        for name, place in places.items()
        if isinstance(place, Address)
    }


def library_threads() -> list[str]:
    """The names of the library's threads that run, but for those of an embedded topology."""
    names = (each.name for each in threading.enumerate())
    return [name for name in names if re.match("antipode-(?!replicator)", name)]
