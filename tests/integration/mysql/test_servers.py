"""The servers of the MySQL and MariaDB topologies: accounts, options, and nothing left behind."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import Any

import pymysql
import pytest
from sqlalchemy import create_engine, text

from antipode import ConfigurationError
from antipode_testing import MariaDBTopology, MySQLTopology, ServerFailed, ServerMissing
from antipode_testing.servers.mysql import install as mysql_install

from ._servers import revoke
from ._sql_topology import KINDS, STORES, client, keys, new_table, put, run


@pytest.fixture(params=STORES)
def topology(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(f"antipode_{request.param}")


@pytest.fixture
def table(topology: Any) -> str:
    """An empty table of this test alone, on both servers."""
    return new_table(topology)


def test_a_service_may_do_what_services_may(topology: Any, table: str) -> None:
    """Its account owns its database and nothing else; SQLAlchemy connects by the given address."""
    topology.execute(revoke(topology))  # What tests of shims grant to it.
    topology.wait_replicated()
    engine = create_engine(topology.url(topology.replica))
    with engine.connect() as connection:
        assert connection.execute(text("SELECT DATABASE()")).scalar_one() == topology.database
    engine.dispose()
    forbidden = (
        "SET GLOBAL max_connections = 99",
        "CREATE DATABASE other",
        "SELECT * FROM mysql.user",
        "SHOW REPLICA STATUS",
        "STOP REPLICA",
        "SET sql_log_bin = 0",
    )
    for address in (topology.primary, topology.replica):
        with client(topology, address) as connection:
            for statement in forbidden:
                with pytest.raises(pymysql.Error):
                    run(connection, statement)
    with client(topology, topology.replica) as copy, pytest.raises(pymysql.Error):
        put(copy, table, "on a replica")


def test_options_of_the_servers_and_of_the_account(topology: Any) -> None:
    """Options reach every server, and the account may ask for replication's state if it shall."""
    kind = KINDS[topology.store]
    tracking = {
        "mysql": ("session-track-gtids", "OFF"),
        "mariadb": ("session-track-system-variables", "autocommit"),
    }
    name, value = tracking[topology.store]
    with kind(config={name: value}, replication_client=True) as other:
        for address in (other.primary, other.replica):
            with client(other, address) as connection:
                variable = name.replace("-", "_")
                assert run(connection, f"SELECT @@{variable}") == [(value,)]
                run(connection, "SHOW REPLICA STATUS")
                run(connection, "SHOW BINARY LOGS")


@pytest.mark.store("mysql")
def test_mysql_replicates_without_gtids(antipode_mysql: MySQLTopology) -> None:
    """With GTIDs off replication runs by file and offset, and a cut heals."""
    off = {"gtid-mode": "OFF", "enforce-gtid-consistency": "OFF"}
    with MySQLTopology(config=off) as topology:
        table = new_table(topology)
        topology.cut()
        with client(topology, topology.primary) as primary:
            put(primary, table, "1")
        assert not keys(topology, topology.replica, table)
        topology.heal()
        topology.wait_replicated()
        assert keys(topology, topology.replica, table) == {"1"}


@pytest.mark.store("mysql")
def test_mysql_replicates_semi_synchronously(antipode_mysql: MySQLTopology) -> None:
    """With the plug-ins loaded a commit waits for a replica to have received it."""
    config = {
        "plugin-load-add": "semisync_source.so;semisync_replica.so",
        "rpl-semi-sync-source-timeout": "100000",
        "rpl-semi-sync-replica-enabled": "1",
    }
    with MySQLTopology(config=config) as topology:
        assert _semi_sync_cost_s(topology, "rpl-semi-sync-source-enabled") >= 0.099


@pytest.mark.store("mariadb")
def test_mariadb_replicates_semi_synchronously(antipode_mariadb: MariaDBTopology) -> None:
    """With semi-synchronous replication on a commit waits for a replica to have received it."""
    config = {
        "rpl-semi-sync-master-timeout": "100000",
        "rpl-semi-sync-slave-enabled": "1",
    }
    with MariaDBTopology(config=config) as topology:
        assert _semi_sync_cost_s(topology, "rpl-semi-sync-master-enabled") >= 0.099


def _semi_sync_cost_s(topology: Any, variable: str) -> float:
    """How long a write takes while the replica's link has 100 ms of lag."""
    table = new_table(topology)
    # On the primary alone: a replica would wait for replicas of its own.
    topology.config({variable: 1})
    topology.set_lag(100)
    with client(topology, topology.primary) as primary:
        began = time.perf_counter()
        put(primary, table, "1")
        return time.perf_counter() - began


def test_config_is_restored_by_reset(topology: Any) -> None:
    """What a test configures on a server does not reach the next test."""
    before = topology.execute("SELECT @@GLOBAL.max_connections AS n")
    topology.config({"max-connections": 77})
    topology.config({"max-connections": 78})
    assert topology.execute("SELECT @@GLOBAL.max_connections AS n") == [{"n": 78}]
    topology.reset()
    assert topology.execute("SELECT @@GLOBAL.max_connections AS n") == before


def test_nothing_is_left_behind(topology: Any) -> None:
    """Closing stops processes, threads, ports and directories, a suspended server's included."""
    threads = set(threading.enumerate())
    other = KINDS[topology.store]()
    with other:
        addresses = (other.primary, other.replica, other.link().address)
        directories = [_directory(other, None), _directory(other, 0)]
        other.suspend_replica()
    assert other.closed
    for address in addresses:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=1).close()
    assert not [path for path in directories if path.exists()]
    assert set(threading.enumerate()) <= threads
    other.close()
    with pytest.raises(ConfigurationError, match="context manager"):
        _ = other.primary


def test_a_start_disturbs_no_other_server(topology: Any) -> None:
    """What a server has at work in its temporary directory outlives the start of another one.

    A server removes such files as it starts, whosoever they are, and a query that sorts on the
    disk then fails in a server that shares the directory.
    """
    (row,) = topology.execute("SELECT @@tmpdir AS path")
    at_work = Path(row["path"]) / "#sql-temptable-4e25-31-ba.MAI"
    at_work.touch()
    topology.restart_replica()
    with KINDS[topology.store]():
        assert at_work.exists()
    at_work.unlink()


def test_an_initialisation_disturbs_no_server(
    topology: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does making a data directory remove what a server of this machine has at work."""
    at_work = tmp_path / "#sql-temptable-4e25-31-ba.MAI"
    at_work.touch()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    install = mysql_install.mysql if topology.store == "mysql" else mysql_install.mariadb
    assert install().template().is_dir()
    assert at_work.exists()


def _directory(topology: Any, replica: int | None) -> Path:
    (row,) = topology.execute("SELECT @@datadir AS path", replica=replica)
    return Path(row["path"]).parent


def test_a_server_that_cannot_start_leaves_nothing(
    topology: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option that does not exist is an error with the server's own words; nothing stays."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    threads = set(threading.enumerate())
    with (
        pytest.raises(ServerFailed, match="no-such-option"),
        KINDS[topology.store](config={"no-such-option": "1"}),
    ):
        pytest.fail("it started")
    assert not list(tmp_path.iterdir())
    assert set(threading.enumerate()) <= threads


def test_a_failed_initialisation_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no data directory can be made there is an error, and no half of one in the cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    script = ("/bin/sh", "-c", 'mkdir "$0"; echo broken; exit 1', "")
    broken = mysql_install.Installation(Path("/bin/sh"), "none", script)
    with pytest.raises(ServerFailed, match="broken"):
        broken.template()
    assert {path.name for path in (tmp_path / "antipode-testing").iterdir()} == {"lock"}


def test_mariadb_under_mysqls_name_is_not_mysql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `mysqld` that is MariaDB's counts as no MySQL, and the message says what to install."""
    impostor = tmp_path / "mysqld"
    impostor.write_text("#!/bin/sh\necho mysqld Ver 10.11.19-MariaDB\n")
    impostor.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(mysql_install, "SERVER_DIRECTORIES", ())
    mysql_install.mysql.cache_clear()
    with pytest.raises(ServerMissing, match="MySQL's own"):
        mysql_install.mysql()
    mysql_install.mysql.cache_clear()


def test_bad_arguments_are_refused(topology: Any) -> None:
    """A replica that does not exist, or a step out of order, is one clear error."""
    with pytest.raises(ConfigurationError, match="at least one"):
        KINDS[topology.store](replicas=0)
    with pytest.raises(ConfigurationError, match="no replica 3"):
        topology.suspend_replica(3)
    with pytest.raises(ConfigurationError, match="no failover"):
        topology.demote_old_primary()
