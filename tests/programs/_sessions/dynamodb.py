"""Sessions of boto3 and aiobotocore with tables of DynamoDB, over an emulator."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, ClassVar

import aiobotocore.session
import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

import antipode
from antipode_shims import dynamodb
from antipode_testing import DynamoDBTopology

from .bench import DATASTORE, OFTEN, Bench, Fault, step
from .both import Awaited
from .connected import AsCalls, InLoop

if TYPE_CHECKING:
    import random

    from typing_extensions import Self

#: How long a read at the replica, whose copies are held, waits; and one at the primary.
HELD_S = 0.02
WAIT_S = 0.2
#: A cancellation comes within this time.
CANCEL_S = 0.008
TABLE = "posts"
#: Items that steps write more than once.
KEYS = ("a", "b", "c")
#: What the other client writes.
NOTE = "note"
#: Of one batch.
MOST_REQUESTS = 25
ABSENT = {"ConditionExpression": "attribute_not_exists(id)"}


def _key(key: str) -> dict[str, Any]:
    return {"id": {"S": key}}


class DynamoDBSteps(Bench):
    """Two regions, and a client of each: the steps of both APIs.

    Attributes:
        copied: whether all writes of the request come in the emulator's stream.
    """

    refusals: ClassVar[tuple[type[BaseException], ...]] = (ClientError, BotoCoreError)
    copied = True

    def __init__(self) -> None:
        super().__init__()
        self.topology = DynamoDBTopology(lag_ms=0)

    def __enter__(self) -> Self:
        self.topology.start()
        home, away = self.topology.regions
        self.urls = dict(zip((home, away), self.topology.urls, strict=True))
        self._plain = [boto3.client(**self._options(region)) for region in (home, away)]
        self._other = boto3.client(**self._options(home))
        dynamodb.instrument_client(self._other, datastore=DATASTORE, regions=self.urls)
        return self

    def _options(self, region: str, attempts: int = 1) -> dict[str, Any]:
        return {
            "service_name": "dynamodb",
            "region_name": region,
            "endpoint_url": self.urls[region],
            "config": Config(retries={"total_max_attempts": attempts}),
            **self.topology.credentials,
        }

    def __exit__(self, *exception: object) -> None:
        dynamodb.uninstrument_client(self._other)
        for each in (*self._plain, self._other):
            each.close()
        self.topology.close()

    def open(self, choose: random.Random) -> None:
        """A client of each region, which tries again, or not."""
        self.run(self._open(choose.choice((1, 3))))

    async def _open(self, attempts: int) -> None:
        self._stack = AsyncExitStack()
        home, away = self.topology.regions
        self.session = await self._client("primary", **self._options(home, attempts))
        self.reader = await self._client("replica", **self._options(away, attempts))

    async def _client(self, reads_from: Any, **options: Any) -> Any:
        made = await self.made(**options)
        dynamodb.instrument_client(
            made, datastore=DATASTORE, reads_from=reads_from, regions=self.urls
        )
        self._stack.callback(dynamodb.uninstrument_client, made)
        return self.whole(made)

    async def made(self, **options: Any) -> Any:
        """A client that nothing instruments."""
        session = aiobotocore.session.get_session()
        return await self._stack.enter_async_context(session.create_client(**options))

    def whole(self, client: Any) -> Any:
        """As steps call it."""
        return client

    def settle(self) -> None:
        """Nothing is open between two calls."""

    def close(self) -> None:
        """Close both; a page of what later sessions compare has room for their own items alone."""
        self.run(self._stack.aclose())
        ids = [each["id"] for each in self._items(self._plain[0]) if each["id"]["S"] not in KEYS]
        for at in range(0, len(ids), MOST_REQUESTS):
            deletions = [
                {"DeleteRequest": {"Key": {"id": each}}} for each in ids[at : at + MOST_REQUESTS]
            ]
            self._plain[0].batch_write_item(RequestItems={TABLE: deletions})
        self.topology.wait_replicated()

    def committed(self) -> object:
        """All items but the other client's, stamps among them."""
        return self._items(self._plain[0])

    def shown(self) -> object:
        """Those of the other region."""
        return self._items(self._plain[1])

    def _items(self, plain: Any) -> list[dict[str, Any]]:
        found = plain.scan(TableName=TABLE, ConsistentRead=True)["Items"]
        kept = [each for each in found if each["id"]["S"] != NOTE]
        return sorted(kept, key=lambda each: str(each["id"]["S"]))

    def hold(self) -> None:
        """Hold the copies."""
        self.topology.pause()

    def release(self) -> None:
        """Let them go on; what the emulator's stream lacks is copied all the same."""
        self.topology.resume()
        self.topology.wait_replicated()
        if not self.copied:
            self.topology.reseed()
            self.copied = True

    async def call(self, name: str, **params: Any) -> dict[str, Any]:
        """One call of the client, at the session's region."""
        self.trace.append(f"{name} {params}")
        found: dict[str, Any] = await getattr(self.session, name)(**params)
        return found

    async def state(self, name: str, **params: Any) -> None:
        """The same of PartiQL, which the stream does not have."""
        self.copied = False
        await self.call(name, **params)

    def item(self, choose: random.Random) -> dict[str, Any]:
        """A new value, of an item that may be there, or of a new one."""
        number = self.number()
        return {**_key(choose.choice((*KEYS, f"n{number}"))), "v": {"N": str(number)}}

    def put(self, choose: random.Random, **more: Any) -> dict[str, Any]:
        """A put as requests have it, which is perhaps refused."""
        refused = ABSENT if choose.random() < 0.3 else {}
        return {"TableName": TABLE, "Item": self.item(choose), **refused, **more}

    def update(self, choose: random.Random) -> dict[str, Any]:
        """An update as requests have it, which is perhaps refused."""
        refused = {"ConditionExpression": "v > :v"} if choose.random() < 0.3 else {}
        return {
            "TableName": TABLE,
            "Key": _key(choose.choice(KEYS)),
            "UpdateExpression": "SET v = :v",
            "ExpressionAttributeValues": {":v": {"N": str(self.number())}},
            **refused,
        }

    def removal(self, choose: random.Random) -> dict[str, Any]:
        """A deletion as requests have it."""
        return {"TableName": TABLE, "Key": _key(choose.choice((*KEYS, "no such item")))}

    @step(OFTEN)
    async def put_item(self, choose: random.Random) -> None:
        """Put an item, perhaps only if it is not there."""
        await self.call("put_item", **self.put(choose))

    @step(OFTEN)
    async def update_item(self, choose: random.Random) -> None:
        """Update an item; its reply may show the old one."""
        shown = choose.choice(({}, {"ReturnValues": "ALL_OLD"}, {"ReturnValues": "ALL_NEW"}))
        await self.call("update_item", **self.update(choose), **shown)

    @step(2)
    async def update_as_of_old(self, choose: random.Random) -> None:
        """``AttributeUpdates``."""
        value = {"v": {"Action": "PUT", "Value": {"N": str(self.number())}}}
        key = _key(choose.choice(KEYS))
        await self.call("update_item", TableName=TABLE, Key=key, AttributeUpdates=value)

    @step(2)
    async def touch(self, choose: random.Random) -> None:
        """An update of nothing, which makes an item that is not there."""
        await self.call("update_item", TableName=TABLE, Key=_key(choose.choice(KEYS)))

    @step(4)
    async def delete_item(self, choose: random.Random) -> None:
        """Delete an item, which may not be there."""
        await self.call("delete_item", **self.removal(choose))

    @step(OFTEN)
    async def batch(self, choose: random.Random) -> None:
        """Several puts and deletions; one item twice is refused."""
        puts = [{"PutRequest": {"Item": self.item(choose)}} for _ in range(choose.randrange(1, 4))]
        key = self.removal(choose)["Key"]
        deletions = [{"DeleteRequest": {"Key": key}}] if choose.random() < 0.3 else []
        await self.call("batch_write_item", RequestItems={TABLE: [*puts, *deletions]})

    @step(OFTEN)
    async def transaction(self, choose: random.Random) -> None:
        """Several actions, of which one may be refused, perhaps with a token of its own."""
        actions = [{"Put": self.put(choose)}]
        actions += [{"Update": self.update(choose)}] if choose.random() < 0.5 else []
        actions += [{"Delete": self.removal(choose)}] if choose.random() < 0.3 else []
        own = choose.random() < 0.1
        token = {"ClientRequestToken": f"token-{self.number()}"} if own else {}
        await self.call("transact_write_items", TransactItems=actions, **token)

    @step(4)
    async def insert_statement(self, choose: random.Random) -> None:
        """``INSERT`` of PartiQL, which is refused where the item is there."""
        item = self.item(choose)
        text = f"INSERT INTO {TABLE} VALUE {{'id': ?, 'v': ?}}"
        values = [item["id"], item["v"]]
        await self.state("execute_statement", Statement=text, Parameters=values)

    @step(4)
    async def update_statement(self, choose: random.Random) -> None:
        """``UPDATE`` or ``DELETE`` of PartiQL."""
        key = {"S": choose.choice(KEYS)}
        if choose.random() < 0.7:
            text = f"UPDATE {TABLE} SET v = ? WHERE id = ?"  # noqa: S608 - a constant
            values = [{"N": str(self.number())}, key]
        else:
            text, values = f"DELETE FROM {TABLE} WHERE id = ?", [key]  # noqa: S608 - a constant
        await self.state("execute_statement", Statement=text, Parameters=values)

    @step(2)
    async def batch_of_statements(self, choose: random.Random) -> None:
        """Several statements, of which each is done or refused alone."""
        items = [self.item(choose) for _ in range(choose.randrange(1, 3))]
        text = f"INSERT INTO {TABLE} VALUE {{'id': ?, 'v': ?}}"
        given = [{"Statement": text, "Parameters": [each["id"], each["v"]]} for each in items]
        await self.state("batch_execute_statement", Statements=given)

    @step(2)
    async def transaction_of_statements(self, choose: random.Random) -> None:
        """The same, whole or not at all."""
        item = self.item(choose)
        text = f"INSERT INTO {TABLE} VALUE {{'id': ?, 'v': ?}}"
        given = [{"Statement": text, "Parameters": [item["id"], item["v"]]}]
        await self.state("execute_transaction", TransactStatements=given)

    @step(OFTEN)
    async def read(self, choose: random.Random) -> None:
        """A read of any kind."""
        keys = [_key(each) for each in KEYS]
        name, params = choose.choice(
            (
                ("get_item", {"TableName": TABLE, "Key": keys[0]}),
                ("scan", {"TableName": TABLE, "Limit": 3}),
                ("batch_get_item", {"RequestItems": {TABLE: {"Keys": keys}}}),
                (
                    "transact_get_items",
                    {"TransactItems": [{"Get": {"TableName": TABLE, "Key": keys[0]}}]},
                ),
                ("execute_statement", {"Statement": f"SELECT * FROM {TABLE}"}),  # noqa: S608
            )
        )
        await self.call(name, **params)

    @step()
    async def refused(self, choose: random.Random) -> None:
        """What the service refuses, or the client."""
        name, params = choose.choice(
            (
                ("update_item", {**self.update(choose), "UpdateExpression": "SET"}),
                ("put_item", {"TableName": "no_such_table", "Item": self.item(choose)}),
                ("put_item", {"TableName": TABLE, "Item": {"id": 1}}),
                ("execute_statement", {"Statement": "NO SUCH STATEMENT"}),
            )
        )
        await self.call(name, **params)

    @step(OFTEN)
    async def read_under_floor(self, choose: random.Random) -> None:
        """Another client writes, and the session's next read has to show it."""
        number = self.number()
        with antipode.scope() as scope:
            self._other.put_item(TableName=TABLE, Item={**_key(NOTE), "n": {"N": str(number)}})
            written = scope.lineage
        antipode.barrier(written, timeout=WAIT_S, at="read")
        found = await self.call("get_item", TableName=TABLE, Key=_key(NOTE))
        if int(found["Item"]["n"]["N"]) < number:
            raise Fault("early", f"note {number} is not shown")

    @step(OFTEN)
    async def read_at_replica(self, choose: random.Random) -> None:
        """A read that waits for the request's writes is refused, or shows them."""
        antipode.barrier(timeout=HELD_S, at="read")
        self.trace.append("read at the replica")
        found = [await self._found(self.reader, key) for key in KEYS]
        plain = Awaited(self._plain[0])
        if found != [await self._found(plain, key) for key in KEYS]:
            raise Fault("early", "a held read at the replica shows older items")

    async def _found(self, client: Any, key: str) -> Any:
        reply = await client.get_item(TableName=TABLE, Key=_key(key))
        return {name: value for name, value in reply.get("Item", {}).items() if name != "_ap"}


class AsyncDynamoDB(InLoop, DynamoDBSteps):
    """aiobotocore."""

    @step(2)
    async def cancelled(self, choose: random.Random) -> None:
        """A task that is cancelled while it writes, or as it ends."""
        await self.cancel(self.put_item(choose), choose.uniform(0, CANCEL_S))


class DynamoDB(AsCalls, DynamoDBSteps):
    """boto3."""

    async def made(self, **options: Any) -> Any:
        """A client that nothing instruments."""
        client = boto3.client(**options)
        self._stack.callback(client.close)
        return client

    def whole(self, client: Any) -> Any:
        """As steps call it."""
        return Awaited(client)
