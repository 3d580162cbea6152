"""The stores whose clients hold reads back, as the judge of automatic barriers uses them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from typing import TYPE_CHECKING, Any

import aiomysql
import pymongo
import pymysql
import pytest
import redis
from pymongo.errors import PyMongoError

from antipode_shims import mongodb, mysql
from antipode_shims import redis as redis_shims
from tests.contract.test_mysql import grant
from tests.integration.mongodb import _clients as mongodb_clients
from tests.integration.mysql._clients import MULTI, TRACK, drop_triggers, run
from tests.integration.mysql._sessions import STATEMENTS, TABLES
from tests.integration.redis import _clients as redis_clients

from ._judge import Bench, Reader

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

SHOWN = (
    "SELECT COALESCE(MAX(id), 0) FROM numbers",
    "SELECT id FROM numbers ORDER BY id DESC LIMIT 1",
    "SELECT COUNT(*), MAX(id) FROM numbers",
)


class MySQLBench(Bench):
    """MySQL or MariaDB; each request has a connection of its own."""

    errors = (pymysql.MySQLError, OSError, RuntimeError)

    def __init__(self, topology: Any, *, asynchronous: bool) -> None:
        super().__init__(topology, asynchronous=asynchronous)
        drop_triggers(topology)
        made = "CREATE TABLE app.numbers (id INT PRIMARY KEY)"
        for statement in (
            grant(topology),
            *TABLES,
            "DROP TABLE IF EXISTS app.numbers, app.other",
            made,
        ):
            topology.execute(statement)
        self._at = topology.replica

    def _options(self, place: Any) -> dict[str, Any]:
        login = {"user": self.topology.user, "password": self.topology.password}
        return {
            "host": place.host,
            "port": place.port,
            "autocommit": True,
            "client_flag": TRACK | MULTI,
            "init_command": "SET SESSION innodb_lock_wait_timeout = 1, lock_wait_timeout = 1",
            **login,
        }

    def write(self, number: int) -> None:
        options = self._options(self.topology.primary)
        with contextlib.closing(pymysql.connect(database="app", **options)) as one:
            mysql.instrument_connection(one, datastore=self.datastore)
            run(one, "INSERT INTO numbers VALUES (%s)", number)
            mysql.uninstrument_connection(one)

    async def reader(self) -> Reader:
        options = self._options(self._at)
        one: Any
        if self.asynchronous:
            one = await aiomysql.connect(db="app", **options)
        else:
            one = await asyncio.to_thread(lambda: pymysql.connect(database="app", **options))
        mysql.instrument_connection(one, datastore=self.datastore, reads_from="replica")
        return MySQLReader(one, asynchronous=self.asynchronous)

    async def close(self) -> None:
        """Each request closed its own."""


class MySQLReader(Reader):
    """One connection."""

    def __init__(self, connection: Any, *, asynchronous: bool) -> None:
        self._connection, self._asynchronous = connection, asynchronous

    async def shown(self, choose: random.Random) -> int:
        rows = await self._run(choose.choice(SHOWN))
        return int(rows[0][-1] or 0) if rows else 0

    async def other(self, choose: random.Random) -> None:
        await self._run(choose.choice(STATEMENTS))

    async def _run(self, statement: str) -> list[Any]:
        if not self._asynchronous:
            return await asyncio.to_thread(run, self._connection, statement)
        async with self._connection.cursor() as cursor:
            await cursor.execute(statement)
            rows = list(await cursor.fetchall())
            while await cursor.nextset():
                rows = list(await cursor.fetchall()) or rows
            return rows

    async def close(self) -> None:
        mysql.uninstrument_connection(self._connection)
        with contextlib.suppress(pymysql.MySQLError):
            self._connection.close()


class RedisBench(Bench):
    """One client with a pool for all requests."""

    errors = (redis.RedisError, OSError)

    def __init__(self, topology: Any, *, asynchronous: bool) -> None:
        super().__init__(topology, asynchronous=asynchronous)
        make = redis_clients.async_client if asynchronous else redis_clients.client
        self._client = redis_shims.instrument_client(
            make(topology.replica, socket_timeout=10),
            datastore=self.datastore,
            reads_from="replica",
        )

    def write(self, number: int) -> None:
        with redis_clients.client(self.topology.primary) as one:
            redis_shims.instrument_client(one, datastore=self.datastore, one_server=False)
            one.set("number", number)
            redis_shims.uninstrument_client(one)

    async def reader(self) -> Reader:
        return RedisReader(self._client, asynchronous=self.asynchronous)

    async def close(self) -> None:
        redis_shims.uninstrument_client(self._client)
        closed = self._client.aclose if self.asynchronous else self._client.close
        await _called(closed, asynchronous=self.asynchronous)


class RedisReader(Reader):
    """One request's calls of the client."""

    def __init__(self, client: Any, *, asynchronous: bool) -> None:
        self._client, self._asynchronous = client, asynchronous

    async def shown(self, choose: random.Random) -> int:
        in_pipeline, transaction = choose.random() < 0.3, choose.random() < 0.5
        if in_pipeline:
            pipeline = self._client.pipeline(transaction=transaction).strlen("number").get("number")
            return int((await self._call(pipeline.execute))[-1] or 0)
        if transaction:
            return int((await self._call(self._client.mget, "nothing", "number"))[-1] or 0)
        return int(await self._call(self._client.get, "number") or 0)

    async def other(self, choose: random.Random) -> None:
        one = self._client
        calls: tuple[tuple[Any, ...], ...] = (
            (one.get, "nothing"),
            (one.exists, "number"),
            (one.set, "mine", 1),
            (one.incr, "number-of-mine"),
            (one.hgetall, "number"),
            (one.eval, "return redis.call('GET', KEYS[1])", 1, "nothing"),
            (one.execute_command, "NO-SUCH-COMMAND"),
            (one.ping,),
        )
        function, *arguments = choose.choice(calls)
        await self._call(function, *arguments)

    async def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        return await _called(function, *args, asynchronous=self._asynchronous)

    async def close(self) -> None:
        """The pool goes on."""


class MongoDBBench(Bench):
    """One client with a pool for all requests."""

    errors = (PyMongoError, OSError)

    def __init__(self, topology: Any, *, asynchronous: bool) -> None:
        super().__init__(topology, asynchronous=asynchronous)
        make: Any = pymongo.AsyncMongoClient if asynchronous else pymongo.MongoClient
        made = make(connect=False, **mongodb_clients.arguments(topology.replica))
        self._client = mongodb.instrument_client(
            made, datastore=self.datastore, reads_from="replica"
        )

    def write(self, number: int) -> None:
        with mongodb_clients.client(
            self.topology.primary, {"datastore": self.datastore}, connect=False
        ) as one:
            one.app.numbers.update_one({"_id": "n"}, {"$set": {"n": number}}, upsert=True)

    async def reader(self) -> Reader:
        return MongoDBReader(self._client, asynchronous=self.asynchronous)

    async def close(self) -> None:
        mongodb.uninstrument_client(self._client)
        await _called(self._client.close, asynchronous=self.asynchronous)
        gc.collect()  # What PyMongo left open must not warn in a later test.


class MongoDBReader(Reader):
    """One request's calls of the client, in a session or not."""

    def __init__(self, client: Any, *, asynchronous: bool) -> None:
        self._client, self._asynchronous = client, asynchronous
        self._session: Any = None

    async def shown(self, choose: random.Random) -> int:
        numbers = self._client.app.numbers
        if choose.random() < 0.3:
            stages = [{"$match": {"_id": "n"}}]
            cursor = await self._call(numbers.aggregate, stages, session=self._session)
            found = await self._call(cursor.to_list)
            return int(found[0]["n"]) if found else 0
        document = await self._call(numbers.find_one, {"_id": "n"}, session=self._session)
        return int(document["n"]) if document else 0

    async def other(self, choose: random.Random) -> None:
        one, session = self._client, {"session": self._session}
        calls: tuple[Any, ...] = (
            lambda: self._begin(snapshot=True),
            lambda: self._begin(causal_consistency=True),
            self._end,
            lambda: self._call(one.app.nothing.find_one, {}, **session),
            lambda: self._call(one.app.numbers.count_documents, {}, **session),
            lambda: self._call(one.app.numbers.distinct, "n", **session),
            lambda: self._call(one.app.mine.insert_one, {}, **session),
            lambda: self._call(one.admin.command, "ping"),
            lambda: self._call(one.app.command, "noSuchCommand"),
        )
        await choose.choice(calls)()

    async def _begin(self, **options: Any) -> None:
        await self._end()
        self._session = self._client.start_session(**options)

    async def _end(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await self._call(session.end_session)

    async def _call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return await _called(function, *args, asynchronous=self._asynchronous, **options)

    async def close(self) -> None:
        with contextlib.suppress(PyMongoError):
            await self._end()


async def _called(
    function: Callable[..., Any], *args: Any, asynchronous: bool, **options: Any
) -> Any:
    if asynchronous:
        return await function(*args, **options)
    return await asyncio.to_thread(function, *args, **options)


BENCHES: dict[str, type[Bench]] = {
    "mysql": MySQLBench,
    "mariadb": MySQLBench,
    "redis": RedisBench,
    "mongodb": MongoDBBench,
}
#: PyMongo leaves the socket of a connection open whose making is cancelled.
_LEFT_OPEN = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
STORES = [
    pytest.param(name, marks=[pytest.mark.store(name)] + [_LEFT_OPEN] * (name == "mongodb"))
    for name in BENCHES
]
