"""The dry runs of Java and C++ report what nobody declared: replicas, messages without lineage."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pika
import pytest

from tests._lines import records_in
from tests.agent.client import AgentFailed, AgentProcess, StoreError
from tests.conformance._agents import command

if TYPE_CHECKING:
    from pathlib import Path

    from antipode_testing import Address, MongoDBTopology, RabbitMQTopology, RedisTopology
    from tests.integration.mysql._clients import Sql

#: A write of the datastore, of which nobody needs to know where it is.
LINEAGE = "1~kposts.1.elsewhere"


@pytest.fixture(params=["cpp", "java"])
def language(request: pytest.FixtureRequest) -> str:
    """Whose agent it is."""
    found: str = request.param
    return found


def lints(language: str, store: str, server: dict[str, Any], folder: Path, **options: Any) -> Any:
    """The lints of two reads, as their names and datastores."""
    with AgentProcess(command(language)) as agent:
        shim = agent.ask("open_shim", store=store, datastore="posts", server=server, **options)
        agent.ask("configure", settings={"mode": "dry-run", "dry_run_dir": str(folder)})
        scope = agent.ask("open_scope", text=LINEAGE)["scope"]
        for _ in range(2):
            with_errors(agent, "read", shim=shim["shim"], key="k", scope=scope)
        agent.ask("configure", settings={"mode": "enforce", "dry_run_dir": None})
    found = [one for one in records_in(folder) if one["kind"] == "lint"]
    return [(one["lint"], one["datastore"]) for one in found]


def undeclared(
    language: str, store: str, address: Address, folder: Path, **access: str
) -> list[str]:
    """The datastores whose lint says that they are replicas, after reads at *address*."""
    server = {"host": address.host, "port": address.port, **access}
    found = lints(language, store, server, folder, client=True)
    return [datastore for lint, datastore in found if lint == "undeclared-replica"]


def with_errors(agent: AgentProcess, op: str, **arguments: Any) -> None:
    """What is read need not be there."""
    try:
        agent.ask(op, **arguments)
    except (StoreError, AgentFailed):
        return


@pytest.mark.store("redis")
def test_an_undeclared_replica_of_redis(
    language: str, antipode_redis: RedisTopology, tmp_path: Path
) -> None:
    """A client of a replica that does not say so is a lint, once; one of the primary is none."""
    assert undeclared(language, "redis", antipode_redis.primary, tmp_path / "primary") == []
    assert undeclared(language, "redis", antipode_redis.replica, tmp_path / "replica") == ["posts"]


def test_an_undeclared_replica_of_sql(language: str, sql: Sql, tmp_path: Path) -> None:
    """As on Redis, by replication's state, or `read_only` for a user who may not ask for it."""
    topology = sql.topology
    access = {name: getattr(topology, name) for name in ("user", "password", "database")}
    store = "mariadb" if sql.mariadb else "mysql"
    assert undeclared(language, store, topology.primary, tmp_path / "primary", **access) == []
    assert undeclared(language, store, topology.replica, tmp_path / "replica", **access) == [
        "posts"
    ]


@pytest.mark.store("mongodb")
def test_an_undeclared_replica_of_mongodb(
    language: str, antipode_mongodb: MongoDBTopology, tmp_path: Path
) -> None:
    """As on Redis, for a client that is connected to a secondary directly."""
    primary, replica = antipode_mongodb.primary, antipode_mongodb.replica
    assert undeclared(language, "mongodb", primary, tmp_path / "primary", database="app") == []
    assert undeclared(language, "mongodb", replica, tmp_path / "replica", database="app") == [
        "posts"
    ]


@pytest.mark.store("rabbitmq")
@pytest.mark.parametrize(
    ("baggage", "carries"),
    [("", False), ("user=1", False), ("antipode=1", True), (f"antipode={LINEAGE}", True)],
)
def test_a_message_without_lineage_in_cpp(
    antipode_rabbitmq: RabbitMQTopology,
    tmp_path: Path,
    baggage: str,
    carries: bool,  # noqa: FBT001
) -> None:
    """One that no publisher of ours sent is a lint; of ours, also with an empty lineage, none."""
    queue = f"unlabelled.{uuid.uuid4().hex}"
    url = antipode_rabbitmq.url()
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.queue_declare(queue)
        headers = {"baggage": baggage} if baggage else {}
        channel.basic_publish("", queue, b"1", pika.BasicProperties(headers=headers))
        found = lints("cpp", "rabbitmq", {"url": url, "exchange": "", "queue": queue}, tmp_path)
        channel.queue_delete(queue)
    assert found == ([] if carries else [("message-without-lineage", "posts")])
