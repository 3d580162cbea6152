"""MongoDB with PyMongo alone: both shims of Table 2, and instrumented clients of both APIs."""

import asyncio
import sys

from pymongo import AsyncMongoClient, MongoClient

import antipode
from antipode_shims import mongodb

URL = sys.argv[1]
WHERE = {"database": "app", "collection": "extras"}
BESIDE = {"lineage": "beside", "collections": ["extras_native"]}


def table2() -> None:
    with antipode.scope() as scope, mongodb.shim("posts", URL, **WHERE) as shim:
        shim.write("extras", 1)
        antipode.barrier(timeout=5)
        assert shim.read("extras")[0] == 1
        assert not scope.lineage.incomplete


async def table2_async() -> None:
    shim = mongodb.shim_async("posts", URL, **WHERE)
    with antipode.scope() as scope:
        await shim.write("extras", 2)
        await antipode.barrier_async(timeout=5)
        assert (await shim.read("extras"))[0] == 2
        assert not scope.lineage.incomplete
    await shim.aclose()


def instrumented() -> None:
    with MongoClient(URL) as client:
        mongodb.instrument_client(client, datastore="native", **BESIDE)
        posts = client.app.extras_native
        with antipode.scope() as scope, client.start_session() as session:
            posts.delete_many({})
            posts.insert_many([{"_id": number} for number in range(5)])
            with session.start_transaction():
                posts.update_one({"_id": 1}, {"$set": {"a": 1}}, session=session)
            antipode.barrier(timeout=5, at="read")
            assert len([*posts.find(batch_size=2)]) == 5
            assert len([*posts.aggregate([{"$match": {"a": 1}}])]) == 1
            assert scope.lineage
            assert not scope.lineage.incomplete
        mongodb.uninstrument_client(client)


async def instrumented_async() -> None:
    async with AsyncMongoClient(URL) as client:
        mongodb.instrument_client(client, datastore="native", **BESIDE)
        posts = client.app.extras_native
        with antipode.scope() as scope:
            await posts.delete_many({})
            await posts.insert_many([{"_id": number} for number in range(5)])
            await antipode.barrier_async(timeout=5, at="read")
            assert len([each async for each in posts.find(batch_size=2)]) == 5
            assert scope.lineage
            assert not scope.lineage.incomplete
        mongodb.uninstrument_client(client)


table2()
instrumented()
asyncio.run(table2_async())
asyncio.run(instrumented_async())
