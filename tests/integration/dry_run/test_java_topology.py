"""Java's dry run asks the servers of clients of which nobody declared that they read replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests._lines import records_in
from tests.agent.client import AgentFailed, AgentProcess, StoreError
from tests.conformance._agents import command

if TYPE_CHECKING:
    from pathlib import Path

    from antipode_testing import Address, MongoDBTopology, RedisTopology
    from tests.integration.mysql._clients import Sql

#: A write of the datastore, of which nobody needs to know where it is.
LINEAGE = "1~kposts.1.elsewhere"


def undeclared(store: str, address: Address, folder: Path, **access: str) -> list[str]:
    """The datastores whose lint says that they are replicas, after reads at *address*."""
    server = {"host": address.host, "port": address.port, **access}
    with AgentProcess(command("java")) as java:
        shim = java.ask("open_shim", store=store, datastore="posts", server=server, client=True)
        java.ask("configure", settings={"mode": "dry-run", "dry_run_dir": str(folder)})
        scope = java.ask("open_scope", text=LINEAGE)["scope"]
        for _ in range(2):
            with_errors(java, "read", shim=shim["shim"], key="k", scope=scope)
        java.ask("configure", settings={"mode": "enforce", "dry_run_dir": None})
    lints = [one for one in records_in(folder) if one["kind"] == "lint"]
    return [one["datastore"] for one in lints if one["lint"] == "undeclared-replica"]


def with_errors(java: AgentProcess, op: str, **arguments: Any) -> None:
    """What is read need not be there."""
    try:
        java.ask(op, **arguments)
    except (StoreError, AgentFailed):
        return


@pytest.mark.store("redis")
def test_an_undeclared_replica_of_redis(antipode_redis: RedisTopology, tmp_path: Path) -> None:
    """A client of a replica that does not say so is a lint, once; one of the primary is none."""
    assert undeclared("redis", antipode_redis.primary, tmp_path / "primary") == []
    assert undeclared("redis", antipode_redis.replica, tmp_path / "replica") == ["posts"]


def test_an_undeclared_replica_of_sql(sql: Sql, tmp_path: Path) -> None:
    """As on Redis, by replication's state, or `read_only` for a user who may not ask for it."""
    topology = sql.topology
    access = {name: getattr(topology, name) for name in ("user", "password", "database")}
    store = "mariadb" if sql.mariadb else "mysql"
    assert undeclared(store, topology.primary, tmp_path / "primary", **access) == []
    assert undeclared(store, topology.replica, tmp_path / "replica", **access) == ["posts"]


@pytest.mark.store("mongodb")
def test_an_undeclared_replica_of_mongodb(
    antipode_mongodb: MongoDBTopology, tmp_path: Path
) -> None:
    """As on Redis, for a client that is connected to a secondary directly."""
    primary, replica = antipode_mongodb.primary, antipode_mongodb.replica
    assert undeclared("mongodb", primary, tmp_path / "primary", database="app") == []
    assert undeclared("mongodb", replica, tmp_path / "replica", database="app") == ["posts"]
