"""Fail-overs under writes: afterwards each server's rows say what a barrier there may answer.

Two clients write all the time, one to the server that it began with, one to whoever is the primary;
meanwhile a replica is promoted and the old primary demoted.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import psycopg
import pymysql
import redis

import antipode
from antipode import Status
from antipode.shim import unregister
from antipode_shims import mysql, postgresql
from antipode_shims import redis as redis_shims
from antipode_testing import (
    MariaDBTopology,
    MySQLTopology,
    PostgreSQLTopology,
    RedisTopology,
    wait_until,
)

from ._line import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode import Lineage

    from ._line import Client

DATASTORE = "posts"
#: What a client says so that replies show positions.
TRACK = 1 << 23
#: Between two writes of one client, and how many each makes at least between two events.
PACE_S, WRITES = 0.02, 8
#: Within this time everything has happened that a stage waits for.
STAGE_S = 60.0
#: Within this time a barrier succeeds where the row is.
LEVEL_S = 5.0
#: And this long one waits, at most, that cannot say that the row is gone.
GONE_S = 0.5


@dataclass(frozen=True, slots=True)
class Write:
    """One write of a client.

    Attributes:
        number: of its row.
        lineage: of its request, after it.
        failed: whether its call raised.
        stage: in which it began.
    """

    number: int
    lineage: Lineage
    failed: bool
    stage: str


class Store(ABC):
    """One store: its servers, its client, and a shim of one server.

    Attributes:
        errors: what the client raises.
    """

    errors: ClassVar[tuple[type[BaseException], ...]]

    def __init__(self, replicas: int) -> None:
        """Start nothing yet."""
        self.topology = self.topologies(replicas=replicas, lag_ms=0)

    @property
    @abstractmethod
    def topologies(self) -> Any:
        """What makes the servers."""

    def begin(self) -> None:  # noqa: B027 - optional
        """Make what is written into."""

    def rejoin(self) -> None:  # noqa: B027 - optional
        """Let a sibling follow the new primary, if there is one, and nothing else does it."""

    @abstractmethod
    def connect(self, server: Any) -> Any:
        """An instrumented client of *server*; it has ``close()``."""

    @abstractmethod
    def write(self, client: Any, number: int) -> None:
        """Write one row."""

    @abstractmethod
    def rows(self, server: Any) -> set[int]:
        """What *server* has, as a plain client sees it."""

    @abstractmethod
    def shim(self, server: Any) -> Any:
        """A shim of the library's that reads *server* as a replica."""


class PostgreSQL(Store):
    """PostgreSQL, by psycopg."""

    errors = (psycopg.Error,)
    topologies = PostgreSQLTopology

    def begin(self) -> None:
        """One table."""
        self.topology.execute("CREATE TABLE kept (n bigint PRIMARY KEY)")
        self.topology.execute(f"GRANT ALL ON kept TO {self.topology.user}")

    def connect(self, server: Any) -> Any:
        """One connection, which commits by itself."""
        connection = psycopg.connect(self.topology.url(server), autocommit=True, connect_timeout=5)
        return postgresql.instrument_connection(connection, datastore=DATASTORE)

    def write(self, client: Any, number: int) -> None:
        """An INSERT."""
        client.execute("INSERT INTO kept VALUES (%s)", (number,))

    def rows(self, server: Any) -> set[int]:
        """All of the table."""
        with psycopg.connect(self.topology.url(server)) as plain:
            return {number for (number,) in plain.execute("SELECT n FROM kept")}

    def shim(self, server: Any) -> Any:
        """Of a standby."""
        return postgresql.shim(DATASTORE, self.topology.url(server), reads_from="replica")


class MySQL(Store):
    """MySQL, by PyMySQL."""

    errors = (pymysql.MySQLError, OSError)
    topologies: Any = partial(MySQLTopology, replication_client=True)

    def begin(self) -> None:
        """One table."""
        self.topology.execute("CREATE TABLE app.kept (n BIGINT PRIMARY KEY)")

    def connect(self, server: Any) -> Any:
        """One connection, which commits by itself."""
        connection = self._plain(server, client_flag=TRACK)
        return mysql.instrument_connection(connection, datastore=DATASTORE)

    def _plain(self, server: Any, **options: Any) -> Any:
        topology = self.topology
        account = {"user": topology.user, "password": topology.password, "database": "app"}
        place = {"host": server.host, "port": server.port, "connect_timeout": 5}
        return pymysql.connect(autocommit=True, **place, **account, **options)

    def write(self, client: Any, number: int) -> None:
        """An INSERT."""
        with client.cursor() as cursor:
            cursor.execute("INSERT INTO kept VALUES (%s)", (number,))

    def rows(self, server: Any) -> set[int]:
        """All of the table."""
        with closing(self._plain(server)) as plain, plain.cursor() as cursor:
            cursor.execute("SELECT n FROM kept")
            return {number for (number,) in cursor.fetchall()}

    def shim(self, server: Any) -> Any:
        """Of a replica."""
        return mysql.shim(DATASTORE, self.topology.url(server), reads_from="replica")


class MariaDB(MySQL):
    """MariaDB, by the same client."""

    topologies = partial(MariaDBTopology, replication_client=True)


class Redis(Store):
    """Redis, by redis-py."""

    errors = (redis.RedisError, OSError)
    topologies = RedisTopology

    def rejoin(self) -> None:
        """The sibling follows the new primary."""
        if len(self.topology.replicas) > 1:
            self.topology.resync_sibling(1)

    def connect(self, server: Any) -> Any:
        """A client, which tries once, and notes where logs end."""
        client = redis.Redis(host=server.host, port=server.port, socket_timeout=5)
        return redis_shims.instrument_client(client, datastore=DATASTORE, log_history=True)

    def write(self, client: Any, number: int) -> None:
        """A SET."""
        client.set(number, "v")

    def rows(self, server: Any) -> set[int]:
        """All keys but the library's."""
        with redis.Redis(host=server.host, port=server.port) as plain:
            return {int(key) for key in plain.scan_iter() if key.isdigit()}

    def shim(self, server: Any) -> Any:
        """Of a replica."""
        return redis_shims.shim(DATASTORE, self.topology.url(server), reads_from="replica")


class Writers:
    """The two clients, in threads of their own.

    Attributes:
        stage: what happens now.
        writes: what they wrote so far.
    """

    def __init__(self, store: Store) -> None:
        """Begin to write."""
        self.stage = "before"
        self.writes: list[Write] = []
        self._store = store
        self._lock = threading.Lock()
        self._number = 0
        self._ends = threading.Event()
        first = store.topology.primary
        places: list[Callable[[], Any]] = [lambda: first, lambda: store.topology.primary]
        self._threads = [threading.Thread(target=self._run, args=(place,)) for place in places]
        for each in self._threads:
            each.start()

    def _run(self, place: Callable[[], Any]) -> None:
        client, server = None, None
        while not self._ends.wait(PACE_S):
            if client is not None and server != place():
                client = self._closed(client)
            if client is None:
                server = place()
                with suppress(*self._store.errors):
                    client = self._store.connect(server)
                continue
            if not self._write(client):
                client = self._closed(client)
        self._closed(client)

    def _closed(self, client: Any) -> None:
        if client is not None:
            with suppress(*self._store.errors):
                client.close()

    def _write(self, client: Any) -> bool:
        with self._lock:
            self._number += 1
            number = self._number
        stage, failed = self.stage, False
        with antipode.scope() as scope:
            try:
                self._store.write(client, number)
            except self._store.errors:
                failed = True
            self.writes.append(Write(number, scope.lineage, failed, stage))
        return not failed

    def more(self, stage: str) -> None:
        """Go on to *stage*, once both have written some more."""
        wanted = len(self.writes) + 2 * WRITES
        wait_until(
            lambda: len(self.writes) >= wanted, timeout_s=STAGE_S, what=f"writes before {stage}"
        )
        self.stage = stage

    def end(self) -> None:
        """Stop."""
        self._ends.set()
        for each in self._threads:
            each.join()


def _round(make: Callable[[int], Store], choose: random.Random) -> tuple[list[Write], Counter[str]]:
    """One fail-over; the writes, and what is wrong with the answers."""
    store = make(choose.choice((1, 2)))
    with closing(store.topology):
        store.topology.start()
        store.begin()
        store.topology.wait_replicated()
        writers = Writers(store)
        try:
            _events(store, writers, choose)
        finally:
            writers.end()
        store.topology.wait_replicated()
        unregister(DATASTORE)
        found: Counter[str] = Counter()
        primary = store.rows(store.topology.primary)
        for server in (store.topology.primary, store.topology.replica):
            wait_until(
                partial(lambda one: store.rows(one) == primary, server),
                timeout_s=STAGE_S,
                what="the servers to have the same rows",
            )
            with closing(store.shim(server)):
                found += _judged(writers.writes, primary)
    return writers.writes, found


def _events(store: Store, writers: Writers, choose: random.Random) -> None:
    topology, loses = store.topology, choose.random() < 0.7
    writers.more("held")
    hold, free = choose.choice(
        ((topology.pause, topology.resume), (topology.cut, topology.heal), (None, None))
    )
    if hold is not None:
        hold()
        writers.more("promoted")
        if not loses:
            free()
    topology.failover(lose_unreplicated=loses)
    writers.more("demoted")
    if hold is not None and loses:
        free()
    topology.demote_old_primary()
    store.rejoin()
    writers.more("after")
    writers.more("end")


def _judged(writes: list[Write], rows: set[int]) -> Counter[str]:
    """Compare what a barrier says of each write with whether its row is there."""
    found: Counter[str] = Counter()
    for write in writes:
        there = write.number in rows
        lineage = write.lineage
        if not lineage and not lineage.incomplete:
            found["lost"] += there or not write.failed
            continue
        if lineage.incomplete:
            found[f"marked: {write.stage}"] += not write.failed
            continue
        timeout = LEVEL_S if there else GONE_S
        result = antipode.barrier(lineage, timeout=timeout, on_unmet="return")
        statuses = {outcome.status for outcome in result.outcomes}
        if there and not result.ok:
            said = ", ".join(sorted(statuses))
            found["wrong" if Status.LOST in statuses else f"{said}: {write.stage}"] += 1
        elif not there and result.ok:
            found["early"] += 1
        elif not there and Status.NOT_YET in statuses:
            found[f"waits: {write.stage}"] += 1
    return found


@contextmanager
def _quiet() -> Iterator[None]:
    """Nothing is said of what is meant here."""
    loggers = [logging.getLogger(name) for name in ("antipode", "psycopg")]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)


def failovers(make: Callable[[int], Store], steps: int, seed: int) -> Line:
    """Fail over until so many writes were made."""
    unregister(DATASTORE)  # What another program left in this process.
    faults = Counter(lost=0, early=0, wrong=0)
    alarms: Counter[str] = Counter()
    began, made, rounds = time.monotonic(), 0, 0
    notes: list[str] = []
    with _quiet():
        while made < steps:
            writes, found = _round(make, random.Random(seed + rounds))
            wrong = {name: found[name] for name in faults if found[name]}
            if wrong:
                notes.append(f"seed {seed + rounds}: {wrong}")
            for name, times in found.items():
                (faults if name in faults else alarms)[name] += times
            made, rounds = made + len(writes), rounds + 1
    notes.append(f"{rounds} fail-overs")
    if alarms.total():
        notes.append(f"alarms: {dict(alarms.most_common())}")
    return Line(made, faults, time.monotonic() - began, alarms.total(), seed, tuple(notes))


CLIENTS: dict[str, Client] = {
    "postgresql": partial(failovers, PostgreSQL),
    "mysql": partial(failovers, MySQL),
    "mariadb": partial(failovers, MariaDB),
    "redis": partial(failovers, Redis),
}
