"""DynamoDB with aiobotocore alone: Table 2 and an instrumented client."""

import asyncio
import sys

from aiobotocore.session import get_session

import antipode
from antipode_shims import dynamodb

WHERE = {
    "region_name": "us-east-1",
    "endpoint_url": sys.argv[1],
    "aws_access_key_id": "AKIAEXAMPLE",
    "aws_secret_access_key": "secret",
}
KEY = {"id": {"S": "native"}}


async def main() -> None:
    async with get_session().create_client("dynamodb", **WHERE) as client:
        shim = dynamodb.shim_async("posts", client, table="posts")
        with antipode.scope() as scope:
            await shim.write("extras", b"1")
            await antipode.barrier_async(timeout=5)
            assert (await shim.read("extras"))[0] == b"1"
            assert not scope.lineage.incomplete
        await shim.aclose()
        dynamodb.instrument_client(client, datastore="native")
        with antipode.scope() as scope:
            await client.put_item(TableName="posts", Item={**KEY, "n": {"N": "1"}})
            await antipode.barrier_async(timeout=5, at="read")
            told = await client.get_item(TableName="posts", Key=KEY)
            assert told["Item"] == {**KEY, "n": {"N": "1"}}
            assert scope.lineage
            assert not scope.lineage.incomplete
        dynamodb.uninstrument_client(client)


asyncio.run(main())
