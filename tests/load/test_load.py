"""An hour's worth of barriers in a minute: none passes early, none is late, nothing is left."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from antipode.testing import EmbeddedTopology, wait_until

from ._load import Load, Tally
from ._stalls import Stalls
from ._subjects import (
    EmbeddedSubject,
    MongoDBSubject,
    MySQLSubject,
    RabbitMQSubject,
    RedisSubject,
)

if TYPE_CHECKING:
    from antipode.testing import (
        MariaDBTopology,
        MongoDBTopology,
        MySQLTopology,
        RabbitMQTopology,
        RedisTopology,
    )

    from ._subject import Subject

pytestmark = pytest.mark.timeout(1800)

#: Over each store; ``make load`` has 100,000 of them.
BARRIERS = int(os.environ.get("ANTIPODE_LOAD_BARRIERS", "4000"))
#: Each is over shims of its own, and ends with a promotion where the store has one.
ROUNDS = 8
#: Rounds after which allocator, pools and caches have what they need.
WARM = 4
#: What each barrier may have left from then to the end of the last round, in blocks of Python's
#: allocator beside a handful that comes and goes, and what the process may have grown by, native
#: memory included.
MOST_BLOCKS, SOME_BLOCKS = 0.05, 1000
MOST_GROWTH_BYTES = 4 << 20


def left() -> tuple[list[str], int]:
    """The library's threads, and how many descriptors are open."""
    names = (each.name for each in threading.enumerate())
    threads = [name for name in names if name.startswith(("antipode-watch", "antipode-barrier"))]
    return threads, len(list(Path("/proc/self/fd").iterdir()))


def memory() -> tuple[int, int]:
    """Blocks in use, and the resident bytes of this process without what it could give back."""
    gc.collect()
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return sys.getallocatedblocks(), pages * os.sysconf("SC_PAGE_SIZE")


def bear(subject: Subject, capsys: pytest.CaptureFixture[str]) -> None:
    """Put the load on *subject*, and see what it comes to."""
    tally = Tally()
    sizes: list[tuple[int, int]] = []
    before = left()
    with closing(Stalls()) as stalls:
        for number in range(ROUNDS):
            with subject.open() as store:
                Load(subject, store, tally, stalls, seed=number).run(BARRIERS // ROUNDS)
                wait_until(lambda: subject.server_waits() == 0, what="waits to end", timeout_s=2)
                topology = store.topology
            topology.reset()
            wait_until(lambda: left()[0] == before[0], what="threads to end", timeout_s=5)
            sizes.append(memory())
    blocks, grown = (last - warm for last, warm in zip(sizes[-1], sizes[WARM - 1], strict=True))
    with capsys.disabled():
        sys.stdout.write(
            f"\n{dict(tally.ended)}, {blocks} blocks and {grown >> 10} KiB more; "
            f"the process stood still for {stalls.total_s:.1f} s\n"
        )
    assert not tally.failures, "\n".join(tally.failures)
    assert not tally.early
    assert not tally.late_s
    assert tally.ended.total() == BARRIERS // ROUNDS * ROUNDS
    assert blocks < SOME_BLOCKS + MOST_BLOCKS * BARRIERS * (ROUNDS - WARM) / ROUNDS
    assert grown < MOST_GROWTH_BYTES
    wait_until(lambda: left()[1] <= before[1], what="connections to be closed", timeout_s=5)


def test_embedded(capsys: pytest.CaptureFixture[str]) -> None:
    """The embedded store bears the load."""
    with EmbeddedTopology() as topology:
        bear(EmbeddedSubject(topology), capsys)


@pytest.mark.store("redis")
def test_redis(antipode_redis: RedisTopology, capsys: pytest.CaptureFixture[str]) -> None:
    """Redis bears the load."""
    bear(RedisSubject(antipode_redis), capsys)


@pytest.mark.store("rabbitmq")
def test_rabbitmq(antipode_rabbitmq: RabbitMQTopology, capsys: pytest.CaptureFixture[str]) -> None:
    """RabbitMQ bears the load, promotions aside."""
    bear(RabbitMQSubject(antipode_rabbitmq), capsys)


@pytest.mark.store("mysql")
def test_mysql(antipode_mysql: MySQLTopology, capsys: pytest.CaptureFixture[str]) -> None:
    """MySQL bears the load."""
    bear(MySQLSubject(antipode_mysql), capsys)


@pytest.mark.store("mariadb")
def test_mariadb(antipode_mariadb: MariaDBTopology, capsys: pytest.CaptureFixture[str]) -> None:
    """MariaDB bears the load."""
    bear(MySQLSubject(antipode_mariadb), capsys)


@pytest.mark.store("mongodb")
def test_mongodb(antipode_mongodb: MongoDBTopology, capsys: pytest.CaptureFixture[str]) -> None:
    """MongoDB bears the load."""
    bear(MongoDBSubject(antipode_mongodb), capsys)
