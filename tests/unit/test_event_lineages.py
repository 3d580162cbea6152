"""Lineages of events that stores emit: what their positions say, and what is none."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

import boto3
import pytest

import antipode
from antipode import ConfigurationError, Lineage, Status
from antipode_shims import dynamodb, mongodb, mysql, postgresql, redis, s3, sns
from antipode_shims.dynamodb._position import deletes
from antipode_shims.postgresql._position import State, judge, parse_history

KEYS = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
SYSTEM = 7_421_987_654_321_098_765


@pytest.mark.parametrize(
    "given",
    [
        {"lsn": ""},
        {"lsn": "0/0"},
        {"lsn": "16-B374D848"},
        {"lsn": "1/123456789"},
        {"lsn": "1/2' OR 1=1"},
        {"lsn": 0},
        {"lsn": -1},
        {"lsn": 2**64},
        {"lsn": True},
        {"lsn": None},
        {"lsn": "0/9", "system": "x"},
        {"lsn": "0/9", "system": 0},
        {"lsn": "0/9", "system": SYSTEM, "timeline": 0},
        {"lsn": "0/9", "timeline": -1},
        {"lsn": "0/9", "timeline": 1.5},
    ],
)
def test_a_forged_position_of_postgresql_is_an_error(given: dict[str, Any]) -> None:
    """Nobody is asked: it is no position, whatever the primary says."""
    with pytest.raises(ValueError, match=r"position|commit|lsn|numbers neither"):
        postgresql.lineage("app", **given)


def test_a_commit_of_the_first_timeline_asks_nobody() -> None:
    """Its log has one name only; text and number are one position."""
    lineage = postgresql.lineage("app", lsn="16/B374D848", system=SYSTEM, timeline=1)
    assert lineage == postgresql.lineage(
        "app", lsn=(0x16 << 32) + 0xB374D848, system=str(SYSTEM), timeline=1
    )
    (write,) = lineage
    assert (write.key, write.covering) == (f"{SYSTEM}/1-0", False)


@pytest.mark.parametrize("given", [{}, {"system": SYSTEM}, {"system": SYSTEM, "timeline": 2}])
def test_what_is_missing_needs_a_primary(given: dict[str, Any]) -> None:
    """Where no client reaches it, the error says so."""
    with pytest.raises(ConfigurationError, match="primary of 'app'"):
        postgresql.lineage("app", lsn="0/9", **given)


@pytest.mark.parametrize(
    ("lsn", "status"),
    [("0/3E8", Status.VISIBLE), ("0/3E9", Status.LOST)],
)
def test_a_commit_of_an_ended_timeline_is_judged_by_its_end(lsn: str, status: Status) -> None:
    """What the promoted server has is visible there, and what it never got is lost."""
    chain = parse_history("1\t0/3E8\tno recovery target specified\n", 2)
    state = State(str(SYSTEM), False, 5000, 2, "1", chain=chain)  # noqa: FBT003 - as it is read
    (write,) = postgresql.lineage("app", lsn=lsn, system=SYSTEM, timeline=1)
    assert judge(state, write)[0] is status
    (other,) = postgresql.lineage("app", lsn=lsn, system=SYSTEM + 1, timeline=1)
    assert judge(state, other)[0] is Status.UNKNOWN_LOG


def test_lineages_of_events_can_be_merged() -> None:
    """A batch's events of one log are one entry, of its last commit."""
    lineages = [postgresql.lineage("app", lsn=n, system=SYSTEM, timeline=1) for n in (5, 9, 7)]
    assert Lineage().merge(*lineages) == lineages[1]


UUID = "11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize(
    "gtid",
    [
        "",
        "ANONYMOUS",
        "0-1",
        "0-1-0",
        "0-1-99999999999999999999",
        "0-1-5; DROP TABLE notes",
        UUID,
        f"{UUID}:0",
        f"{UUID}:5-3",
        f"{UUID}:{2**63 - 1}",
        f"{UUID}:1'",
        None,
        7,
    ],
)
def test_a_forged_gtid_is_an_error(gtid: Any) -> None:
    """Nobody is asked: no server waits for it, or one would wait for nothing."""
    with pytest.raises(ValueError, match=r"GTID|transaction|gtid|version"):
        mysql.lineage("notes", gtid=gtid)


def test_mariadb_numbers_ask_nobody() -> None:
    """They name their place alone, several of them each its own."""
    found = {(write.key, write.version) for write in mysql.lineage("notes", gtid=" 0-1-5,2-7-9")}
    assert found == {("0.1", 5), ("2.7", 9)}


def test_mysql_numbers_need_a_primary() -> None:
    """They may have gaps."""
    with pytest.raises(ConfigurationError, match="primary of 'notes'"):
        mysql.lineage("notes", gtid=f"{UUID}:5")


@pytest.mark.parametrize(
    "change",
    [
        None,
        [],
        {},
        {"clusterTime": None},
        {"clusterTime": 5},
        {"clusterTime": {"t": 5, "i": 1}},
        {"clusterTime": {"$timestamp": 5}},
        {"clusterTime": {"$timestamp": {"t": 0, "i": 1}}},
        {"clusterTime": {"$timestamp": {"t": "5", "i": 1}}},
        {"clusterTime": {"$timestamp": {"t": 2**32, "i": 1}}},
        {"clusterTime": {"$timestamp": {"t": 5, "i": -1}}},
    ],
)
def test_a_change_without_its_time_is_an_error(change: Any) -> None:
    """Nobody is asked."""
    with pytest.raises(ValueError, match="clusterTime"):
        mongodb.lineage("posts", change)


def record(name: str, **held: Any) -> dict[str, Any]:
    """A record of an event of S3's."""
    made = {"key": "a+b", "versionId": "v1", **held}
    told = {"bucket": {"name": "notes"}, "object": made}
    return {"eventSource": "aws:s3", "awsRegion": "eu-west-1", "eventName": name, "s3": told}


UNSAMPLED = Lineage(incomplete=[("posts", "unsampled")])


@pytest.mark.parametrize(
    ("name", "version", "found"),
    [
        ("ObjectCreated:Put", "v1", "v1"),
        ("s3:ObjectCreated:CompleteMultipartUpload", "v1", "v1"),
        ("ObjectRemoved:DeleteMarkerCreated", "m1", "m1"),
        ("LifecycleExpiration:DeleteMarkerCreated", "m1", "m1"),
        ("ObjectCreated:Put", None, "unsampled"),
        ("ObjectCreated:Put", "null", "unsampled"),
        ("ObjectCreated:Put", "", "unsampled"),
        ("ObjectRemoved:Delete", "v1", "unsampled"),
        ("ObjectTagging:Put", "v1", "unsampled"),
        ("ObjectAcl:Put", "v1", "unsampled"),
        ("of a later year", "v1", "unsampled"),
        ("ObjectRestore:Completed", "v1", ""),
        ("Replication:OperationReplicatedAfterThreshold", "v1", ""),
    ],
)
def test_an_event_of_s3_has_the_version_that_was_made(name: str, version: Any, found: str) -> None:
    """What has none is marked, and what changes nothing that is read is nothing."""
    lineage = s3.lineage("posts", {"Records": [record(name, versionId=version)]})
    if found == "unsampled":
        assert lineage == UNSAMPLED
    else:
        named = [(write.key, write.version) for write in lineage]
        assert named == [("notes/a b@eu-west-1", found)] * bool(found)
        assert not lineage.incomplete


def test_an_event_of_eventbridge_is_one_of_s3() -> None:
    """Its key is as it is, and a deletion says of which kind it was."""

    def bridged(kind: str, **more: str) -> dict[str, Any]:
        made = {"key": "a+b", "version-id": "v1"}
        detail = {"bucket": {"name": "notes"}, "object": made, **more}
        return {"source": "aws.s3", "region": "eu-west-1", "detail-type": kind, "detail": detail}

    (write,) = s3.lineage("posts", bridged("Object Created"))
    assert (write.key, write.version) == ("notes/a+b@eu-west-1", "v1")
    marked = {"deletion-type": "Delete Marker Created"}
    assert len(s3.lineage("posts", bridged("Object Deleted", **marked))) == 1
    gone = {"deletion-type": "Permanently Deleted"}
    assert s3.lineage("posts", bridged("Object Deleted", **gone)) == UNSAMPLED
    assert s3.lineage("posts", bridged("Object Tags Added")) == UNSAMPLED
    assert s3.lineage("posts", bridged("Object Restore Completed")) == Lineage()


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        {},
        {"Records": []},
        {"Records": [record("ObjectCreated:Put"), {"eventSource": "aws:sqs"}]},
        {"Records": [{**record("ObjectCreated:Put"), "s3": {}}]},
        {"Records": [{**record("ObjectCreated:Put"), "awsRegion": "EU/@"}]},
        {"Records": [record("ObjectCreated:Put", key="")]},
        {"eventSource": "aws:s3", "s3": None},
    ],
)
def test_what_is_no_event_of_s3_is_an_error(event: Any) -> None:
    """Forged or another service's: it names no object."""
    with pytest.raises(ValueError, match="event of S3"):
        s3.lineage("posts", event)


def test_a_handler_is_told_where_nobody_says_whose_an_event_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No client of S3 here, and no name: it depends on nothing, and the log says what to do."""
    seen: list[Lineage] = []
    event = {"Records": [record("ObjectCreated:Put")]}
    sns.lambda_handler(datastore="jobs")(lambda _: seen.append(antipode.current()))(event)
    assert seen == [Lineage()]
    assert "events='...'" in caplog.text
    named = sns.lambda_handler(datastore="jobs", events="posts")
    named(lambda _: seen.append(antipode.current()))(event)
    assert seen[1] == s3.lineage("posts", event)


def test_a_forged_event_in_a_message_never_breaks_its_handler() -> None:
    """It is unreadable, as a forged label is."""
    seen: list[Lineage] = []
    event = {"Records": [{**record("ObjectCreated:Put"), "awsRegion": "EU/@"}]}
    handle = sns.lambda_handler(datastore="jobs", events="posts")
    handle(lambda _: seen.append(antipode.current()))(event)
    assert seen == [Lineage(incomplete=[("jobs", "unreadable")])]


ARN = "arn:aws:dynamodb:eu-west-1:1:table/posts/stream/2026-11-30T00:00:00.000"
STAMPED = 1_790_000_000_000_000 << 12


def change(kind: str = "INSERT", **more: Any) -> dict[str, Any]:
    """A record of a table's stream."""
    told = {"Keys": {"id": {"S": "a"}}, **more}
    named = {"eventSource": "aws:dynamodb", "awsRegion": "eu-west-1", "eventSourceARN": ARN}
    return {**named, "eventName": kind, "dynamodb": told}


def image(stamp: object) -> dict[str, Any]:
    """An item with what stands where a stamp does."""
    return {"id": {"S": "a"}, "_ap": {"N": str(stamp)}}


@pytest.mark.parametrize(
    ("told", "exact"),
    [
        (change(NewImage=image(STAMPED)), True),
        (change("MODIFY", NewImage=image(STAMPED), OldImage=image(STAMPED - 4096)), True),
        (change("MODIFY", NewImage=image(STAMPED), OldImage={"id": {"S": "a"}}), True),
        (change("MODIFY", NewImage=image(STAMPED), OldImage=image(STAMPED)), False),
        (change("MODIFY", NewImage=image(STAMPED)), False),
        (change("REMOVE", OldImage=image(STAMPED)), False),
        (change(), False),
        (change(NewImage={"id": {"S": "a"}}), False),
        (change(NewImage=image(STAMPED | 1)), False),
        (change(NewImage=image(0)), False),
        (change(NewImage=image(-4096)), False),
        (change(NewImage=image(2**64)), False),
        (change(NewImage=image("x")), False),
    ],
)
def test_a_record_has_the_stamp_of_its_own_write_alone(
    told: dict[str, Any], *, exact: bool
) -> None:
    """One that may be another's, or forged, is none: the write is waited for as of now."""
    (write,) = dynamodb.lineage("posts", told)
    assert write.key == "posts/id=a@eu-west-1"
    assert write.covering is not exact
    if exact:
        assert write.version == STAMPED
    else:
        assert deletes(int(write.version)) is (told["eventName"] == "REMOVE")


def test_a_key_of_bytes_is_one_key_however_it_comes() -> None:
    """Lambda has it in Base64, and a client of boto3 as it is."""
    for value in (b"\x00\xff", "AP8="):
        told = change(Keys={"id": {"B": value}, "n": {"N": "1.50"}})
        (write,) = dynamodb.lineage("posts", {"Records": [told]})
        assert write.key == "posts/id=*AP8,n=#1.5@eu-west-1"


@pytest.mark.parametrize(
    "told",
    [
        None,
        {},
        {"Records": []},
        {"Records": [None]},
        change("REPLACE"),
        change(Keys=None),
        change(Keys={}),
        change(Keys={"id": {"M": {}}}),
        change(Keys={"id": {"B": "*"}}),
        {**change(), "eventSourceARN": ""},
        {**change(), "awsRegion": "eu/west"},
        {**change(), "dynamodb": []},
    ],
)
def test_what_is_no_record_of_dynamodb_is_an_error(told: Any) -> None:
    """Forged or another service's: it names no item."""
    with pytest.raises(ValueError, match="record of a stream of DynamoDB"):
        dynamodb.lineage("posts", told)


@pytest.mark.parametrize(
    "given",
    [
        {"offset": 0},
        {"offset": -1},
        {"offset": 2**63},
        {"offset": "7"},
        {"offset": True},
        {"offset": 7, "replid": ""},
        {"offset": 7, "replid": "g" * 40},
        {"offset": 7, "replid": 40},
    ],
)
def test_a_forged_offset_of_redis_is_an_error(given: dict[str, Any]) -> None:
    """Nobody is asked."""
    with pytest.raises(ValueError, match=r"offset|replid"):
        redis.lineage("posts", **given)


@pytest.mark.slow
def test_an_event_of_one_of_several_datastores_is_marked() -> None:
    """Which of them has its bucket, nobody says: a barrier in its handler raises."""
    seen: list[Lineage] = []
    with ExitStack() as stack:
        for name in ("media", "archive"):
            client = boto3.client("s3", region_name="eu-west-1", **KEYS)
            s3.instrument_client(client, datastore=name)
            stack.callback(client.close)
            stack.callback(s3.uninstrument_client, client)
        handle = sns.lambda_handler(datastore="jobs")
        event = {"Records": [record("ObjectCreated:Put")]}
        handle(lambda _: seen.append(antipode.current()))(event)
    assert seen == [Lineage(incomplete=[("jobs", "unsampled")])]


def test_a_message_with_a_label_is_no_event_of_s3() -> None:
    """Who forwards an event with its own lineage says what it depends on."""
    body = json.dumps({"Records": [record("ObjectCreated:Put")]})
    cause = postgresql.lineage("app", lsn=5, system=SYSTEM, timeline=1)
    label = {"antipode": {"DataType": "String", "StringValue": antipode.serialize(cause)}}
    message = {"MessageId": "1", "Body": body, "MessageAttributes": label}
    with sns.message(message, datastore="jobs", events="posts"):
        assert antipode.current() == cause
    with sns.message({**message, "MessageAttributes": {}}, datastore="jobs", events="posts"):
        assert antipode.current() == s3.lineage("posts", record("ObjectCreated:Put"))
