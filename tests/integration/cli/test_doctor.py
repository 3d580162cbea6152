"""`antipode doctor` over real servers: a healthy replica is no problem, a silent one is."""

from __future__ import annotations

import uuid
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from antipode_cli._doctor_stores import stores
from antipode_testing import LagProxy
from tests.integration.mysql._clients import STORES

if TYPE_CHECKING:
    from antipode_cli._check import Check


def examined(timeout_s: float = 5) -> Check:
    """What is said of the one datastore that is registered."""
    *_, check = stores(imported=True, timeout_s=timeout_s, automatic=False)
    return check


def assert_healthy() -> None:
    check = examined()
    assert check.verdict.value == "ok", check
    assert "its replica answers" in check.said


@pytest.fixture(params=[False, True], ids=["replica", "both"])
def both(request: pytest.FixtureRequest) -> bool:
    """Whether the process also writes, so that the primary's position can be asked for."""
    return bool(request.param)


def _roles(*, both: bool) -> list[Any]:
    return ["primary", "replica"] if both else ["replica"]


def test_embedded(antipode_embedded: Any, both: bool) -> None:  # noqa: FBT001 - a fixture
    """Two files."""
    from antipode_shims import embedded

    for role in _roles(both=both):
        embedded.shim("posts", getattr(antipode_embedded, role), reads_from=role)
    assert_healthy()


@pytest.mark.store("redis")
def test_redis(antipode_redis: Any, both: bool) -> None:  # noqa: FBT001 - a fixture
    """A Redis replica, asked for a position that no log of it has."""
    from antipode_shims import redis

    for role in _roles(both=both):
        address = getattr(antipode_redis, role)
        redis.shim("posts", f"redis://{address.host}:{address.port}", reads_from=role)
    assert_healthy()


@pytest.mark.store("redis")
def test_a_replica_that_is_registered_as_the_primary(antipode_redis: Any) -> None:
    """The server says what it is; what was meant only the application knows."""
    from antipode_shims import redis

    redis.shim("posts", antipode_redis.url(antipode_redis.replica), reads_from="primary")
    checks = list(stores(imported=True, timeout_s=5, automatic=False))
    told = [check for check in checks if "its server says it is a replica" in check.said]
    assert [check.verdict.value for check in told] == ["cannot tell"]
    assert "reads_from='replica'" in told[0].todo


@pytest.mark.store("redis")
def test_a_silent_redis(antipode_redis: Any) -> None:
    """The address leads nowhere."""
    from antipode_shims import redis

    with LagProxy(antipode_redis.replica) as proxy:
        address = proxy.address
        redis.shim("posts", f"redis://{address.host}:{address.port}", reads_from="replica")
        proxy.cut()
        check = examined(timeout_s=1)
    assert check.verdict.value == "problem", check
    assert "its replica does not answer" in check.said


@pytest.mark.store("mongodb")
def test_mongodb(antipode_mongodb: Any, both: bool) -> None:  # noqa: FBT001 - a fixture
    """A secondary that is named directly."""
    from antipode_shims import mongodb

    for role in _roles(both=both):
        address = getattr(antipode_mongodb, role)
        url = f"mongodb://{address.host}:{address.port}/?directConnection=true"
        mongodb.shim("posts", url, database="doctor", collection="posts", reads_from=role)
    assert_healthy()


@pytest.mark.parametrize("store", STORES)
def test_mysql_and_mariadb(store: str, request: pytest.FixtureRequest, both: bool) -> None:  # noqa: FBT001 - a fixture
    """A replica by GTID."""
    from antipode_shims import mysql

    topology = request.getfixturevalue(f"antipode_{store}")
    for role in _roles(both=both):
        mysql.shim("posts", topology.url(getattr(topology, role)), reads_from=role)
    assert_healthy()


@pytest.mark.parametrize(
    ("store", "where"),
    [
        pytest.param("dynamodb", {"table": "posts"}, marks=pytest.mark.store("dynamodb")),
        pytest.param("s3", {"bucket": "posts"}, marks=pytest.mark.store("s3")),
    ],
)
def test_regions_of_an_emulator(
    store: str,
    where: dict[str, str],
    both: bool,  # noqa: FBT001 - a fixture
    request: pytest.FixtureRequest,
) -> None:
    """A region of an emulator is healthy; one that is silent is a problem."""
    import boto3

    shims: Any = import_module(f"antipode_shims.{store}")
    regions: Any = request.getfixturevalue(f"antipode_{store}")

    def client(region: str, url: str) -> Any:
        options = {"region_name": region, "endpoint_url": url, **regions.credentials}
        return boto3.client(store, **options)

    home, away = map(client, regions.regions, regions.urls)
    if both:
        shims.shim("posts", home, **where)
    with shims.shim("posts", away, reads_from="replica", **where):
        assert_healthy()
    with LagProxy(regions.replica) as proxy:
        silent = client(away.meta.region_name, f"http://{proxy.address}")
        proxy.cut()
        shims.shim("posts", silent, reads_from="replica", **where)
        check = examined(timeout_s=1)
    for each in (home, away, silent):
        each.close()
    assert check.verdict.value == "problem", check
    assert "its replica does not answer" in check.said


@pytest.mark.store("rabbitmq")
def test_rabbitmq(antipode_rabbitmq: Any) -> None:
    """Receipts at the broker of this region; they begin to listen in the background."""
    import pika

    from antipode_shims import rabbitmq

    exchange = f"doctor-{uuid.uuid4().hex[:8]}"
    url = antipode_rabbitmq.url(antipode_rabbitmq.replica)
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        connection.channel().exchange_declare(exchange, "fanout", auto_delete=True)
    rabbitmq.shim("posts", url, exchange=exchange, receipts=True, reads_from="replica")
    assert_healthy()


@pytest.mark.store("activemq")
def test_activemq(antipode_activemq: Any) -> None:
    """Receipts at the broker of this region; a broker that is away is a problem."""
    from antipode_shims import activemq

    topic, replica = f"/topic/{uuid.uuid4().hex}", antipode_activemq.replica
    options: Any = {"destination": topic, "receipts": True, "reads_from": "replica"}
    with activemq.shim("posts", antipode_activemq.url(replica), **options):
        assert_healthy()
    with LagProxy(replica) as proxy:
        proxy.cut()
        with activemq.shim("posts", f"stomp://{proxy.address}", **options):
            check = examined(timeout_s=1)
    assert check.verdict.value == "problem", check
    assert "its replica does not answer" in check.said
