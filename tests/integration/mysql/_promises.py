"""What tests of promises on MySQL and MariaDB share: their table, a branch and its readers."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pymysql
from sqlalchemy import create_engine

import antipode
from antipode import Lineage, Promise, Status
from antipode_shims import mysql
from antipode_testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode.shim import Outcome

    from ._servers import Topology

STORE = "posts"


def make_tables(topology: Topology) -> None:
    """The table of promises as the migration prints it, and one for data."""
    for statement in mysql.promises_ddl("app.antipode_promises"):
        topology.execute(statement)
    topology.execute("CREATE TABLE IF NOT EXISTS app.refunds (id CHAR(32) PRIMARY KEY)")
    topology.wait_replicated()


class Branches:
    """A primary and a replica, both registered, and engines that last for a test."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._close: list[Callable[[], object]] = []
        make_tables(topology)
        self.primary = self.engine(datastore=STORE)
        self.replica = self.engine(topology.replica, datastore=STORE, reads_from="replica")

    def engine(self, address: Any = None, **options: Any) -> Any:
        """An engine, instrumented where there are options."""
        made = create_engine(self.topology.url(address or self.topology.primary))
        self._close.append(made.dispose)
        if options:
            mysql.instrument_engine(made, **options)
            self._close.append(lambda: mysql.uninstrument_engine(made))
        return made

    def connect(self) -> Any:
        """A PyMySQL connection to the primary that nothing instruments, autocommit off."""
        where = self.topology.primary
        return pymysql.connect(
            host=where.host,
            port=where.port,
            user=self.topology.user,
            password=self.topology.password,
            database=self.topology.database,
        )

    def refund(self, promise: Promise, engine: Any = None) -> None:
        """What the branch does: data and record in one transaction."""
        with antipode.scope(), (engine or self.primary).begin() as connection:
            write(connection, promise)
            mysql.fulfil(connection, promise)

    def refunds(self, engine: Any = None) -> set[str]:
        """What a reader finds."""
        with (engine or self.replica).connect() as connection:
            return set(connection.exec_driver_sql("SELECT id FROM refunds").scalars())

    def close(self) -> None:
        """Take everything back."""
        while self._close:
            self._close.pop()()


def write(connection: Any, promise: Promise) -> None:
    """The data of a branch, by SQLAlchemy."""
    connection.exec_driver_sql(f"INSERT INTO refunds VALUES ('{promise.id}')")  # noqa: S608


def promised(seconds: float = 60) -> Promise:
    """A promise of its own request."""
    with antipode.scope():
        return antipode.promise(STORE, expires_in_s=seconds)


def outcome(promise: Promise, *, timeout: float = 10.0) -> Outcome:
    """What a barrier on it comes to."""
    lineage = Lineage(promises=[promise])
    return antipode.barrier(lineage, timeout=timeout, on_unmet="return").outcomes[0]


def is_open(promise: Promise) -> bool:
    """Whether a look shows no record of it, however long the first one takes."""
    found: list[Outcome] = []

    def looked() -> bool:
        found[:] = antipode.check(Lineage(promises=[promise])).outcomes
        return bool(found[0].server)

    wait_until(looked, what="a look", timeout_s=20)
    return found[0].status is Status.NOT_YET


@contextmanager
def floor(promise: Promise, *, timeout: float = 10.0) -> Iterator[None]:
    """A block whose reads wait for *promise*, on whatever connection they are made."""
    with antipode.scope(Lineage(promises=[promise])):
        antipode.barrier(timeout=timeout, at="read")
        yield
