"""What of a native client's calls a dry run takes for a read: covered reads, once, and no write.

The clients say that they read a replica and are at the primary, so that all calls work.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Lost
from redis.retry import Retry

import antipode
from antipode import Lineage, WriteId
from antipode_shims import mysql, redis
from tests._lines import records_in
from tests.integration.mongodb._clients import DB, async_client, client
from tests.integration.mysql._clients import NOTES, Sql, run
from tests.integration.redis._clients import async_client as async_redis
from tests.unit._floors import floor_of, set_floor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from antipode_testing import LagProxy, MongoDBTopology, RedisTopology

NEAR: dict[str, Any] = {"reads_from": "replica"}
BESIDE: dict[str, Any] = {"lineage": "beside", "keys": ["k*"]}


FLOORS = pytest.mark.parametrize("floor", [False, True], ids=["free", "floor"])


def told(folder: Path, datastore: str, call: Callable[[], object], *, floor: bool = False) -> int:
    """How many reads a dry run saw in *call*, all of them unguarded.

    Args:
        folder: for the records.
        datastore: what *call* reads.
        call: what is looked at.
        floor: whether its reads look, as behind a barrier that is enforced all the same; whatever
            they see is enough.
    """
    antipode.configure(mode="dry-run", dry_run_dir=folder)
    with antipode.scope(Lineage([WriteId(datastore, "elsewhere", 1, 500_000)])) as scope:
        if floor:
            set_floor(scope, floor_of(datastore, timeout_s=10))
        call()
    antipode.configure(mode="enforce")
    found = [record for record in records_in(folder) if record["kind"] == "read"]
    assert all(record["verdict"] == "unguarded" for record in found)
    return len(found)


def piped(one: Any, *names: str, **options: Any) -> None:
    """Read and write in one pipeline."""
    with one.pipeline(**options) as pipe:
        for name in names:
            pipe.execute_command(*name.split())
        pipe.execute()


def watching(one: Any) -> None:
    """Read under a ``WATCH``, then write."""
    with one.pipeline() as pipe:
        pipe.watch("k")
        pipe.get("k")
        pipe.multi()
        pipe.set("k", 1)
        pipe.execute()


REDIS: dict[str, tuple[int, Callable[[Any], object]]] = {
    "get": (1, lambda one: one.get("k")),
    "blocking xread": (1, lambda one: one.xread({"k-stream": 0}, block=1)),
    "mget": (1, lambda one: one.mget("k", "k2")),
    "hgetall": (1, lambda one: one.hgetall("k-hash")),
    "exists": (1, lambda one: one.exists("k")),
    "other key": (1, lambda one: one.get("other")),
    "pipeline of reads": (1, lambda one: piped(one, "GET k", "GET k2", transaction=False)),
    "transaction of reads": (1, lambda one: piped(one, "GET k", "GET k2")),
    "transaction of both": (1, lambda one: piped(one, "SET k 2", "GET k")),
    "watched": (1, watching),
    "set": (0, lambda one: one.set("k", 1)),
    "pipeline with a transaction by hand": (
        1,
        lambda one: piped(one, "MULTI", "GET k", "EXEC", transaction=False),
    ),
    "pipeline of writes": (0, lambda one: piped(one, "SET k 2", "INCR k")),
    "eval": (0, lambda one: one.eval("return 1", 0)),
    "ping": (0, lambda one: one.ping()),
}


@pytest.mark.store("redis")
@pytest.mark.pairwise
@pytest.mark.parametrize("beside", [{}, BESIDE], ids=["plain", "beside"])
@FLOORS
@pytest.mark.parametrize("name", REDIS)
def test_redis(
    make: Callable[..., Any], tmp_path: Path, beside: dict[str, Any], name: str, *, floor: bool
) -> None:
    """Of redis-py: commands that read, pipelines and transactions with one, each once."""
    expected, call = REDIS[name]
    one = make(**NEAR, **beside)
    one.flushall()
    assert told(tmp_path, "posts", lambda: call(one), floor=floor) == expected


@pytest.mark.store("redis")
@FLOORS
def test_redis_attempts(
    make: Callable[..., Any], proxy: LagProxy, tmp_path: Path, *, floor: bool
) -> None:
    """A read that is sent again is told once, as is one that cannot be sent."""
    one = make(**NEAR)
    one.set_retry(Retry(NoBackoff(), 2))
    attempts: list[None] = []

    def unanswered(*_: Any, **__: Any) -> Any:
        attempts.append(None)
        raise Lost

    def fails() -> None:
        with pytest.raises(Lost):
            one.get("k")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one, "parse_response", unanswered)
        assert told(tmp_path / "again", "posts", fails, floor=floor) == 1
    assert len(attempts) == 3
    proxy.cut()
    assert told(tmp_path / "unsent", "posts", fails, floor=floor) == 1


ASYNC_REDIS: dict[str, tuple[int, Callable[[Any], Awaitable[object]]]] = {
    "get": (1, lambda one: one.get("k")),
    "transaction": (1, lambda one: one.pipeline().get("k").get("k2").execute()),
    "set": (0, lambda one: one.set("k", 1)),
}


@pytest.mark.store("redis")
@pytest.mark.parametrize("beside", [{}, BESIDE], ids=["plain", "beside"])
@FLOORS
@pytest.mark.parametrize("name", ASYNC_REDIS)
def test_asyncio_redis(
    antipode_redis: RedisTopology, tmp_path: Path, beside: dict[str, Any], name: str, *, floor: bool
) -> None:
    """Of ``redis.asyncio`` likewise."""
    expected, call = ASYNC_REDIS[name]

    async def session() -> None:
        one = async_redis(antipode_redis.primary)
        redis.instrument_client(one, datastore="posts", **NEAR, **beside)
        await call(one)
        redis.uninstrument_client(one)
        await one.aclose()

    assert told(tmp_path, "posts", lambda: asyncio.run(session()), floor=floor) == expected


def in_transaction(db: Any) -> None:
    """Read within a transaction, which goes to the primary."""
    with db.client.start_session() as session, session.start_transaction():
        db.posts.find_one({}, session=session)


MONGODB: dict[str, tuple[int, Callable[[Any], object]]] = {
    "find_one": (1, lambda db: db.posts.find_one({})),
    "find of several batches": (1, lambda db: list(db.posts.find({}, batch_size=2))),
    "aggregate": (1, lambda db: list(db.posts.aggregate([{"$match": {}}]))),
    "count_documents": (1, lambda db: db.posts.count_documents({})),
    "distinct": (1, lambda db: db.posts.distinct("n")),
    "insert_one": (0, lambda db: db.posts.insert_one({"n": 1})),
    "insert_many": (0, lambda db: db.posts.insert_many([{"n": 1}, {"n": 2}])),
    "update_one": (0, lambda db: db.posts.update_one({"n": 0}, {"$set": {"m": 1}})),
    "find_one_and_update": (
        0,
        lambda db: db.posts.find_one_and_update({"n": 0}, {"$set": {"m": 1}}),
    ),
    "out": (0, lambda db: list(db.posts.aggregate([{"$out": "copy"}]))),
    "in a transaction": (0, in_transaction),
    "ping": (0, lambda db: db.command("ping")),
}


@pytest.mark.store("mongodb")
@pytest.mark.parametrize(
    "beside", [{}, {"lineage": "beside", "collections": ["posts"]}], ids=["plain", "beside"]
)
def test_mongodb(antipode_mongodb: MongoDBTopology, tmp_path: Path, beside: dict[str, Any]) -> None:
    """Of PyMongo: a cursor once, however many batches; writes that read never."""
    with client(antipode_mongodb.primary, {**NEAR, **beside}) as one:
        one[DB].posts.delete_many({})
        one[DB].posts.insert_many([{"n": number} for number in range(7)])
        found = {
            name: told(tmp_path / name.replace(" ", "-"), "posts", lambda c=call: c(one[DB]))
            for name, (_, call) in MONGODB.items()
        }
    assert found == {name: expected for name, (expected, _) in MONGODB.items()}


@pytest.mark.store("mongodb")
def test_mongodb_attempts(
    antipode_mongodb: MongoDBTopology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read that PyMongo sends again is told once, as is one that cannot be sent."""
    from pymongo.errors import AutoReconnect
    from pymongo.synchronous.pool import Connection

    with client(antipode_mongodb.primary, NEAR) as one:
        one[DB].posts.find_one({})  # Connects.
        received, sent = Connection.receive_message, Connection.send_message
        failing: list[None] = []

        def unanswered(connection: Any, *args: Any) -> Any:
            if failing:
                failing.pop()
                connection.close_conn(None)
                raise AutoReconnect
            return received(connection, *args)

        def unsent(connection: Any, *args: Any) -> Any:
            connection.close_conn(None)
            raise AutoReconnect

        monkeypatch.setattr(Connection, "receive_message", unanswered)
        failing.append(None)
        assert told(tmp_path / "again", "posts", lambda: one[DB].posts.find_one({})) == 1
        assert not failing
        monkeypatch.setattr(Connection, "receive_message", received)
    # A second attempt would wait for a server until the client gives up.
    with client(antipode_mongodb.primary, NEAR, retryReads=False) as one:
        one[DB].posts.find_one({})  # Connects.

        def fails() -> None:
            with pytest.raises(AutoReconnect):
                one[DB].posts.find_one({})

        monkeypatch.setattr(Connection, "send_message", unsent)
        assert told(tmp_path / "unsent", "posts", fails) == 1
        monkeypatch.setattr(Connection, "send_message", sent)


@pytest.mark.store("mongodb")
def test_asyncio_mongodb(antipode_mongodb: MongoDBTopology, tmp_path: Path) -> None:
    """Of PyMongo's asyncio client likewise."""

    async def session() -> None:
        async with async_client(antipode_mongodb.primary, NEAR) as one:
            await one[DB].posts.insert_one({"n": 1})
            assert await one[DB].posts.find({}, batch_size=2).to_list() != []

    assert told(tmp_path, "posts", lambda: asyncio.run(session())) == 1


MYSQL: dict[str, tuple[int, str]] = {
    "select": (1, "SELECT * FROM notes"),
    "in a comment": (1, "/* web:7 */ SELECT body FROM notes WHERE id = 1"),
    "of the session": (0, "SELECT 1"),
    "insert": (0, "INSERT INTO notes VALUES (1, 'select')"),
    "insert of a select": (0, "INSERT INTO notes SELECT 2, 'x'"),
    "update": (0, "UPDATE notes SET body = 'x'"),
    "set": (0, "SET @x = 1"),
    "show": (0, "SHOW TABLES"),
    "commit": (0, "COMMIT"),
}


def test_mysql(sql: Sql, tmp_path: Path) -> None:
    """Of PyMySQL: statements that read tables; not what asks for the session's own values."""
    connection = sql.plain()
    mysql.instrument_connection(connection, datastore=NOTES, reads_from="replica")
    found = {
        name: told(tmp_path / name.replace(" ", "-"), NOTES, lambda s=text: run(connection, s))
        for name, (_, text) in MYSQL.items()
    }
    assert found == {name: expected for name, (expected, _) in MYSQL.items()}
