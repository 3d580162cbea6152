"""The dry run notices what is sent within a transaction, whose writes have no positions yet."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pika
import pytest
from opentelemetry import propagate

import antipode
from antipode_shims import rabbitmq
from tests._lines import records_in
from tests.integration.mongodb._clients import DB, client
from tests.integration.mysql._clients import NOTES, Sql, run
from tests.integration.rabbitmq._bench import NEWS, Bench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from antipode_testing import MongoDBTopology, RabbitMQTopology


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the records of a dry run go."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path / "records")
    yield tmp_path / "records"
    antipode.configure(mode="enforce")


def call() -> None:
    """Call another service."""
    propagate.inject({})


def early(folder: Path) -> list[tuple[str, str]]:
    """The datastores, and the functions, of what left within a transaction."""
    found = [record for record in records_in(folder) if record["kind"] == "lint"]
    return [
        (each["datastore"], each["site"]["function"])
        for each in found
        if each["lint"] == "in-transaction"
    ]


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "CREATE TABLE other (id INT)"])
def test_mysql(sql: Sql, folder: Path, end: str) -> None:
    """Between a write and the end of its transaction, however that ends; never otherwise."""
    connection = sql.connect()
    with antipode.scope():
        call()
        run(connection, "INSERT INTO notes VALUES (1, 'alone')")
        call()
        run(connection, "BEGIN")
        run(connection, "SELECT * FROM notes")
        call()
        assert not early(folder)
        run(connection, "INSERT INTO notes VALUES (2, 'open')")
        call()
        assert early(folder) == [(NOTES, "call")]
        with antipode.scope():  # Another request, which is none of its business.
            call()
        run(connection, end)
        call()
    assert len(early(folder)) == 1


def test_mysql_connection_is_lost(sql: Sql, folder: Path) -> None:
    """A transaction ends with its connection."""
    connection = sql.connect()
    with antipode.scope():
        run(connection, "BEGIN")
        run(connection, "INSERT INTO notes VALUES (1, 'open')")
        sql.topology.execute(f"KILL {connection.thread_id()}")
        with pytest.raises(Exception, match=r"Lost connection|gone away|closed|killed"):
            run(connection, "SELECT * FROM notes")
        call()
    assert not early(folder)


def publisher(bench: Bench, way: str) -> Callable[[], object]:
    """What publishes a message through a client of RabbitMQ."""
    channel = bench.channel()
    bench.declare(channel)
    if way == "channel":
        instrumented: Any = rabbitmq.instrument_channel(channel, datastore=NEWS)
        return lambda: instrumented.basic_publish(bench.name, "", b"1")
    parameters = pika.URLParameters(bench.topology.url())
    shim = bench.stack.enter_context(rabbitmq.shim(NEWS, parameters, exchange=bench.name))
    lineage = None if way == "write" else antipode.Lineage()
    return lambda: shim.write("", b"1", lineage)


@pytest.mark.store("rabbitmq")
@pytest.mark.slow
@pytest.mark.parametrize("way", ["channel", "write", "write explicitly"])
def test_publish_is_first(
    sql: Sql, antipode_rabbitmq: RabbitMQTopology, folder: Path, way: str
) -> None:
    """A message counts as sent although the lineage of its request is still empty."""
    connection = sql.connect()
    with contextlib.closing(Bench(antipode_rabbitmq)) as bench:
        publish = publisher(bench, way)
        with antipode.scope():
            run(connection, "BEGIN")
            run(connection, "INSERT INTO notes VALUES (1, 'open')")
            assert antipode.current().empty
            publish()
            assert [datastore for datastore, _ in early(folder)] == [NOTES]
            run(connection, "COMMIT")
            publish()
    assert len(early(folder)) == 1


@pytest.mark.store("mongodb")
@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
def test_mongodb(antipode_mongodb: MongoDBTopology, folder: Path, end: str) -> None:
    """The same of a session's transaction."""
    with client(antipode_mongodb.primary, {"datastore": "posts"}) as one:
        posts: Any = one[DB].posts
        posts.insert_one({"n": 1})
        with antipode.scope(), one.start_session() as session:
            session.start_transaction()
            posts.find_one({}, session=session)
            call()
            assert not early(folder)
            posts.insert_one({"n": 2}, session=session)
            call()
            assert early(folder) == [("posts", "call")]
            getattr(session, end)()
            call()
    assert len(early(folder)) == 1
