"""Whether any barrier succeeds early: many rounds, wandering lag, other writers, and pauses."""

from __future__ import annotations

import itertools
import os
import random
import threading
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from tests.integration.postgresql._clients import body

if TYPE_CHECKING:
    from tests.integration.postgresql._clients import Clients

pytestmark = [pytest.mark.store("postgresql"), pytest.mark.timeout(600)]
ROUNDS = int(os.environ.get("ANTIPODE_RACE_ROUNDS", "600"))
UPDATE = "UPDATE posts SET body = %s WHERE id = 1"


def disturb(clients: Clients, stop: threading.Event) -> None:
    """Write beside, hold back what others flush, and let the lag wander."""
    noise = clients.plain(autocommit=True)
    noise.execute("CREATE TABLE IF NOT EXISTS noise (a text)")
    chosen = random.Random(7)
    while not stop.wait(0.003):
        if chosen.random() < 0.3:
            noise.execute("SET synchronous_commit = off")
            noise.execute("INSERT INTO noise VALUES (repeat('x', 300))")
            noise.execute("SET synchronous_commit = on")
        noise.execute("INSERT INTO noise VALUES ('a')")
        if chosen.random() < 0.1:
            clients.topology.set_lag(chosen.choice([0, 1, 5, 20]))


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("at", ["now", "read"])
def test_no_barrier_succeeds_early(clients: Clients, at: Any, *, autocommit: bool) -> None:
    """What was written at the primary is shown by the first read after it, every time."""
    writer, reader = clients.writer(autocommit=autocommit), clients.reader(autocommit=autocommit)
    stop = threading.Event()
    beside = threading.Thread(target=disturb, args=(clients, stop))
    beside.start()
    early = 0
    try:
        for number in itertools.islice(itertools.count(), ROUNDS):
            with antipode.scope() as scope:
                writer.execute(UPDATE, (str(number),))
                writer.commit()
                assert not scope.lineage.incomplete
                antipode.barrier(timeout=30, at=at)
                early += body(reader) != str(number)
                reader.commit()
    finally:
        stop.set()
        beside.join()
    assert early == 0
