"""The table of promises on MySQL and MariaDB: missing, forbidden, another's, swept, its cost."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

import antipode
from antipode import BarrierTimeout, ConfigurationError, Lineage, Promise
from antipode_shims import mysql
from antipode_testing import LagProxy, wait_until

from ._clients import exchanges
from ._promises import (
    STORE,
    Branches,
    floor,
    is_open,
    promised,
    write,
)


def test_a_missing_table_says_what_to_run(branches: Branches, unfinished: Any) -> None:
    """Fulfilling and abandoning name the command; a look waits, for the table may come."""
    promise = promised()
    branches.topology.execute("DROP TABLE app.antipode_promises")
    branches.topology.wait_replicated()
    says = pytest.raises(ConfigurationError, match="mysql migration --promises")
    with says:
        mysql.fulfil(unfinished, promise)
    with says, branches.primary.begin() as one:
        mysql.fulfil(one, promise)
    with says:
        antipode.abandon(promise)
    lineage = Lineage(promises=[promise])
    wait_until(
        lambda: "migration --promises" in antipode.check(lineage).outcomes[0].cause,
        what="a look that tells",
        timeout_s=10,
    )
    assert is_open(promise)
    with floor(promise, timeout=0.3), pytest.raises(BarrierTimeout):
        branches.refunds()


def test_who_may_not_look_is_told(branches: Branches) -> None:
    """A user without the privilege gets an error that names it, and nothing passes."""
    promise = promised()
    topology = branches.topology
    topology.execute("CREATE USER IF NOT EXISTS near@'%' IDENTIFIED BY 'near'")
    topology.execute("GRANT SELECT ON app.refunds TO near@'%'")
    topology.wait_replicated()
    branches.refund(promise)
    topology.wait_replicated()
    where = topology.replica
    url = f"mysql+pymysql://near:near@{where.host}:{where.port}/app"
    engine = create_engine(url, poolclass=NullPool)
    mysql.instrument_engine(engine, datastore=STORE, reads_from="replica")
    try:
        # Taken before, or the look of the other engine, whose user may, would do for it.
        with (
            engine.connect() as connection,
            floor(promise),
            pytest.raises((ConfigurationError, sqlalchemy.exc.DBAPIError)) as caught,
        ):
            connection.exec_driver_sql("SELECT id FROM refunds")
        assert "GRANT SELECT" in str(caught.value)
    finally:
        mysql.uninstrument_engine(engine)


def test_a_wrong_connection_is_refused(branches: Branches) -> None:
    """One of another datastore would record it where nobody looks."""
    with antipode.scope():
        elsewhere = antipode.promise("elsewhere", expires_in_s=60)
    with branches.primary.begin() as one, pytest.raises(ConfigurationError, match="elsewhere"):
        mysql.fulfil(one, elsewhere)
    with pytest.raises(ConfigurationError, match="no connection of"):
        mysql.fulfil(object(), promised())


def test_records_whose_time_is_over_go(branches: Branches, monkeypatch: pytest.MonkeyPatch) -> None:
    """At some fulfilments a batch is deleted, in no transaction of the application's."""
    admin = branches.topology.execute
    admin("DELETE FROM app.antipode_promises")
    _old(branches, 40)
    monkeypatch.setattr("antipode_shims._sql.promises.SWEEP_EVERY", 1)
    monkeypatch.setattr("antipode_shims.mysql._shim.base._SWEEP_S", 10)
    left = "SELECT COUNT(*) AS n FROM app.antipode_promises WHERE until_s < 40"
    with branches.primary.begin() as first, branches.engine().begin() as second:
        mysql.fulfil(first, promised())
        assert admin(left)[0]["n"] == 40 - 32
        mysql.fulfil(second, promised())
        assert admin(left)[0]["n"] == 0
    _old(branches, 3)
    branches.refund(promised())
    assert admin(left)[0]["n"] == 0


def _old(branches: Branches, number: int) -> None:
    rows = ", ".join(f"(X'{each:032x}', 1, 0, {each})" for each in range(number))
    branches.topology.execute(f"INSERT INTO app.antipode_promises VALUES {rows}")  # noqa: S608


def test_fulfilling_costs_one_round_trip(branches: Branches) -> None:
    """On a session without autocommit, where the promise is new."""
    with branches.primary.begin() as connection:
        write(connection, promised())
        seen: list[str] = []
        sqlalchemy.event.listen(
            connection, "before_cursor_execute", lambda *args: seen.append(args[2])
        )
        mysql.fulfil(connection, Promise(STORE, "0" * 31 + "1", 4_000_000_000))
        assert len(seen) == 1


def test_a_floor_costs_one_look(branches: Branches) -> None:
    """Two round trips without autocommit, and none for the reads behind it."""
    promise = promised()
    mysql.uninstrument_engine(branches.replica)
    with LagProxy(branches.topology.replica) as proxy:
        engine = branches.engine(proxy.address, datastore=STORE, reads_from="replica")
        with engine.connect() as connection:
            connection.exec_driver_sql("SELECT id FROM refunds").all()
            connection.rollback()
            branches.refund(promise)
            branches.topology.wait_replicated()
            costs: list[int] = []
            with floor(promise):
                for _ in range(2):
                    with exchanges(proxy) as made:
                        connection.exec_driver_sql("SELECT id FROM refunds").all()
                    costs += made
                    connection.rollback()
        engine.dispose()
    assert costs == [3, 1]
