"""Sessions of PyMongo, synchronous and asynchronous."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pymongo
import pymongo.errors
from bson.errors import BSONError
from pymongo.write_concern import WriteConcern

import antipode
from antipode_shims import mongodb
from antipode_testing import MongoDBTopology, wait_until

from .bench import DATASTORE, OFTEN, Bench, Fault, step
from .both import Awaited
from .connected import AsCalls, InLoop

if TYPE_CHECKING:
    import random

    from typing_extensions import Self

#: How long a read at the replica, whose replication is held, waits; and one at the primary.
HELD_S = 0.02
WAIT_S = 0.2
#: How long a command of the session may run.
ENDS_S = 10.0
#: A cancellation comes within this time.
CANCEL_S = 0.004
NAME = "session"
RUNNING = {"currentOp": 1, "active": True, "appName": NAME, "ns": {"$regex": "^app[.]"}}
#: The last one that a step has written.
LAST = [("_id", pymongo.DESCENDING)]


class MongoSteps(Bench):
    """Two servers, and a client of each: the steps of both APIs.

    Attributes:
        session: the session of the client whose transaction is open; None outside of one.
    """

    refusals: ClassVar[tuple[type[BaseException], ...]] = (
        pymongo.errors.PyMongoError,
        BSONError,
    )
    session: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.topology = MongoDBTopology(lag_ms=0)

    def __enter__(self) -> Self:
        self.topology.start()
        self._plain = [
            self._connected(self.topology.primary),
            self._connected(self.topology.replica),
        ]
        self._other = self._connected(self.topology.primary)
        mongodb.instrument_client(self._other, datastore=DATASTORE)
        for name in ("kept", "notes"):
            self._plain[0].app.create_collection(name)
        self.topology.wait_replicated()
        return self

    def _connected(self, server: Any) -> Any:
        return pymongo.MongoClient(host=server.host, port=server.port, directConnection=True)

    def __exit__(self, *exception: object) -> None:
        mongodb.uninstrument_client(self._other)
        for each in (*self._plain, self._other):
            each.close()
        self.topology.close()

    def open(self, choose: random.Random) -> None:
        """A client of each server, which writes a second time after a lost connection, or not."""
        retries = choose.random() < 0.5
        self.client = self._client(self.topology.primary, "primary", retries=retries)
        self.reader = self._client(self.topology.replica, "replica", retries=retries)

    def _client(self, server: Any, reads_from: Any, *, retries: bool) -> Any:
        client = self.made(
            host=server.host,
            port=server.port,
            directConnection=True,
            appname=NAME,
            maxPoolSize=1,
            retryWrites=retries,
        )
        mongodb.instrument_client(client, datastore=DATASTORE, reads_from=reads_from)
        return self.whole(client)

    def made(self, **options: Any) -> Any:
        """A client that nothing instruments."""
        return pymongo.AsyncMongoClient(**options)

    def whole(self, client: Any) -> Any:
        """As steps call it."""
        return client

    def bare(self, client: Any) -> Any:
        """The client itself."""
        return client

    def settle(self) -> None:
        """Abort what is open."""
        self.run(self._end())

    async def _end(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            await session.end_session()

    def close(self) -> None:
        """Close both."""
        for each in (self.client, self.reader):
            mongodb.uninstrument_client(self.bare(each))
            self.run(self._close(each))

    async def _close(self, client: Any) -> None:
        await client.close()

    def committed(self) -> object:
        """The documents, once the session's commands have ended."""
        admin = self._plain[0].admin
        wait_until(
            lambda: not admin.command(RUNNING)["inprog"],
            timeout_s=ENDS_S,
            what="the end of the session's commands",
        )
        return self._documents(self._plain[0])

    def shown(self) -> object:
        """Those of the secondary."""
        return self._documents(self._plain[1])

    def _documents(self, plain: Any) -> object:
        names = sorted(set(plain.app.list_collection_names()) - {"notes"})
        return [(name, list(plain.app[name].find().sort("_id"))) for name in names]

    def hold(self) -> None:
        """Hold replication."""
        self.topology.pause()

    def release(self) -> None:
        """Let it go on."""
        self.topology.resume()
        self.topology.wait_replicated()

    def kept(self, client: Any = None, **options: Any) -> Any:
        """The session's collection."""
        found = (client or self.client).get_database("app").get_collection("kept")
        return found.with_options(**options) if options else found

    async def call(self, name: str, *args: Any, **options: Any) -> Any:
        """A method of the collection, in the transaction that is open."""
        self.trace.append(f"{name} {args}" + (" in a transaction" if self.session else ""))
        return await getattr(self.kept(), name)(*args, session=self.session, **options)

    @step(OFTEN)
    async def begin(self, choose: random.Random) -> None:
        """Begin a transaction, unless one is open."""
        if self.session is None:
            self.trace.append("start_transaction()")
            self.session = self.client.start_session()
            await self.session.start_transaction()

    @step(OFTEN)
    async def commit(self, choose: random.Random) -> None:
        """Commit it, perhaps twice."""
        if self.session is not None:
            self.trace.append("commit_transaction()")
            await self.session.commit_transaction()
            if choose.random() < 0.2:
                await self.session.commit_transaction()
            await self._end()

    @step(OFTEN)
    async def abort(self, choose: random.Random) -> None:
        """Abort it."""
        if self.session is not None:
            self.trace.append("abort_transaction()")
            await self.session.abort_transaction()
            await self._end()

    @step(OFTEN)
    async def insert(self, choose: random.Random) -> None:
        """One document."""
        await self.call("insert_one", {"_id": self.number(), "v": 1})

    @step(OFTEN)
    async def update(self, choose: random.Random) -> None:
        """Of the last document, as ``find_one_and_update``, or of one that there may be."""
        if choose.random() < 0.5:
            await self.call("update_one", {"v": 1}, {"$inc": {"w": 1}})
        else:
            await self.call("find_one_and_update", {}, {"$inc": {"v": 1}}, sort=LAST)

    @step(OFTEN)
    async def find(self, choose: random.Random) -> None:
        """Some documents."""
        found = self.kept().find({}, session=self.session).limit(3)
        await found.to_list()

    @step(2)
    async def change_nothing(self, choose: random.Random) -> None:
        """An update or a deletion of what there is not."""
        if choose.random() < 0.5:
            await self.call("update_one", {"_id": -1}, {"$set": {"v": 0}})
        else:
            await self.call("delete_one", {"_id": -1})

    @step(2)
    async def delete(self, choose: random.Random) -> None:
        """The last document."""
        await self.call("find_one_and_delete", {}, sort=LAST)

    @step(2)
    async def upsert(self, choose: random.Random) -> None:
        """A document that there is not."""
        update = {"$set": {"v": 2}}
        await self.call("update_one", {"_id": self.number()}, update, upsert=True)

    @step(2)
    async def many(self, choose: random.Random) -> None:
        """Several documents, of which one may be there already."""
        rows = [{"_id": self.number(), "v": 3} for _ in range(choose.randrange(1, 4))]
        rows += [dict(rows[0])] if choose.random() < 0.4 else []
        await self.call("insert_many", rows, ordered=choose.random() < 0.5)

    @step(2)
    async def bulk(self, choose: random.Random) -> None:
        """Several kinds of writes, of which one may fail."""
        number = self.number()
        writes: list[Any] = [
            pymongo.InsertOne({"_id": number, "v": 4}),
            pymongo.UpdateOne({"_id": number}, {"$set": {"v": 5}}),
        ]
        writes += [pymongo.InsertOne({"_id": number})] if choose.random() < 0.4 else []
        await self.call("bulk_write", writes)

    @step()
    async def refused(self, choose: random.Random) -> None:
        """A write that the server refuses."""
        await self.call("update_one", {}, {"$no_such_operator": {"v": 1}})

    @step()
    async def cannot_be_encoded(self, choose: random.Random) -> None:
        """A document that nothing encodes: nothing is sent."""
        await self.call("insert_one", {"_id": self.number(), "v": object()})

    @step()
    async def not_acknowledged(self, choose: random.Random) -> None:
        """A write that is not waited for, and a command after it on the same connection."""
        if self.session is None:
            self.trace.append("insert_one, w=0")
            await self.kept(write_concern=WriteConcern(w=0)).insert_one({"_id": self.number()})
            await self.client.get_database("admin").command("ping")

    @step()
    async def too_few_copies(self, choose: random.Random) -> None:
        """A write that is made, and whose copies do not come in time."""
        if self.session is None:
            concern = WriteConcern(w=2, wtimeout=1)
            self.trace.append("insert_one, w=2, wtimeout=1")
            await self.kept(write_concern=concern).insert_one({"_id": self.number()})

    @step()
    async def lost_connection(self, choose: random.Random) -> None:
        """The server closes the connection instead of executing a write."""
        what = {"failCommands": ["insert"], "closeConnection": True, "appName": NAME}
        fails = {"mode": {"times": 1}, "data": what}
        self._plain[0].admin.command("configureFailPoint", "failCommand", **fails)
        self.trace.append("-- the connection is closed")
        try:
            await self.insert(choose)
        finally:
            self._plain[0].admin.command("configureFailPoint", "failCommand", mode="off")

    @step(2)
    async def aggregate(self, choose: random.Random) -> None:
        """A pipeline that reads, or writes a collection."""
        if self.session is None:
            stages = choose.choice(([], [{"$out": "made"}], [{"$merge": {"into": "merged"}}]))
            number = self.number()
            self.trace.append(f"aggregate {stages} {number}")
            stages = [{"$limit": 1}, {"$set": {"stamp": number}}, *stages]
            await (await self.kept().aggregate(stages)).to_list()

    @step()
    async def raw_command(self, choose: random.Random) -> None:
        """A write as a command."""
        if self.session is None:
            number = self.number()
            self.trace.append(f"command insert {number}")
            documents = [{"_id": number, "v": 6}]
            await self.client.get_database("app").command("insert", "kept", documents=documents)

    @step()
    async def collections(self, choose: random.Random) -> None:
        """Create a collection, or drop one."""
        if self.session is None:
            app = self.client.get_database("app")
            self.trace.append("create or drop 'made'")
            await (app.create_collection if choose.random() < 0.5 else app.drop_collection)("made")

    @step(2)
    async def batches(self, choose: random.Random) -> None:
        """A read of several batches."""
        await self.kept().find({}, batch_size=2).limit(6).to_list()

    @step(OFTEN)
    async def read_under_floor(self, choose: random.Random) -> None:
        """Another client writes, and the session's next read has to show it, or is refused."""
        number = self.number()
        with antipode.scope() as scope:
            self._other.app.notes.insert_one({"_id": number})
            written = scope.lineage
        antipode.barrier(written, timeout=WAIT_S, at="read")
        self.trace.append(f"find note {number}" + (" in a transaction" if self.session else ""))
        notes = self.client.get_database("app").get_collection("notes")
        if await notes.find_one({"_id": number}, session=self.session) is None:
            raise Fault("early", f"note {number} is not shown")

    @step(OFTEN)
    async def read_at_replica(self, choose: random.Random) -> None:
        """A read that waits for the request's writes is refused, or shows them."""
        antipode.barrier(timeout=HELD_S, at="read")
        self.trace.append("read at the replica")
        found = await self.kept(self.reader).find().sort("_id").to_list()
        if found != list(self._plain[0].app.kept.find().sort("_id")):
            raise Fault("early", "a held read at the replica shows older documents")


class AsyncPyMongo(InLoop, MongoSteps):
    """The asyncio API."""

    @step(2)
    async def cancelled(self, choose: random.Random) -> None:
        """A task that is cancelled while it writes, or as it ends."""
        await self.cancel(self.insert(choose), choose.uniform(0, CANCEL_S))


class PyMongo(AsCalls, MongoSteps):
    """The synchronous API."""

    def made(self, **options: Any) -> Any:
        """A client that nothing instruments."""
        return pymongo.MongoClient(**options)

    def whole(self, client: Any) -> Any:
        """As steps call it."""
        return Awaited(client)

    def bare(self, client: Any) -> Any:
        """The client itself."""
        return client.part
