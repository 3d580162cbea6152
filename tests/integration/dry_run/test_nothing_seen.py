"""A dry run that cannot judge reads says so: lost lineages, and replicas that nobody declared."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pika
import pytest
from kombu import pools

import antipode
from antipode import Lineage, WriteId
from antipode._runtime import observers
from antipode.integrations import celery as antipode_celery
from antipode_cli.main import main
from antipode_cli.report import load, report
from antipode_shims import rabbitmq, redis
from antipode_testing import wait_until
from tests._lines import records_in
from tests.integration.dry_run import _tasks as tasks
from tests.integration.mongodb._clients import DB
from tests.integration.mongodb._clients import client as mongo
from tests.integration.mysql._clients import NOTES, Sql, run
from tests.integration.redis._clients import client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import MongoDBTopology, RabbitMQTopology, RedisTopology

ROOT = Path(__file__).parents[3]


def lints(folder: Path) -> list[tuple[str, str, str]]:
    """Each lint with its datastore and the function that it is about."""
    return [
        (one["lint"], one["datastore"], one["site"]["function"])
        for one in records_in(folder)
        if one["kind"] == "lint"
    ]


@contextmanager
def worker(folder: Path, **environment: str) -> Iterator[None]:
    """A worker in a dry run, in a process of its own, which is told to stop at the end."""
    command = [sys.executable, "-m", "celery", "-A", "tests.integration.dry_run._tasks", "worker"]
    command += ["-P", "solo", "-l", "info", "--without-gossip", "--without-mingle"]
    surroundings = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "shims")]),
        "ANTIPODE_MODE": "dry-run",
        "ANTIPODE_DRY_RUN_DIR": str(folder / "records"),
        **environment,
    }
    log = folder / "worker.out"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=surroundings, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        wait_until(
            lambda: process.poll() is not None or " ready." in log.read_text(),
            what="the worker",
            timeout_s=60,
        )
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def publishing(url: str, *, instrumented: bool) -> Iterator[None]:
    """This process publishes tasks to the broker at *url*; nothing of it stays there."""
    tasks.app.conf.broker_url = url
    if instrumented:
        antipode_celery.instrument()
    try:
        yield
    finally:
        antipode_celery.uninstrument()
        with tasks.app.connection_for_write() as connection:
            channel: Any = connection.default_channel
            channel.queue_delete(tasks.app.conf.task_default_queue)
        pools.reset()
        tasks.app._pool = None
        tasks.app.amqp._producer_pool = None


@pytest.mark.slow
@pytest.mark.store("redis")
@pytest.mark.store("rabbitmq")
@pytest.mark.parametrize(
    ("instrumented", "told"),
    [
        ("publisher,celery", []),
        ("celery", [("message-without-lineage", "", "show")] * 3),
        ("publisher", [("unscoped-read", "posts", "show")] * 3),
    ],
)
def test_tasks_without_the_integration(
    antipode_redis: RedisTopology,
    antipode_rabbitmq: RabbitMQTopology,
    tmp_path: Path,
    instrumented: str,
    told: list[tuple[str, str, str]],
) -> None:
    """Where the publisher or the worker lacks it each task is a lint, and nothing is judged."""
    environment = {
        "ANTIPODE_TEST_BROKER": antipode_rabbitmq.url(),
        "ANTIPODE_TEST_INSTRUMENTS": instrumented,
        "ANTIPODE_TEST_PRIMARY": antipode_redis.url(),
        "ANTIPODE_TEST_REPLICA": antipode_redis.url(antipode_redis.replica),
    }
    by_publisher = "publisher" in instrumented
    with (
        client(antipode_redis.primary) as plain,
        client(antipode_redis.primary) as writer,
        publishing(antipode_rabbitmq.url(), instrumented=by_publisher),
        worker(tmp_path, **environment),
    ):
        plain.delete("shown")
        redis.instrument_client(writer, datastore="posts")
        for number in range(3):
            with antipode.scope():
                writer.set(f"post{number}", "hello")
                tasks.show.delay(f"post{number}")
        wait_until(lambda: plain.llen("shown") == 3, what="the tasks", timeout_s=60)
    records = tmp_path / "records"
    assert lints(records) == told
    judged = [one for one in records_in(records) if one["kind"] == "read"]
    assert len(judged) == (0 if told else 3)
    failing = main(["report", str(records), "--fail-on", "lint"])
    required = main(["report", str(records), "--require", "posts"])
    assert (failing, required) == (1, 1 if told else 0)


@pytest.mark.store("rabbitmq")
def test_a_consumed_message_without_a_lineage(
    antipode_rabbitmq: RabbitMQTopology, tmp_path: Path
) -> None:
    """What no publisher of ours sent is a lint; of ours, also without a lineage, it is none."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    url = pika.URLParameters(antipode_rabbitmq.url())
    with pika.BlockingConnection(url) as connection:
        plain, ours = connection.channel(), connection.channel()
        rabbitmq.instrument_channel(ours, datastore="queue")
        queue = plain.queue_declare("", exclusive=True).method.queue
        with antipode.scope():
            ours.basic_publish("", queue, b"from a request that wrote nothing")
        plain.basic_publish("", queue, b"from a publisher that is not instrumented")
        for _ in range(2):
            with rabbitmq.message(plain.basic_get(queue, auto_ack=True)):
                pass
    antipode.configure(mode="enforce")
    here = "test_a_consumed_message_without_a_lineage"
    assert lints(tmp_path) == [("message-without-lineage", "", here)]


@pytest.mark.store("rabbitmq")
def test_a_queue_that_nobody_handles(antipode_rabbitmq: RabbitMQTopology, tmp_path: Path) -> None:
    """It is said, although others of its broker are handled, in two ways."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    with pika.BlockingConnection(pika.URLParameters(antipode_rabbitmq.url())) as connection:
        channel = connection.channel()
        rabbitmq.instrument_channel(channel, datastore="broker")
        queues = ("called", "taken", "forgotten")
        with antipode.scope():
            for queue in queues:
                channel.queue_declare(queue, exclusive=True)
                channel.basic_publish("", queue, b"new")
        channel.basic_consume("called", lambda *_: channel.stop_consuming(), auto_ack=True)
        channel.start_consuming()
        with rabbitmq.message(channel.basic_get("taken", auto_ack=True)):
            pass
    antipode.configure(mode="enforce")
    ways = [(each["step"], each["destination"]) for each in records_in(tmp_path) if "step" in each]
    assert ways == [*(("sent", queue) for queue in queues), *(("handled", q) for q in queues[:2])]
    (told,) = report(load([tmp_path])).lints
    assert (told.lint, told.details) == ("unhandled-message", ("forgotten of broker",))


def undeclared(folder: Path, datastore: str, *reads: Callable[[], object]) -> list[str]:
    """The datastores whose lint says that they are replicas, after *reads* of such a datastore."""
    antipode.configure(mode="dry-run", dry_run_dir=folder)
    with antipode.scope(Lineage([WriteId(datastore, "elsewhere", 1, 500_000)])):
        for read in reads:
            read()
            read()
        assert observers.dry_run is not None
        observers.dry_run.settle(20)
    antipode.configure(mode="enforce")
    return [about for lint, about, _ in lints(folder) if lint == "undeclared-replica"]


@pytest.mark.store("redis")
def test_an_undeclared_replica_of_redis(antipode_redis: RedisTopology, tmp_path: Path) -> None:
    """A client of a replica that does not say so is a lint, once; one of the primary is none."""
    with client(antipode_redis.replica) as reader, client(antipode_redis.primary) as writer:
        for one in (reader, writer):
            redis.instrument_client(one, datastore="posts")
        assert undeclared(tmp_path / "primary", "posts", lambda: writer.get("k")) == []
        assert undeclared(tmp_path / "replica", "posts", lambda: reader.get("k")) == ["posts"]


def test_an_undeclared_replica_of_sql(sql: Sql, tmp_path: Path) -> None:
    """As on Redis, by replication's state, or `read_only` for a user who may not ask for it."""
    reader, writer = sql.connect(sql.topology.replica), sql.connect()
    select = "SELECT 1 FROM notes WHERE id = 0"
    assert undeclared(tmp_path / "primary", NOTES, lambda: run(writer, select)) == []
    assert undeclared(tmp_path / "replica", NOTES, lambda: run(reader, select)) == [NOTES]


@pytest.mark.store("mongodb")
def test_an_undeclared_replica_of_mongodb(
    antipode_mongodb: MongoDBTopology, tmp_path: Path
) -> None:
    """As on Redis, for a client that is connected to a secondary directly."""
    near: dict[str, Any] = {"readPreference": "secondaryPreferred"}
    with (
        mongo(antipode_mongodb.replica, **near) as reader,
        mongo(antipode_mongodb.primary) as writer,
    ):
        find = {"k": 0}
        assert undeclared(tmp_path / "1", "posts", lambda: writer[DB].posts.find_one(find)) == []
        found = undeclared(tmp_path / "2", "posts", lambda: reader[DB].posts.find_one(find))
        assert found == ["posts"]
