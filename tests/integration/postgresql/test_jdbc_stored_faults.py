"""Rows with stored lineages that many write and delete while Java reads and writes them, too."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from antipode import Lineage
from tests.agent.client import StoreError
from tests.integration.postgresql._beside import make_table
from tests.integration.postgresql._clients import DATASTORE
from tests.integration.postgresql._jdbc import Application, Client, application
from tests.integration.postgresql.test_beside_races import (
    BESIDE,
    KEYS,
    READS,
    STATEMENTS,
    WRITERS,
    WRITES,
    cause,
    write,
)

if TYPE_CHECKING:
    from tests.agent.lending import Lend
    from tests.integration.postgresql._clients import Clients

pytestmark = [pytest.mark.store("postgresql"), pytest.mark.slow]


def java_writes(app: Application, client: Client, writer: int, rolls: random.Random) -> None:
    """As Python's writers do."""
    for number in range(1, WRITES):
        values: dict[str, Any] = {"id": rolls.randrange(KEYS), "other": rolls.randrange(KEYS)}
        statement = rolls.choice(STATEMENTS).replace("%(body)s", f"'{writer}:{number}'")
        begins = rolls.random() < 0.7
        with app.remote.scope(Lineage([cause(writer, number)])):
            try:
                if begins:
                    client.call("begin")
                client.call("update", statement % values)
                if begins:
                    client.call("commit")
            except StoreError:
                if begins:
                    client.call("rollback")
            client.call("close")


def java_reads(app: Application, client: Client, rolls: random.Random) -> int:
    """Read again and again; how many rows had what their writers depended on."""
    seen = 0
    for _ in range(READS):
        begins = rolls.random() < 0.5
        with app.remote.scope() as scope:
            if begins:
                client.call("begin")
            rows = client.call("query", "SELECT body, id FROM orders")
            if begins:
                client.call("commit")
            client.call("close")
            found: dict[str, Any] = {each.key: each.version for each in scope.lineage}
            complete = ("", "size") not in scope.lineage.incomplete
            assert (DATASTORE, "unsampled") not in scope.lineage.incomplete
        for body in rows:
            writer, number = map(int, body.split(":"))
            seen += 1
            assert not complete or found.get(f"w{writer}", 0) >= number, (body, found)
    return seen


@pytest.mark.parametrize("seed", range(2))
def test_no_reader_in_java_loses_a_cause(
    clients: Clients, capsys: pytest.CaptureFixture[str], lend: Lend, seed: int
) -> None:
    """At the primary and at the standby, whatever happens between a read and its question."""
    make_table(clients, capsys, "id int PRIMARY KEY, body text")
    rolls = random.Random(seed)
    topology = clients.topology
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        app = application(topology, lend)

        def open_at(address: Any, **options: Any) -> Client:
            return stack.enter_context(app.client(address, tables=["orders"], **options))

        others = [clients.writer(**BESIDE) for _ in range(WRITERS - 1)]
        mine, near = open_at(topology.primary), open_at(topology.primary)
        far = open_at(topology.replica, reads_from="replica", one_server=True)
        seeds = [random.Random(rolls.random()) for _ in range(WRITERS + 2)]
        writing = [pool.submit(write, each, at, seeds[at]) for at, each in enumerate(others)]
        writing.append(pool.submit(java_writes, app, mine, WRITERS - 1, seeds[WRITERS - 1]))
        reading = [
            pool.submit(java_reads, app, each, seeds[WRITERS + at])
            for at, each in enumerate((near, far))
        ]
        for each in writing:
            each.result()
        assert all(each.result() for each in reading)
