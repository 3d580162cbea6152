"""Instrumented clients of boto3: what enters the lineage, what replies show, what waits."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

import antipode
from antipode import BarrierTimeout, StaleSnapshot, Status, UnmetError
from antipode.shim import Incomplete
from antipode.telemetry import Metric, metrics
from antipode_shims import dynamodb
from antipode_testing import LagProxy, wait_until
from antipode_testing.contract.dry import all_verdicts
from tests.contract._aws import connections_to
from tests.integration._refusing import answering
from tests.integration._stale import doubtful, served
from tests.integration.dynamodb._regions import POSTS, Regions, item, name, written

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.store("dynamodb")

UNSAMPLED = Incomplete(POSTS, "unsampled")
IN_DOUBT = Incomplete(POSTS, "in_doubt")


def stored(regions: Regions, key: str, region: str = "") -> dict[str, Any]:
    """What a plain client finds."""
    plain = regions.client(region or regions.home)
    found: dict[str, Any] = plain.get_item(TableName=POSTS, Key=item(key), ConsistentRead=True).get(
        "Item", {}
    )
    return found


def put(client: Any, key: str) -> None:
    client.put_item(TableName=POSTS, Item=item(key, text="new"))


def set_text(client: Any, key: str) -> None:
    client.update_item(
        TableName=POSTS,
        Key=item(key),
        UpdateExpression="set #t = :t remove former",
        ExpressionAttributeNames={"#t": "text"},
        ExpressionAttributeValues={":t": {"S": "new"}},
    )


def add_number(client: Any, key: str) -> None:
    client.update_item(
        TableName=POSTS,
        Key=item(key),
        UpdateExpression="ADD n :one",
        ExpressionAttributeValues={":one": {"N": "1"}},
    )


def touch(client: Any, key: str) -> None:
    client.update_item(TableName=POSTS, Key=item(key))


def update_as_of_old(client: Any, key: str) -> None:
    client.update_item(
        TableName=POSTS,
        Key=item(key),
        AttributeUpdates={"text": {"Action": "PUT", "Value": {"S": "new"}}},
    )


def batch(client: Any, key: str) -> None:
    client.batch_write_item(RequestItems={POSTS: [{"PutRequest": {"Item": item(key)}}]})


def transact_put(client: Any, key: str) -> None:
    action = {"Put": {"TableName": POSTS, "Item": item(key)}}
    client.transact_write_items(TransactItems=[action])


def transact_update(client: Any, key: str) -> None:
    action = {
        "Update": {
            "TableName": POSTS,
            "Key": item(key),
            "UpdateExpression": "SET a = :a",
            "ExpressionAttributeValues": {":a": {"S": "b"}},
        }
    }
    client.transact_write_items(TransactItems=[action])


WRITES = (
    put,
    set_text,
    add_number,
    touch,
    update_as_of_old,
    batch,
    transact_put,
    transact_update,
)


@pytest.mark.parametrize("write", WRITES)
def test_a_write_is_named_by_its_stamp(
    client: Any, regions: Regions, write: Callable[[Any, str], None]
) -> None:
    """What enters the lineage has the stamp that the item has, and a later write a later one."""
    key = name()
    with antipode.scope() as scope:
        for _ in range(2):
            before = written().get(key)
            write(client, key)
            after = written()[key]
            assert after.version == int(stored(regions, key)["_ap"]["N"])
            assert before is None or int(after.version) > int(before.version)
        assert not scope.lineage.incomplete


def test_writes_ask_for_nothing_more(regions: Regions) -> None:
    """A write is one request, but that the first put into a table asks for its key."""
    client = regions.client(regions.home)
    sent: list[str] = []
    client.meta.events.register("before-send", lambda request, **_: sent.append(_target(request)))
    regions.instrumented(client)
    with antipode.scope():
        for write in (*WRITES, put):
            write(client, name())
    assert sent.count("DescribeTable") == 1
    assert len(sent) == len(WRITES) + 2


def _target(request: Any) -> str:
    return str(request.headers["X-Amz-Target"].decode()).partition(".")[2]


def test_a_barrier_in_the_other_region_waits(client: Any, regions: Regions) -> None:
    """Under lag a read after its barrier shows each write, also a deletion."""
    reader = regions.reader()
    regions.topology.set_lag(40)
    for _ in range(5):
        key = name()
        with antipode.scope():
            put(client, key)
            antipode.barrier(timeout=10)
            found = reader.get_item(TableName=POSTS, Key=item(key))
            assert found["Item"] == item(key, text="new")
            client.delete_item(TableName=POSTS, Key=item(key))
            antipode.barrier(timeout=10)
            assert "Item" not in reader.get_item(TableName=POSTS, Key=item(key))


def test_a_read_waits_for_its_floor(client: Any, regions: Regions) -> None:
    """After ``barrier(at="read")`` a read is held until its region shows the write."""
    reader, key = regions.reader(), name()
    regions.topology.pause()
    with antipode.scope(), ThreadPoolExecutor(1) as pool:
        put(client, key)
        lineage = antipode.current()

        def read() -> Any:
            with antipode.scope(lineage):
                antipode.barrier(timeout=10, at="read")
                return reader.get_item(TableName=POSTS, Key=item(key)).get("Item")

        reading = pool.submit(read)
        with pytest.raises(BarrierTimeout):
            antipode.barrier(timeout=0.1)
        assert not reading.done()
        regions.topology.resume()
        assert reading.result(10) == item(key, text="new")


def test_a_held_read_outlasts_a_region_that_is_away(client: Any, regions: Regions) -> None:
    """A poll that fails is repeated: the read waits until its region answers, or its time is up."""
    with LagProxy(regions.topology.replica) as proxy, ThreadPoolExecutor(1) as pool:
        plain = regions.client(regions.away, endpoint_url=f"http://{proxy.address}")
        reader = regions.instrumented(plain, reads_from="replica")
        key = name()
        with antipode.scope() as scope:
            put(client, key)
        polls = Metric("polls", POSTS)

        def read(timeout_s: float) -> Any:
            with antipode.scope(scope.lineage):
                antipode.barrier(timeout=timeout_s, at="read")
                return reader.get_item(TableName=POSTS, Key=item(key)).get("Item")

        proxy.cut()
        with pytest.raises(BarrierTimeout):
            read(0.2)
        before = metrics().get(polls, 0)
        reading = pool.submit(read, 30.0)
        wait_until(
            lambda: reading.done() or metrics().get(polls, 0) > before,
            what="a poll that fails",
            timeout_s=30,
        )
        proxy.heal()
        assert reading.result(60) == item(key, text="new")


def test_a_deletion_is_named(client: Any, regions: Regions) -> None:
    """A deletion enters, and is visible where the item is gone."""
    key = name()
    with antipode.scope():
        put(client, key)
        first = written()[key]
        client.delete_item(TableName=POSTS, Key=item(key))
        assert int(written()[key].version) > int(first.version)
        assert antipode.barrier(timeout=5).ok


def test_a_batch_enters_what_was_done(client: Any) -> None:
    """Puts and deletions of a batch enter, each by its item."""
    keys = [name() for _ in range(3)]
    with antipode.scope():
        put(client, keys[0])
        requests = [{"PutRequest": {"Item": item(key)}} for key in keys[1:]]
        delete = {"DeleteRequest": {"Key": item(keys[0])}}
        client.batch_write_item(RequestItems={POSTS: [*requests, delete]})
        assert set(written()) == set(keys)


def test_what_a_batch_left_undone_does_not_enter(regions: Regions) -> None:
    """Unprocessed items are no writes; they come back without the stamp."""
    client = regions.client(regions.home)
    keys = [name() for _ in range(4)]

    def leave(parsed: dict[str, Any], **_: Any) -> None:
        sent = [{"PutRequest": {"Item": {**item(keys[0]), "_ap": {"N": str(stamps[0])}}}}]
        deleted = [{"DeleteRequest": {"Key": item(keys[1])}}]
        parsed["UnprocessedItems"] = {POSTS: sent + deleted}

    stamps: list[int] = []

    def note(params: dict[str, Any], **_: Any) -> None:
        import json

        requests = json.loads(params["body"])["RequestItems"][POSTS]
        stamps.extend(int(each["PutRequest"]["Item"]["_ap"]["N"]) for each in requests[:2])

    client.meta.events.register("before-call.dynamodb.BatchWriteItem", note)
    client.meta.events.register_first("after-call.dynamodb.BatchWriteItem", leave)
    regions.instrumented(client)
    requests = [{"PutRequest": {"Item": item(key)}} for key in (keys[0], keys[2])]
    requests += [{"DeleteRequest": {"Key": item(key)}} for key in (keys[1], keys[3])]
    with antipode.scope():
        told = client.batch_write_item(RequestItems={POSTS: requests})
        assert set(written()) == {keys[2], keys[3]}
    assert told["UnprocessedItems"][POSTS] == [requests[0], requests[2]]


def test_a_transaction_enters_whole_or_not_at_all(client: Any) -> None:
    """All its items enter; where a condition fails, none does, and nothing is in doubt."""
    keys = [name() for _ in range(3)]
    put_first = {"Put": {"TableName": POSTS, "Item": item(keys[0])}}
    delete = {"Delete": {"TableName": POSTS, "Key": item(keys[1])}}
    absent = {
        "ConditionCheck": {
            "TableName": POSTS,
            "Key": item(keys[2]),
            "ConditionExpression": "attribute_exists(id)",
        }
    }
    with antipode.scope() as scope:
        with pytest.raises(ClientError, match="TransactionCanceled"):
            client.transact_write_items(TransactItems=[put_first, absent])
        assert scope.lineage.empty
        client.transact_write_items(TransactItems=[put_first, delete])
        assert set(written()) == set(keys[:2])


def test_a_failed_condition_enters_nothing(client: Any) -> None:
    """The service refused the write; the item that it shows has no stamp."""
    key = name()
    with antipode.scope():
        put(client, key)
    with antipode.scope() as scope:
        with pytest.raises(ClientError) as caught:
            client.put_item(
                TableName=POSTS,
                Item=item(key),
                ConditionExpression="attribute_not_exists(id)",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        assert scope.lineage.empty
    assert caught.value.response["Item"] == item(key, text="new")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("NONE", None),
        ("ALL_OLD", {"text": {"S": "old"}}),
        ("UPDATED_OLD", {"text": {"S": "old"}}),
        ("ALL_NEW", {"text": {"S": "new"}}),
        ("UPDATED_NEW", {"text": {"S": "new"}}),
    ],
)
def test_replies_of_updates_show_no_stamp(client: Any, given: str, shown: Any) -> None:
    """Whatever an update is asked to return, it returns as without the shim."""
    key = name()
    with antipode.scope():
        client.put_item(TableName=POSTS, Item=item(key, text="old"))
        told = client.update_item(
            TableName=POSTS,
            Key=item(key),
            UpdateExpression="SET #t = :t",
            ExpressionAttributeNames={"#t": "text"},
            ExpressionAttributeValues={":t": {"S": "new"}},
            ReturnValues=given,
        )
    found = told.get("Attributes")
    if found is not None:
        found.pop("id", None)
    assert found == shown


def test_reads_show_no_stamp(client: Any) -> None:
    """No read of the client shows the attribute, in whatever form it has its items."""
    key = name()
    plain = item(key, text="new")
    named = {"TableName": POSTS, "Key": item(key)}
    with antipode.scope():
        put(client, key)
        assert client.get_item(**named)["Item"] == plain
        keys = {POSTS: {"Keys": [item(key)]}}
        assert client.batch_get_item(RequestItems=keys)["Responses"][POSTS] == [plain]
        told = client.transact_get_items(TransactItems=[{"Get": named}])
        assert told["Responses"] == [{"Item": plain}]
        assert plain in client.scan(TableName=POSTS)["Items"]
        values = {":id": {"S": key}}
        condition = {"KeyConditionExpression": "id = :id", "ExpressionAttributeValues": values}
        assert client.query(TableName=POSTS, **condition)["Items"] == [plain]
        select = {"Statement": "SELECT * FROM posts WHERE id = ?", "Parameters": [{"S": key}]}
        assert client.execute_statement(**select)["Items"] == [plain]
        told = client.execute_transaction(TransactStatements=[select])
        assert [each["Item"] for each in told["Responses"]] == [plain]
        told = client.batch_execute_statement(Statements=[select])
        assert [each["Item"] for each in told["Responses"]] == [plain]
        assert client.delete_item(**named, ReturnValues="ALL_OLD")["Attributes"] == plain


def test_items_of_the_application_stay_as_they_are(client: Any) -> None:
    """The objects that the application passed are not changed."""
    key = name()
    given = item(key)
    requests = {POSTS: [{"PutRequest": {"Item": given}}]}
    actions = [{"Put": {"TableName": POSTS, "Item": given}}]
    with antipode.scope():
        client.put_item(TableName=POSTS, Item=given)
        client.batch_write_item(RequestItems=requests)
        client.transact_write_items(TransactItems=actions)
    assert given == item(key)
    assert requests == {POSTS: [{"PutRequest": {"Item": item(key)}}]}
    assert actions == [{"Put": {"TableName": POSTS, "Item": item(key)}}]


def test_resources_tables_and_batch_writers(regions: Regions) -> None:
    """A resource's tables, its batch writer and its own forms of items are covered."""
    resource = regions.instrumented(regions.resource(regions.home))
    table = resource.Table(POSTS)
    keys = [name() for _ in range(30)]
    with antipode.scope():
        table.put_item(Item={"id": keys[0], "n": 1})
        assert table.get_item(Key={"id": keys[0]})["Item"] == {"id": keys[0], "n": 1}
        table.update_item(
            Key={"id": keys[0]},
            UpdateExpression="SET n = :n",
            ExpressionAttributeValues={":n": 2},
        )
        with table.batch_writer() as batch:
            for key in keys[1:]:
                batch.put_item(Item={"id": key})
        delete = {"DeleteRequest": {"Key": {"id": keys[1]}}}
        resource.batch_write_item(RequestItems={POSTS: [delete]})
        assert set(written()) == set(keys)
        assert antipode.barrier(timeout=5).ok
        found = [each for each in table.scan()["Items"] if each["id"] in keys]
        assert all(set(each) <= {"id", "n"} for each in found)
        assert len(found) == len(keys) - 1


def test_paginators_and_waiters(client: Any, regions: Regions) -> None:
    """Each page of a paginator is a read of its own, and a waiter waits as without the shim."""
    keys = [name() for _ in range(5)]
    with antipode.scope():
        for key in keys:
            put(client, key)
        antipode.barrier(timeout=5, at="read")
        pages = client.get_paginator("scan").paginate(
            TableName=POSTS, PaginationConfig={"PageSize": 2}
        )
        found = {each["id"]["S"] for page in pages for each in page["Items"]}
        assert found >= set(keys)
        client.get_waiter("table_exists").wait(TableName=POSTS)


def test_numbers_bytes_and_sort_keys(client: Any, regions: Regions) -> None:
    """Keys of every type are named, waited for, and are the same however a number is written."""
    table = f"sorted-{name()}"
    regions.topology.create_table(table, owner="B", at="N")
    regions.reader()
    with antipode.scope():
        for number in ("1", "1.0", "-2.50", "1E+3"):
            key = {"owner": {"B": b"\x00,=%/@"}, "at": {"N": number}}
            client.put_item(TableName=table, Item={**key, "text": {"S": "a"}})
        assert len(antipode.current()) == 3
        assert antipode.barrier(timeout=10).ok


def one_statement(client: Any, text: str, parameters: list[Any]) -> None:
    client.execute_statement(Statement=text, Parameters=parameters)


def statements_of_a_batch(client: Any, text: str, parameters: list[Any]) -> None:
    refused = {"Statement": f"UPDATE \"{POSTS}\" SET text = 'a' WHERE id = 'not there'"}  # noqa: S608
    statement = {"Statement": text, "Parameters": parameters}
    told = client.batch_execute_statement(Statements=[refused, statement])
    assert "Error" in told["Responses"][0]


def statements_of_a_transaction(client: Any, text: str, parameters: list[Any]) -> None:
    statement = {"Statement": text, "Parameters": parameters}
    client.execute_transaction(TransactStatements=[statement])


@pytest.mark.parametrize(
    "write", [one_statement, statements_of_a_batch, statements_of_a_transaction]
)
def test_statements_set_their_stamp(
    client: Any, regions: Regions, write: Callable[[Any, str, list[Any]], None]
) -> None:
    """A write by PartiQL is named by the stamp that it sets in its item, and shows none."""
    key = name()
    with antipode.scope() as scope:
        for text, parameters in (
            (f"INSERT INTO \"{POSTS}\" VALUE {{'text': ?, 'id': ?}}", [{"S": "a?"}, {"S": key}]),
            (f'UPDATE "{POSTS}" SET text = ? WHERE id = ?', None),  # noqa: S608
        ):
            write(client, text, parameters or [{"S": "b"}, {"S": key}])
            assert set(written()) == {key}
            assert written()[key].version == int(stored(regions, key)["_ap"]["N"])
        assert antipode.barrier(timeout=5).ok
        write(client, f'DELETE FROM "{POSTS}" WHERE id = ?', [{"S": key}])  # noqa: S608
        assert not stored(regions, key)
        assert int(written()[key].version) & 1
        assert not scope.lineage.incomplete
    (shown,) = client.execute_statement(Statement=f'SELECT * FROM "{POSTS}"')["Items"][:1] or [{}]  # noqa: S608
    assert "_ap" not in shown


@pytest.mark.parametrize(
    ("returning", "shown"),
    [
        ("ALL OLD", [{"id", "text"}]),
        ("ALL NEW", [{"id", "text", "n"}]),
        ("MODIFIED OLD", []),
        ("MODIFIED NEW", [{"n"}]),
    ],
)
def test_statements_return_no_stamp(client: Any, returning: str, shown: list[set[str]]) -> None:
    """What an update returns is as without the shim, also where it modified the stamp alone."""
    key = name()
    with antipode.scope():
        put(client, key)
        told = client.execute_statement(
            Statement=f'UPDATE "{POSTS}" SET n = 1 WHERE id = ? RETURNING {returning} *',  # noqa: S608
            Parameters=[{"S": key}],
        )
    assert [set(each) for each in told["Items"]] == shown


def test_a_batch_that_names_an_item_twice_is_refused(client: Any) -> None:
    """Of two puts that are equal each has no stamp of its own, by which they would differ."""
    sent: list[Any] = []
    client.meta.events.register_last(
        "before-call.dynamodb.BatchWriteItem",
        lambda params, **_: sent.extend(json.loads(params["body"])["RequestItems"][POSTS]),
    )
    request = {"PutRequest": {"Item": item(name())}}
    with antipode.scope() as scope:
        with pytest.raises(ClientError, match="duplicates"):
            client.batch_write_item(RequestItems={POSTS: [request, request]})
        assert scope.lineage.empty
    assert sent == [request, request]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO \"{0}\" VALUE {{'id': '{1}', '_ap': 1}}",
        "UPDATE \"{0}\" SET text = 'b' WHERE id = '{1}' AND NOT (text = 'c')",
    ],
)
def test_statements_that_are_not_understood_are_marked(client: Any, text: str) -> None:
    """They go as they are, and their request says that something is missing."""
    key = name()
    before = metrics().get(Metric("uncovered_write", POSTS), 0)
    with antipode.scope() as scope:
        put(client, key if text.startswith("UPDATE") else name())
        client.execute_statement(Statement=text.format(POSTS, key))
        assert UNSAMPLED in scope.lineage.incomplete
    assert metrics()[Metric("uncovered_write", POSTS)] == before + 1


def test_a_transaction_fulfils_a_promise(client: Any, regions: Regions) -> None:
    """It counts where all is that its transaction wrote; a plain client's record never does."""
    regions.reader()
    keys = [name(), name()]
    actions = [{"Put": {"TableName": POSTS, "Item": item(key)}} for key in keys]
    with antipode.scope():
        promise = antipode.promise(POSTS, expires_in_s=600)
        lineage = antipode.current()
    plain = regions.client(regions.home)
    plain.transact_write_items(TransactItems=dynamodb.fulfil(actions, promise))
    regions.topology.wait_replicated()
    with pytest.raises(BarrierTimeout, match="not instrumented"):
        antipode.barrier(lineage, timeout=0.3)
    regions.topology.pause()
    with antipode.scope():
        client.transact_write_items(TransactItems=dynamodb.fulfil(actions, promise.token))
        assert set(written()) == set(keys)
    with pytest.raises(BarrierTimeout):
        antipode.barrier(lineage, timeout=0.3)
    regions.topology.resume()
    assert antipode.barrier(lineage, timeout=10).ok
    away = regions.client(regions.away)
    for key in keys:
        found = away.get_item(TableName=POSTS, Key=item(key), ConsistentRead=True)["Item"]
        assert found["_ap"] == stored(regions, key)["_ap"]


def test_a_token_of_the_application_keeps_its_transaction_the_same(client: Any) -> None:
    """A transaction that is tried again with its token is the same one: nothing is added."""
    key, token = name(), name()
    actions = [{"Put": {"TableName": POSTS, "Item": item(key)}}]
    with antipode.scope() as scope:
        for _ in range(2):
            client.transact_write_items(TransactItems=actions, ClientRequestToken=token)
        assert UNSAMPLED in scope.lineage.incomplete


def test_unknown_keys_are_marked(regions: Regions) -> None:
    """Where a table's key cannot be asked for, a put goes through and marks; ``keys=`` says it."""
    client = regions.client(regions.home)

    def refuse(**_: Any) -> None:
        error = {"Error": {"Code": "AccessDeniedException", "Message": "no"}}
        raise ClientError(error, "DescribeTable")  # type: ignore[arg-type]

    client.meta.events.register("before-call.dynamodb.DescribeTable", refuse)
    regions.instrumented(client)
    with antipode.scope() as scope:
        put(client, name())
        assert UNSAMPLED in scope.lineage.incomplete
    dynamodb.uninstrument_client(client)
    regions.instrumented(client, keys={POSTS: ["id"]})
    key = name()
    with antipode.scope() as scope:
        put(client, key)
        assert set(written()) == {key}
        assert not scope.lineage.incomplete


def test_a_lost_reply_is_in_doubt(regions: Regions) -> None:
    """A write whose reply is lost may have been done."""
    with LagProxy(regions.topology.primary) as proxy:
        config = Config(retries={"total_max_attempts": 1}, read_timeout=1)
        client = regions.client(regions.home, endpoint_url=f"http://{proxy.address}", config=config)
        regions.instrumented(client, keys={POSTS: ["id"]})
        proxy.set_lag(60_000)
        with antipode.scope() as scope:
            with pytest.raises(ReadTimeoutError):
                put(client, name())
            assert IN_DOUBT in scope.lineage.incomplete
        proxy.cut()


@pytest.mark.parametrize(
    ("answers", "doubt"),
    [
        (((400, "ThrottlingException"),), False),
        (((500, "InternalServerError"), (400, "ThrottlingException")), True),
        (((400, "ExpiredTokenException"),), False),
        (((400, "TransactionInProgressException"),), True),
    ],
    ids=["throttled", "failed-then-throttled", "expired", "under-way"],
)
def test_refusals_of_every_attempt_leave_no_doubt(
    regions: Regions,
    answers: Any,
    doubt: bool,  # noqa: FBT001 - a parameter
) -> None:
    """A write that was refused each time was not done; one attempt that may have done it counts."""
    config = Config(retries={"total_max_attempts": 3})
    with answering(*answers) as url, antipode.scope() as scope:
        client = regions.client(regions.home, endpoint_url=url, config=config)
        regions.instrumented(client, keys={POSTS: ["id"]})
        with pytest.raises(ClientError, match="refused"):
            put(client, name())
        assert (IN_DOUBT in scope.lineage.incomplete) is doubt
        assert not list(scope.lineage)


def test_expired_credentials_end_a_barrier(client: Any, regions: Regions) -> None:
    """They do at once, and by the service's own word for them."""
    with answering((400, "ExpiredTokenException")) as url, antipode.scope():
        regions.instrumented(regions.client(regions.away, endpoint_url=url), reads_from="replica")
        put(client, name())
        with pytest.raises(Exception, match="ExpiredTokenException"):
            antipode.barrier(timeout=20)


def test_throttling_is_waited_out(client: Any, regions: Regions) -> None:
    """A region that throttles is unreachable until the deadline, and the error says why."""
    with answering((400, "ThrottlingException")) as url, antipode.scope():
        regions.instrumented(regions.client(regions.away, endpoint_url=url), reads_from="replica")
        put(client, name())
        with pytest.raises(UnmetError, match="ThrottlingException") as caught:
            antipode.barrier(timeout=0.3)
    (outcome,) = caught.value.result.outcomes
    assert outcome.status is Status.UNREACHABLE


def test_a_table_that_one_region_lacks(client: Any, regions: Regions) -> None:
    """A barrier there says that it knows no such table; a write to no table enters nothing."""
    table, plain = name(), regions.client(regions.home)
    plain.create_table(
        TableName=table,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    regions.reader()
    with antipode.scope() as scope:
        with pytest.raises(ClientError, match="ResourceNotFoundException"):
            client.put_item(TableName=name(), Item=item(name()))
        assert scope.lineage.empty
        client.put_item(TableName=table, Item=item(name()))
        with pytest.raises(UnmetError) as caught:
            antipode.barrier(timeout=2)
    (outcome,) = caught.value.result.outcomes
    assert outcome.status is Status.UNKNOWN_LOG
    plain.delete_table(TableName=table)


def test_a_refused_connection_leaves_no_doubt(regions: Regions) -> None:
    """A write that never left was not done."""
    with LagProxy(regions.topology.primary) as proxy:
        client = regions.client(regions.home, endpoint_url=f"http://{proxy.address}")
        regions.instrumented(client, keys={POSTS: ["id"]})
        proxy.cut()
        with antipode.scope() as scope:
            with pytest.raises(EndpointConnectionError):
                put(client, name())
            assert scope.lineage.empty


def test_an_index_cannot_show_a_floor(client: Any, regions: Regions) -> None:
    """A read of an index after a barrier raises; so does one that asks for less than it needs."""
    key = name()
    with antipode.scope():
        put(client, key)
        antipode.barrier(timeout=5, at="read")
        with pytest.raises(StaleSnapshot, match="index"):
            client.scan(TableName=POSTS, IndexName="by-text")
        with pytest.raises(StaleSnapshot, match="ConsistentRead"):
            client.get_item(TableName=POSTS, Key=item(key), ConsistentRead=False)
        assert client.get_item(TableName=POSTS, Key=item(key), ConsistentRead=True)["Item"]


def test_reads_after_a_barrier_are_consistent(regions: Regions) -> None:
    """A read says ``ConsistentRead`` where a barrier asks for it, and nowhere else."""
    client = regions.client(regions.home)
    sent: list[str] = []
    client.meta.events.register(
        "before-call.dynamodb.GetItem", lambda params, **_: sent.append(str(params["body"]))
    )
    regions.instrumented(client)
    key = name()
    with antipode.scope():
        put(client, key)
        client.get_item(TableName=POSTS, Key=item(key))
        antipode.barrier(timeout=5)
        client.get_item(TableName=POSTS, Key=item(key))
    assert ["ConsistentRead" in each for each in sent] == [False, True]


def test_uninstrumenting_leaves_a_plain_client(client: Any, regions: Regions) -> None:
    """Afterwards its writes have no stamp, and nothing of it enters a lineage."""
    key = name()
    dynamodb.uninstrument_client(client)
    with antipode.scope() as scope:
        put(client, key)
        assert scope.lineage.empty
    assert stored(regions, key) == item(key, text="new")


def test_a_write_by_a_plain_client_ends_a_wait(client: Any, regions: Regions) -> None:
    """What a client without the shim overwrote is superseded once the reader has that, too."""
    regions.reader()
    key = name()
    plain = regions.client(regions.home)
    regions.topology.pause()
    with antipode.scope():
        put(client, key)
        lineage = antipode.current()
    plain.put_item(TableName=POSTS, Item=item(key, text="plain"))
    with pytest.raises(BarrierTimeout):
        antipode.barrier(lineage, timeout=0.2)
    regions.topology.resume()
    regions.topology.wait_replicated()
    result = antipode.barrier(lineage, timeout=10)
    assert {outcome.status for outcome in result.outcomes} == {Status.SUPERSEDED}


def test_a_write_that_was_deleted_at_home_ends_a_wait(client: Any, regions: Regions) -> None:
    """Without a tombstone the writer's region says that the item is gone."""
    regions.reader()
    key = name()
    with antipode.scope():
        put(client, key)
        lineage = antipode.current()
    regions.client(regions.home).delete_item(TableName=POSTS, Key=item(key))
    regions.topology.wait_replicated()
    result = antipode.barrier(lineage, timeout=10)
    assert {outcome.status for outcome in result.outcomes} == {Status.SUPERSEDED}


def test_a_conflict_ends_a_wait(client: Any, regions: Regions) -> None:
    """Where both regions wrote, a barrier ends after healing, and both have the same item."""
    writer = regions.instrumented(regions.client(regions.away), reads_from="replica")
    regions.topology.cut()
    lineages, keys = [], [name() for _ in range(5)]
    for key in keys:
        with antipode.scope():
            put(client, key)
            put(writer, key)
            lineages.append(antipode.current())
    regions.topology.heal()
    for lineage in lineages:
        assert antipode.barrier(lineage, timeout=10).ok
    regions.topology.wait_replicated()
    for key in keys:
        assert stored(regions, key) == stored(regions, key, regions.away)


def test_a_home_that_cannot_be_asked_is_told(client: Any, regions: Regions) -> None:
    """Without the address of the writer's region a barrier says what it lacks."""
    reader = regions.client(regions.away)
    dynamodb.instrument_client(reader, datastore=POSTS, reads_from="replica")
    regions.topology.pause()

    def told() -> bool:
        result = antipode.barrier(timeout=0.1, on_unmet="return")
        return "regions={'us-east-1'" in str(result.unmet[0].cause)

    try:
        with antipode.scope():
            put(client, name())
            wait_until(told, what="a barrier that says so", timeout_s=60)
    finally:
        dynamodb.uninstrument_client(reader)


def test_closing_leaves_no_connection(client: Any, regions: Regions) -> None:
    """The library's own connections, to the reader's region and the writer's, end with the shim."""
    with (
        LagProxy(regions.topology.primary) as home,
        LagProxy(regions.topology.replica) as away,
    ):
        urls = {regions.home: f"http://{home.address}"}
        plain = regions.client(regions.away, endpoint_url=f"http://{away.address}")
        shim = dynamodb.shim(POSTS, plain, table=POSTS, reads_from="replica", regions=urls)
        regions.topology.pause()
        with antipode.scope():
            put(client, name())

            def asked() -> bool:
                antipode.barrier(timeout=0.1, on_unmet="return")
                return connections_to(home.address) > 0

            wait_until(asked, what="the writer's region to be asked", timeout_s=60)
        assert connections_to(away.address) == 1
        shim.close()
        for address in (home.address, away.address):
            wait_until(
                lambda address=address: connections_to(address) == 0,  # type: ignore[misc]
                what="the connection to be closed",
                timeout_s=30,
            )


@pytest.mark.parametrize("waits", [False, True], ids=["without", "with"])
def test_a_dry_run_judges_reads(client: Any, regions: Regions, tmp_path: Path, waits: bool) -> None:  # noqa: FBT001 - a parameter
    """A read at the replica without a barrier is a finding, and with one is none."""
    reader, key = regions.reader(), name()
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    try:
        with antipode.scope():
            put(client, key)
            if waits:
                antipode.barrier(timeout=5)
            reader.get_item(TableName=POSTS, Key=item(key))
    finally:
        antipode.configure(mode="enforce", dry_run_dir=None)
    assert [verdict for verdict, _ in all_verdicts(tmp_path)] == [
        "guarded" if waits else "unguarded"
    ]


def test_a_barrier_looks_at_many_items_at_once(client: Any, regions: Regions) -> None:
    """A hundred items are one request, and a hundred and one are two."""
    keys = [name() for _ in range(101)]
    with antipode.scope():
        for start in range(0, len(keys), 25):
            requests = [{"PutRequest": {"Item": item(key)}} for key in keys[start : start + 25]]
            client.batch_write_item(RequestItems={POSTS: requests})
        lineage = antipode.current()
    assert len(lineage) == len(keys)
    looks = shim_of(client).regions
    own = looks._client(regions.home)
    sent: list[str] = []
    own.meta.events.register("before-send", lambda request, **_: sent.append(_target(request)))
    for count, requests in ((100, 1), (101, 2)):
        sent.clear()
        observation = looks.observe(list(lineage)[:count])
        assert set(observation.statuses.values()) == {Status.VISIBLE}
        assert len(sent) == requests


def shim_of(client: Any) -> Any:
    return client._antipode.shim


def test_a_read_that_is_refused_is_not_counted_as_stale(client: Any) -> None:
    """A read that raises is served to nobody."""
    antipode.configure(barriers="auto")
    put(client, "post")
    for lineage in doubtful(POSTS):
        with served(POSTS, 0), antipode.scope(lineage), pytest.raises(ClientError):
            client.get_item(TableName="nothing", Key=item("post"))
        with served(POSTS, 1), antipode.scope(lineage):
            client.get_item(TableName=POSTS, Key=item("post"))
