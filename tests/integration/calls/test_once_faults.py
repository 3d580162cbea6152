"""Functions of ``once`` whose connection is lost, and what they cost."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from antipode import calls
from antipode_testing import LagProxy, wait_until
from tests.integration.calls.conftest import INSERT, insert

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.calls.conftest import Database

#: How long a reply is held back, which is longer than the test.
LONG_MS = 60_000.0


@pytest.fixture
def proxy(database: Database) -> Iterator[LagProxy]:
    """A proxy to the primary."""
    with LagProxy(database.topology.primary) as through:
        yield through


@pytest.fixture
def engine(database: Database, proxy: LagProxy) -> Iterator[sa.Engine]:
    """An engine through the proxy."""
    made = sa.create_engine(database.url(address=proxy.address))
    yield made
    made.dispose()


def test_a_commit_whose_answer_is_lost_is_not_doubled(
    database: Database, proxy: LagProxy, engine: sa.Engine
) -> None:
    """The call finds out by its name, and returns the reply that was committed."""
    runs: list[int] = []

    @calls.once(engine, timeout=30)
    def charge(session: Any, amount: int) -> int:
        runs.append(amount)
        insert(session, amount)
        return amount

    committing = threading.Event()

    @sa.event.listens_for(engine, "commit")
    def hold(_: object) -> None:
        if not committing.is_set():
            proxy.set_lag(LONG_MS, request_lag_ms=0)
            committing.set()

    def call() -> Any:
        with calls.call("order-1"):
            return charge(5)

    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(call)
        assert committing.wait(30)
        wait_until(lambda: database.charges() == [5], what="the commit", timeout_s=30)
        proxy.cut()
        proxy.set_lag(0)
        proxy.heal()
        assert called.result() == 5
    assert runs == [5]
    assert database.charges() == [5]


def test_a_connection_that_is_lost_before_the_commit_runs_again(
    database: Database, proxy: LagProxy, engine: sa.Engine
) -> None:
    """Nothing was committed: the function runs a second time, and has one effect."""
    runs: list[int] = []

    @calls.once(engine, timeout=30)
    def charge(session: Any, amount: int) -> int:
        insert(session, amount)
        runs.append(amount)
        if len(runs) == 1:
            proxy.cut()
            proxy.heal()
        return amount

    with calls.call("order-1"):
        assert charge(5) == 5
    assert runs == [5, 5]
    assert database.charges() == [5]


def test_a_call_takes_two_round_trips_more(
    database: Database, proxy: LagProxy, engine: sa.Engine
) -> None:
    """One takes the name, one stores the reply; a repetition has none of the function's."""
    charge = calls.once(engine, name="charge")(insert)

    def plain() -> None:
        with sa.orm.Session(engine) as session:
            session.execute(INSERT, {"amount": 5})
            session.commit()

    def once(name: str) -> None:
        with calls.call(name):
            charge(5)

    def counted(call: Any, *args: Any) -> int:
        before = proxy.traffic()
        call(*args)
        return (proxy.traffic() - before).exchanges

    counted(plain)
    usual = min(counted(plain) for _ in range(5))
    assert min(counted(once, f"order-{number}") for number in range(5)) - usual <= 2
    # It takes no name, finds the row, and rolls back.
    assert min(counted(once, "order-1") for _ in range(5)) <= usual + 1
    assert database.charges()
