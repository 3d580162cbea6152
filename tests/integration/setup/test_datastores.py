"""Datastores by address: clients that frameworks make are instrumented without a line for each."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage
from antipode.diagnostics import clients_without_names
from antipode.shim import shims_of
from tests.integration._processes import environment, under_agent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import (
        Address,
        DynamoDBTopology,
        MongoDBTopology,
        MySQLTopology,
        PostgreSQLTopology,
        RabbitMQTopology,
        RedisTopology,
        S3Topology,
        SNSTopology,
    )

for name in ("django", "redis", "pymysql", "aiomysql", "MySQLdb", "sqlalchemy", "pymongo", "pika"):
    pytest.importorskip(name)


STORES = (
    "redis",
    "mysql",
    "postgresql",
    "mongodb",
    "rabbitmq",
    "activemq",
    "dynamodb",
    "s3",
    "sns",
)


@pytest.fixture
def covered() -> Iterator[None]:
    """Whatever a test covers is undone."""
    yield
    antipode.teardown()
    for store in STORES:
        import_module(f"antipode_shims.{store}").uninstrument()


def redis_at(address: Address, database: int = 0) -> str:
    return f"redis://{address.host}:{address.port}/{database}"


def writes_of(lineage: Lineage) -> set[str]:
    """The datastores of exact entries."""
    return {write.datastore for write in lineage if not write.covering}


@pytest.mark.slow
@pytest.mark.store("redis")
def test_djangos_cache(antipode_redis: RedisTopology, covered: None) -> None:
    """It makes a client for each call: each records, and all of them are one registered client."""
    del covered
    from django.core.cache.backends.redis import RedisCache

    antipode.configure(datastores={"cache": redis_at(antipode_redis.primary)})
    antipode.setup()
    cache = RedisCache(redis_at(antipode_redis.primary), {})
    with antipode.scope() as scope:
        for number in range(3):
            cache.set("counter", number)
        assert writes_of(scope.lineage) == {"cache"}
        assert not scope.lineage.incomplete
    assert len(shims_of("cache")) == 1
    cache.close()


@pytest.mark.slow
@pytest.mark.store("redis")
def test_a_replica_is_read_after_the_writes_that_it_needs(
    antipode_redis: RedisTopology, covered: None
) -> None:
    """``?reads_from=replica`` says which address is a replica's; a barrier holds its reads."""
    del covered
    import redis

    from antipode_shims import redis as shim

    near = f"{redis_at(antipode_redis.replica)}?reads_from=replica"
    shim.instrument({"feed": [redis_at(antipode_redis.primary), near]})
    writer = redis.Redis.from_url(redis_at(antipode_redis.primary))
    reader = redis.Redis.from_url(redis_at(antipode_redis.replica))
    with writer, reader, antipode.scope():
        antipode_redis.cut()
        writer.set("post", "1")
        antipode.barrier(timeout=15, at="read")
        antipode_redis.heal()
        assert reader.get("post") == b"1"
    assert {each.reads_from for each in shims_of("feed")} == {"primary", "replica"}


@pytest.mark.store("redis")
def test_a_call_for_one_client_goes_first(antipode_redis: RedisTopology, covered: None) -> None:
    """Its name replaces that of the rule, and what is undone at last leaves nothing of either."""
    del covered
    import redis

    from antipode_shims import redis as shim

    plain = redis.Redis
    before = redis.Redis.from_url(redis_at(antipode_redis.primary))
    shim.instrument({"feed": redis_at(antipode_redis.primary)})
    with antipode.scope() as scope, before:
        before.set("a", 1)
        assert writes_of(scope.lineage) == {"feed"}
    shim.instrument_client(before, datastore="other")
    with antipode.scope() as scope, before:
        before.set("a", 2)
        assert writes_of(scope.lineage) == {"other"}
    shim.uninstrument()
    assert not shims_of("feed")
    shim.uninstrument_client(before)
    assert type(before) is plain
    assert not shims_of("other")


@pytest.mark.store("redis")
def test_what_no_rule_names_is_left_alone_and_listed(
    antipode_redis: RedisTopology, covered: None
) -> None:
    """As the backend of Celery in another database; until it is instrumented by a call."""
    del covered
    import redis

    from antipode_cli._doctor_stores import stores
    from antipode_shims import redis as shim

    address = antipode_redis.primary
    shim.instrument({"feed": redis_at(address)})
    other = redis.Redis.from_url(redis_at(address, 1))
    where = f"redis at localhost:{address.port}/1"
    assert type(other) is redis.Redis
    assert where in clients_without_names()
    told = next(each for each in stores(imported=True, timeout_s=1, automatic=False))
    assert where in told.said
    assert "ANTIPODE_DATASTORES" in told.todo
    shim.instrument_client(other, datastore="results")
    assert where not in clients_without_names()
    other.close()


def pymysql_of(address: Address) -> Any:
    import pymysql

    return pymysql.connect(host=address.host, port=address.port, **USER)


def mysqlclient_of(address: Address) -> Any:
    import MySQLdb

    return MySQLdb.connect(host=address.host, port=address.port, **USER)


USER: dict[str, Any] = {"user": "app", "password": "app", "database": "app", "autocommit": True}


@pytest.fixture
def table(antipode_mysql: MySQLTopology) -> None:
    """A table to write to."""
    with pymysql_of(antipode_mysql.primary) as plain:
        plain.cursor().execute(
            "CREATE TABLE IF NOT EXISTS by_address (id INT PRIMARY KEY AUTO_INCREMENT)"
        )


@pytest.mark.usefixtures("table")
@pytest.mark.store("mysql")
@pytest.mark.parametrize("connect", [pymysql_of, mysqlclient_of])
def test_connections_of_mysql(antipode_mysql: MySQLTopology, covered: None, connect: Any) -> None:
    """Each that is opened records its commits, and they share what is registered."""
    del covered
    from antipode_shims import mysql

    address = antipode_mysql.primary
    mysql.instrument(f"notes=mysql://{address.host}:{address.port}")
    others = len(shims_of("notes"))  # Of what the servers' own fixtures left open.
    for _ in range(2):
        with antipode.scope() as scope:
            connection = connect(address)
            cursor = connection.cursor()
            cursor.execute("INSERT INTO by_address VALUES ()")
            assert {write.datastore for write in scope.lineage} == {"notes"}
            assert not scope.lineage.incomplete
            connection.close()
    assert len(shims_of("notes")) - others == 1


@pytest.mark.usefixtures("table")
@pytest.mark.store("mysql")
def test_an_engine_that_is_made_later(antipode_mysql: MySQLTopology, covered: None) -> None:
    """Of SQLAlchemy, with its pool; its connections are the engine's alone, and a call wins."""
    del covered
    import sqlalchemy

    from antipode_shims import mysql

    address = antipode_mysql.primary
    mysql.instrument({"notes": f"mysql://{address.host}:{address.port}/app"})
    url = f"mysql+pymysql://app:app@{address.host}:{address.port}/app"
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    for datastore in ("notes", "others"):
        with antipode.scope() as scope, engine.connect() as connection:
            connection.exec_driver_sql("INSERT INTO by_address VALUES ()")
            assert writes_of(scope.lineage) == {datastore}
            assert not scope.lineage.incomplete
        mysql.instrument_engine(engine, datastore="others")
    mysql.uninstrument_engine(engine)
    engine.dispose()


@pytest.fixture
def rows(antipode_postgresql: PostgreSQLTopology) -> Iterator[str]:
    """The address of a server with a table to write to."""
    antipode_postgresql.execute("CREATE TABLE by_address (id SERIAL PRIMARY KEY)")
    antipode_postgresql.execute("GRANT ALL ON by_address, by_address_id_seq TO PUBLIC")
    yield str(antipode_postgresql.primary)
    antipode_postgresql.execute("DROP TABLE by_address")


@pytest.mark.slow
@pytest.mark.store("postgresql")
def test_connections_of_postgresql(
    antipode_postgresql: PostgreSQLTopology, rows: str, covered: None
) -> None:
    """Connections of psycopg, of both kinds, made before and after the call; then none."""
    del covered
    import psycopg

    from antipode_shims import postgresql

    url, write = antipode_postgresql.url(), "INSERT INTO by_address DEFAULT VALUES"

    async def written() -> set[str]:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            with antipode.scope() as scope:
                await connection.execute(write)
                await connection.commit()
                return writes_of(scope.lineage)

    with psycopg.connect(url) as before:
        postgresql.instrument({"notes": f"postgresql://{rows}/app"})
        with psycopg.connect(url) as after:
            for connection in (before, after):
                with antipode.scope() as scope:
                    connection.execute(write)
                    connection.commit()
                    assert writes_of(scope.lineage) == {"notes"}
                    assert not scope.lineage.incomplete
            assert asyncio.run(written()) == {"notes"}
            assert len(shims_of("notes")) == 1
            postgresql.uninstrument()
            assert type(after) is psycopg.Connection
    assert not shims_of("notes")


@pytest.mark.slow
@pytest.mark.store("postgresql")
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_an_engine_of_postgresql(
    antipode_postgresql: PostgreSQLTopology, rows: str, covered: None, *, before: bool
) -> None:
    """Its connections are the engine's alone, whenever it was made, and a call wins."""
    del covered
    import sqlalchemy

    from antipode_shims import postgresql

    rules = {"notes": f"postgresql://{rows}/{antipode_postgresql.database}"}
    if not before:
        postgresql.instrument(rules)
    engine = sqlalchemy.create_engine(antipode_postgresql.url(driver="postgresql+psycopg"))
    if before:
        with engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1")
        postgresql.instrument(rules)
    for datastore in ("notes", "others"):
        with antipode.scope() as scope, engine.begin() as connection:
            connection.exec_driver_sql("INSERT INTO by_address DEFAULT VALUES")
        assert writes_of(scope.lineage) == {datastore}
        assert not scope.lineage.incomplete
        postgresql.instrument_engine(engine, datastore="others")
    postgresql.uninstrument()
    assert not shims_of("notes")
    postgresql.uninstrument_engine(engine)
    assert not shims_of("others")
    engine.dispose()


@pytest.mark.slow
@pytest.mark.store("postgresql")
@pytest.mark.parametrize("owned", [True, False], ids=["by a URL", "by an engine"])
def test_table_2_of_postgresql_goes_first(
    antipode_postgresql: PostgreSQLTopology, rows: str, covered: None, *, owned: bool
) -> None:
    """Its own engine is no rule's, and an engine that is given to it no longer."""
    del covered
    import sqlalchemy

    from antipode_shims import postgresql

    postgresql.instrument({"notes": f"postgresql://{rows}/{antipode_postgresql.database}"})
    url = antipode_postgresql.url(driver="postgresql+psycopg")
    engine = sqlalchemy.create_engine(url)
    shim = postgresql.shim("values", url if owned else engine)
    try:
        with antipode.scope() as scope, shim.engine.begin() as connection:
            connection.execute(sqlalchemy.text("INSERT INTO by_address DEFAULT VALUES"))
        assert writes_of(scope.lineage) == {"values"}
        assert [each.datastore for each in shims_of("values")] == ["values"]
    finally:
        shim.close()
        engine.dispose()


@pytest.mark.slow
@pytest.mark.store("dynamodb")
def test_clients_of_dynamodb(antipode_dynamodb: DynamoDBTopology, covered: None) -> None:
    """By the endpoint of an emulator: resources and clients, before and after; a call wins."""
    del covered
    import boto3

    from antipode_shims import dynamodb

    aws: Any = {
        "endpoint_url": antipode_dynamodb.url(),
        "region_name": antipode_dynamodb.regions[0],
        **antipode_dynamodb.credentials,
    }
    before = boto3.resource("dynamodb", **aws)
    dynamodb.instrument({"posts": f"dynamodb://{antipode_dynamodb.primary}"})
    after = boto3.resource("dynamodb", **aws)
    for resource in (before, after):
        with antipode.scope() as scope:
            resource.Table("posts").put_item(Item={"id": "by-address"})
            assert writes_of(scope.lineage) == {"posts"}
            assert not scope.lineage.incomplete
    dynamodb.instrument_client(after, datastore="others")
    with antipode.scope() as scope:
        after.Table("posts").delete_item(Key={"id": "by-address"})
        assert writes_of(scope.lineage) == {"others"}
    dynamodb.uninstrument_client(after)
    dynamodb.uninstrument()
    assert not shims_of("posts")
    for resource in (before, after):
        resource.meta.client.close()


@pytest.mark.slow
@pytest.mark.store("s3")
@pytest.mark.store("sns")
def test_clients_of_s3_and_sns(
    antipode_s3: S3Topology, antipode_sns: SNSTopology, covered: None
) -> None:
    """An object's version is recorded, a message carries the lineage, each by its endpoint."""
    del covered
    import boto3

    rules = f"media=s3://{antipode_s3.primary}, news=sns://{antipode_sns.primary}"
    antipode.configure(datastores=rules)
    antipode.setup()

    def client(service: str, topology: S3Topology | SNSTopology) -> Any:
        return boto3.client(
            service,  # type: ignore[call-overload]
            endpoint_url=topology.url(),
            region_name=topology.regions[0],
            **topology.credentials,
        )

    media, queues = client("s3", antipode_s3), client("sqs", antipode_sns)
    queue = queues.create_queue(QueueName="by-address")["QueueUrl"]
    with antipode.scope() as scope:
        media.put_object(Bucket="posts", Key="by-address", Body=b"1")
        assert writes_of(scope.lineage) == {"media"}
        queues.send_message(QueueUrl=queue, MessageBody="hello")
    (message,) = queues.receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"]
    from antipode_shims import sns

    with sns.message(message, datastore="news") as received:
        assert received.lineage == scope.lineage
    queues.delete_queue(QueueUrl=queue)
    media.delete_object(Bucket="posts", Key="by-address")
    for each in (media, queues):
        each.close()


@pytest.mark.store("mongodb")
def test_clients_of_mongodb(antipode_mongodb: MongoDBTopology, covered: None) -> None:
    """A client that names one host of the rule records its writes."""
    del covered
    import pymongo

    from antipode_shims import mongodb

    address = antipode_mongodb.primary
    mongodb.instrument({"posts": f"mongodb://elsewhere,{address.host}:{address.port}"})
    url = f"mongodb://{address.host}:{address.port}/?directConnection=true"
    with pymongo.MongoClient[Any](url) as client, antipode.scope() as scope:
        client["app"]["by_address"].insert_one({"a": 1})
        assert writes_of(scope.lineage) == {"posts"}


@pytest.mark.store("rabbitmq")
def test_channels_of_rabbitmq(antipode_rabbitmq: RabbitMQTopology, covered: None) -> None:
    """A channel carries the lineage in its messages."""
    del covered
    import pika

    from antipode_shims import rabbitmq

    parameters = pika.URLParameters(antipode_rabbitmq.url(antipode_rabbitmq.primary))
    rabbitmq.instrument({"mail": f"amqp://{parameters.host}:{parameters.port}"})
    with pika.BlockingConnection(parameters) as connection, antipode.scope() as scope:
        channel = connection.channel()
        antipode.append(antipode.WriteId("posts", "log", 7))
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.basic_publish("", queue, b"hello")
        _, properties, _ = channel.basic_get(queue, auto_ack=True)
        with rabbitmq.message(properties) as message:
            assert message.lineage == scope.lineage


@pytest.mark.store("redis")
def test_an_address_that_cannot_be_read_harms_nobody(
    antipode_redis: RedisTopology, covered: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application gets its client, plain, whatever a release of the library changed."""
    del covered
    import redis

    from antipode_shims import redis as shim
    from antipode_shims.redis._clients import process_wide

    def fails(pool: object) -> None:
        raise AttributeError(pool)

    monkeypatch.setattr(process_wide, "_address", fails)
    shim.instrument({"feed": redis_at(antipode_redis.primary)})
    with redis.Redis.from_url(redis_at(antipode_redis.primary)) as made:
        assert type(made) is redis.Redis
        assert made.ping()


PROGRAM = """
import json, sys
import antipode
found = {}

def writes(scope):
    return sorted({each.datastore for each in scope.lineage}), bool(scope.lineage.incomplete)

from django.core.cache.backends.redis import RedisCache
cache = RedisCache(sys.argv[1] + "/0", {})
with antipode.scope() as scope:
    cache.set("a", 1)
    found["cache"] = writes(scope)

from celery import Celery
backend = Celery("shop", backend=sys.argv[1] + "/1").backend
with antipode.scope() as scope:
    backend.set("b", "1")
    found["celery"] = writes(scope)

import sqlalchemy
engine = sqlalchemy.create_engine("mysql+pymysql://app:app@" + sys.argv[2] + "/app")
with antipode.scope() as scope:
    with engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO by_address VALUES ()")
    found["engine"] = writes(scope)
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.usefixtures("table")
@pytest.mark.store("redis")
@pytest.mark.store("mysql")
def test_the_variable_alone_under_opentelemetry_instrument(
    antipode_redis: RedisTopology, antipode_mysql: MySQLTopology
) -> None:
    """Django's cache and an engine are named, Celery's results in another database are not."""
    redis, mysql = antipode_redis.primary, antipode_mysql.primary
    names = {"ANTIPODE_DATASTORES": f"feed={redis_at(redis)}, notes=mysql://{mysql}"}
    program = [sys.executable, "-c", PROGRAM, f"redis://{redis}", str(mysql)]
    ran = subprocess.run(
        under_agent(program),
        env=environment(names),
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == {
        "cache": [["feed"], False],
        "celery": [[], False],
        "engine": [["notes"], False],
    }
