"""Barriers over MySQL and MariaDB when things go wrong: nothing passes early, nothing hangs."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

import antipode
from antipode import BarrierTimeout, DependencyLost, Lineage, Status, WriteId
from antipode.shim import PRIMARY_KEY, Unreachable
from antipode_shims import mysql as shims
from antipode_testing import MariaDBTopology, MySQLTopology, wait_until

from ._servers import (
    FLAVORS,
    Regions,
    only,
    regions,
    revoke,
    version,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=FLAVORS)
def here(request: pytest.FixtureRequest) -> Iterator[Regions]:
    with regions(request.getfixturevalue(request.param)) as found:
        yield found


def status(lineage: Lineage) -> Status:
    (outcome,) = antipode.check(lineage).outcomes
    return outcome.status


def value(here: Regions, key: str = "k") -> bytes | None:
    with antipode.scope():
        found: bytes | None = here.reader.read(key)[0]
        return found


def session(topology: MySQLTopology | MariaDBTopology) -> Any:
    """A connection of the application's user to the primary."""
    address = topology.primary
    return pymysql.connect(
        host=address.host,
        port=address.port,
        user=topology.user,
        password=topology.password,
        database=topology.database,
        autocommit=True,
    )


def test_lost_write_stays_lost_when_numbers_go_on(here: Regions) -> None:
    """After a failover the new primary's later numbers never stand for a lost write."""
    here.replicated()
    here.topology.pause()
    lost = here.write("lost")
    here.topology.failover(lose_unreplicated=True)
    assert status(lost) is Status.LOST
    here.reconnect()
    for number in range(5):
        here.write("after", str(number).encode())
    with pytest.raises(DependencyLost):
        antipode.barrier(lost, timeout=5)
    assert value(here, "lost") is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "made",
    [
        pytest.param(MySQLTopology, marks=pytest.mark.store("mysql"), id="mysql"),
        pytest.param(MariaDBTopology, marks=pytest.mark.store("mariadb"), id="mariadb"),
    ],
)
def test_lost_write_at_a_sibling(made: Any) -> None:
    """A sibling of the promoted replica shows no lost write, though its position has passed it."""
    with made(2, replication_client=True) as topology, regions(topology) as here:
        here.replicated()
        sibling = topology.replicas[1]
        here.reader.close()
        here.reader = shims.shim("posts", topology.url(sibling), reads_from="replica")
        kept = here.replicated()
        topology.pause()
        lost = here.write("lost")
        topology.failover(lose_unreplicated=True)
        topology.resume(replica=1)
        here.reconnect()
        after = [here.write("after", str(number).encode()) for number in range(5)][-1]
        assert antipode.barrier(after.merge(kept), timeout=20).ok
        with pytest.raises(DependencyLost):
            antipode.barrier(lost, timeout=10)
        assert value(here, "lost") is None


def test_promoted_server_without_privilege(here: Regions) -> None:
    """Where the user may not ask, what a promoted server lacks is unknown, at once."""
    here.replicated()
    here.topology.execute(revoke(here.topology))
    here.topology.wait_replicated()
    here.topology.pause()
    lost = here.write("lost")
    here.reader.close()
    replica = here.topology.replica
    here.topology.failover(lose_unreplicated=True)
    here.reader = shims.shim("posts", here.topology.url(replica), reads_from="replica")
    assert status(lost) is Status.UNKNOWN_LOG


def test_cut_replica_is_late_and_catches_up(here: Regions) -> None:
    """A partition between the servers is lag: nothing is lost, and what waits passes after it."""
    here.replicated()
    here.topology.cut()
    lineage = here.write("k", b"2")
    with pytest.raises(BarrierTimeout):
        antipode.barrier(lineage, timeout=0.3)
    assert status(lineage) is Status.NOT_YET
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(antipode.barrier, lineage, timeout=20)
        here.topology.heal()
        assert waiting.result(25).ok
    assert value(here) == b"2"


def test_restart_while_waiting(here: Regions) -> None:
    """A barrier goes on through a restart of the server it waits at."""
    here.replicated()
    here.topology.pause()
    lineage = here.write("k", b"2")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(antipode.barrier, lineage, timeout=25)
        wait_until(lambda: bool(here.waiting()), what="a blocked statement", timeout_s=5)
        here.topology.restart_replica()
        assert not waiting.done()
        here.topology.resume()
        assert waiting.result(30).ok
    assert value(here) == b"2"


def test_stopped_applier(here: Regions) -> None:
    """What a replica received and has not applied is not visible."""
    here.replicated()
    here.topology.pause_applier()
    lineage = here.write("k", b"2")
    with pytest.raises(BarrierTimeout):
        antipode.barrier(lineage, timeout=0.3)
    here.topology.resume_applier()
    assert antipode.barrier(lineage, timeout=10).ok
    assert value(here) == b"2"


def test_purged_logs_are_history_all_the_same(here: Regions) -> None:
    """Positions whose binary logs were purged stay visible, on the replica and on a new copy."""
    old = here.replicated()
    here.topology.execute("FLUSH BINARY LOGS", replica=0)
    names = here.topology.execute("SHOW BINARY LOGS", replica=0)
    here.topology.execute(f"PURGE BINARY LOGS TO '{names[-1]['Log_name']}'", replica=0)
    here.reader.close()
    here.reader = shims.shim(
        "posts", here.topology.url(here.topology.replica), reads_from="replica"
    )
    assert status(old) is Status.VISIBLE


def test_stopped_primary_does_not_stop_barriers(here: Regions) -> None:
    """A frozen primary leaves what is replicated visible, and what is not late."""
    before = here.replicated()
    here.topology.pause()
    late = here.write("k", b"2")
    here.topology.suspend_primary()
    started_s = time.monotonic()
    assert antipode.barrier(before, timeout=5).ok
    with pytest.raises(BarrierTimeout):
        antipode.barrier(late, timeout=0.4)
    assert time.monotonic() - started_s < 2
    here.topology.resume_primary()


def test_demoted_primary_is_no_fence(here: Regions) -> None:
    """A server that takes no writes any more does not stand for the primary's position."""
    here.replicated()
    assert here.writer.fence(timeout_s=2)
    here.topology.config({"read_only": 1})
    with pytest.raises(Unreachable):
        here.writer.fence(timeout_s=2)


@pytest.mark.store("mysql")
def test_gap_below_a_number(antipode_mysql: MySQLTopology) -> None:
    """With an open gap, a write waits for its own run: neither for ever nor without the run."""
    with regions(antipode_mysql) as here:
        here.replicated()
        antipode_mysql._rebuild = True
        (row,) = antipode_mysql.execute("SELECT @@GLOBAL.server_uuid AS uuid")
        far = only(here.write()).version
        assert isinstance(far, int)
        jump = far + 1_000_000
        for statement in (
            f"SET gtid_next = '{row['uuid']}:{jump}'",
            "CREATE TABLE app.beyond (id INT PRIMARY KEY)",
            "SET gtid_next = 'AUTOMATIC'",
        ):
            antipode_mysql.execute(statement)
        plain = WriteId("posts", row["uuid"], jump, 500_000)
        antipode_mysql.wait_replicated()
        assert status(Lineage([plain])) is not Status.VISIBLE
        assert status(Lineage([replace(plain, key=f"{row['uuid']}/{jump}")])) is Status.VISIBLE
        with antipode.scope():
            covered = here.writer.read("k")[1]
        assert {write.key for write in covered} >= {row["uuid"], f"{row['uuid']}/{jump}"}
        antipode_mysql.pause()
        after = here.write("k", b"2")
        assert only(after).key == row["uuid"]
        assert status(after) is Status.NOT_YET
        antipode_mysql.resume()
        assert antipode.barrier(after.merge(covered), timeout=10).ok


@pytest.mark.store("mysql")
def test_tagged_transactions(antipode_mysql: MySQLTopology) -> None:
    """A tag is a log of its own, waited for as such."""
    if version(antipode_mysql) < (8, 3):
        pytest.skip("tags came with MySQL 8.3")
    with regions(antipode_mysql) as here:
        here.replicated()
        antipode_mysql._rebuild = True  # Other tests count on one log.
        antipode_mysql.pause()
        antipode_mysql.execute("SET gtid_next = 'AUTOMATIC:billing'")
        antipode_mysql.execute("CREATE TABLE IF NOT EXISTS app.tagged (id INT PRIMARY KEY)")
        antipode_mysql.execute("SET gtid_next = 'AUTOMATIC'")
        tagged = [w for w in here.writer.fence(timeout_s=2) if w.key.endswith(":billing")]
        assert tagged
        assert status(Lineage(tagged)) is Status.NOT_YET
        antipode_mysql.resume()
        assert antipode.barrier(Lineage(tagged), timeout=10).ok


@pytest.mark.store("mariadb")
def test_several_domains(antipode_mariadb: MariaDBTopology) -> None:
    """Each domain of MariaDB is a log of its own; a barrier waits for all of them."""
    with regions(antipode_mariadb) as here:
        here.replicated()
        antipode_mariadb._rebuild = True  # Other tests count on one log.
        connection = shims.instrument_connection(session(antipode_mariadb), datastore="posts")
        antipode_mariadb.pause()
        with antipode.scope() as scope, connection.cursor() as cursor:
            cursor.execute("REPLACE INTO antipode_kv (k, v) VALUES ('zero', '1')")
            antipode_mariadb.execute("SET gtid_domain_id = 7")
            antipode_mariadb.execute("REPLACE INTO app.antipode_kv (k, v) VALUES ('seven', '1')")
            antipode_mariadb.execute("SET gtid_domain_id = 0")
            fence = here.writer.fence(timeout_s=2)
            both = scope.lineage.merge(Lineage(w for w in fence if w.key != PRIMARY_KEY))
        assert {write.key for write in both} == {"0.1", "7.1"}
        result = antipode.check(both)
        assert {outcome.status for outcome in result.outcomes} == {Status.NOT_YET}
        antipode_mariadb.resume()
        assert antipode.barrier(both, timeout=10).ok
        assert value(here, "zero") == value(here, "seven") == b"1"
        shims.uninstrument_connection(connection)
        connection.close()
