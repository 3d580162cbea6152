"""Rows with stored lineages that many write, delete, insert and rename: no reader loses a cause."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import antipode
from antipode import Lineage, WriteId
from tests.integration.postgresql._beside import make_table
from tests.integration.postgresql._clients import DATASTORE

if TYPE_CHECKING:
    from tests.integration.postgresql._clients import Clients

pytestmark = [pytest.mark.store("postgresql"), pytest.mark.slow]
BESIDE: dict[str, Any] = {"lineage": "beside", "tables": ["orders"]}
WRITERS, KEYS, WRITES, READS = 3, 3, 150, 150
_REFUSED = (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected)
STATEMENTS = (
    "UPDATE orders SET body = %(body)s WHERE id = %(id)s",
    "DELETE FROM orders WHERE id = %(id)s",
    "INSERT INTO orders VALUES (%(id)s, %(body)s)",
    "INSERT INTO orders VALUES (%(id)s, %(body)s) ON CONFLICT (id) DO UPDATE SET body = %(body)s",
    "UPDATE orders SET id = %(other)s, body = %(body)s WHERE id = %(id)s",
)


def cause(writer: int, number: int) -> WriteId:
    """What the write of that number depends on."""
    return WriteId("elsewhere", f"w{writer}", number, written_hour=490_000)


def write(connection: Any, writer: int, rolls: random.Random) -> None:
    """Write again and again, in transactions and outside of them."""
    for number in range(1, WRITES):
        connection.autocommit = rolls.random() < 0.3
        values: dict[str, Any] = {"id": rolls.randrange(KEYS), "other": rolls.randrange(KEYS)}
        values["body"] = f"{writer}:{number}"
        with antipode.scope(Lineage([cause(writer, number)])):
            try:
                connection.execute(rolls.choice(STATEMENTS), values)
                connection.commit()
            except _REFUSED:
                connection.rollback()


def read(connection: Any, rolls: random.Random) -> int:
    """Read again and again; how many rows had what their writers depended on."""
    seen = 0
    for _ in range(READS):
        connection.autocommit = rolls.random() < 0.5
        with antipode.scope() as scope:
            statement = "SELECT id, body FROM orders"
            rows = connection.execute(statement).fetchall()
            connection.commit()
            found: dict[str, Any] = {each.key: each.version for each in scope.lineage}
            complete = ("", "size") not in scope.lineage.incomplete
            assert (DATASTORE, "unsampled") not in scope.lineage.incomplete
        for _, body in rows:
            writer, number = map(int, body.split(":"))
            seen += 1
            assert not complete or found.get(f"w{writer}", 0) >= number, (body, found)
    return seen


@pytest.mark.parametrize("seed", range(2))
def test_no_reader_loses_a_cause(
    clients: Clients, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    """At the primary and at the standby, whatever happens between a read and its question."""
    make_table(clients, capsys, "id int PRIMARY KEY, body text")
    rolls = random.Random(seed)
    writers = [clients.writer(**BESIDE) for _ in range(WRITERS)]
    readers = [clients.writer(**BESIDE), clients.reader(one_server=True, **BESIDE)]
    with ThreadPoolExecutor() as pool:
        writing = [
            pool.submit(write, each, number, random.Random(rolls.random()))
            for number, each in enumerate(writers)
        ]
        reading = [pool.submit(read, each, random.Random(rolls.random())) for each in readers]
        for each in writing:
            each.result()
        assert all(each.result() for each in reading)
