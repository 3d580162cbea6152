"""What tests of the MySQL and MariaDB topologies share: a service's connection and its table."""

from __future__ import annotations

import itertools
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

from antipode_testing import MariaDBTopology, MySQLTopology, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import Address

TIMEOUT_S = 15.0
KINDS: dict[str, type[MySQLTopology | MariaDBTopology]] = {
    "mysql": MySQLTopology,
    "mariadb": MariaDBTopology,
}
STORES = [pytest.param(name, marks=pytest.mark.store(name)) for name in KINDS]
NUMBERS = itertools.count(1)


def new_table(topology: Any) -> str:
    """An empty table that no other test knows, on every server."""
    name = f"t{next(NUMBERS)}_{os.getpid()}"
    with client(topology, topology.primary) as primary:
        run(primary, f"CREATE TABLE {name} (k VARCHAR(40) PRIMARY KEY, v VARCHAR(40))")
    topology.wait_replicated()
    return name


@contextmanager
def client(topology: Any, address: Address) -> Iterator[Any]:
    """A service's connection to a server."""
    connection = pymysql.connect(
        host=address.host,
        port=address.port,
        user=topology.user,
        password=topology.password,
        database=topology.database,
        autocommit=True,
        read_timeout=TIMEOUT_S,
    )
    try:
        yield connection
    finally:
        connection._force_close()


def run(connection: Any, statement: str, *args: object) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, args or None)
        return list(cursor.fetchall())


def put(connection: Any, table: str, key: str) -> None:
    run(connection, f"REPLACE INTO {table} VALUES (%s, 'v')", key)  # noqa: S608 - a name of ours


def keys(topology: Any, address: Address, table: str) -> set[str]:
    with client(topology, address) as connection:
        return {row[0] for row in run(connection, f"SELECT k FROM {table}")}  # noqa: S608 - a name of ours


def await_key(connection: Any, table: str, key: str) -> float:
    """Wait until a server shows a row; the moment it did."""
    statement = f"SELECT 1 FROM {table} WHERE k = %s"  # noqa: S608 - a name of ours
    wait_until(
        lambda: bool(run(connection, statement, key)),
        what=key,
        timeout_s=TIMEOUT_S,
        interval_s=0.0005,
    )
    return time.perf_counter()
