"""Jobs that are stored or sent while their row is in an open transaction: each is told of.

Whoever handles one may do so before the commit, and afterwards depends on nothing of the row.
"""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import boto3
import pytest

import antipode
from antipode import Lineage
from antipode._runtime import metrics
from antipode_shims import embedded, mongodb, redis, sns
from antipode_shims.embedded import EmbeddedTopology
from tests.integration.mongodb import _clients as mongodb_clients
from tests.integration.redis._clients import client, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.integration.postgresql._clients import Clients

pytestmark = pytest.mark.store("postgresql")

ROW = "posts"
INSERT = "INSERT INTO posts VALUES (%s, 'new')"


class Jobs(NamedTuple):
    """A queue: how a job is put there, and how it is got, in the scope of who handles it."""

    put: Callable[[], Any]
    get: Callable[[], Lineage]


def in_redis(topology: Any, stack: ExitStack) -> Jobs:
    """A value, with its lineage in a companion."""
    one = stack.enter_context(client(topology.primary))
    redis.instrument_client(one, datastore="jobs", lineage="beside", keys=["job:*"])
    stack.callback(redis.uninstrument_client, one)
    return Jobs(lambda: one.set("job:1", "1"), reading(lambda: one.get("job:1")))


def in_mongodb(topology: Any, stack: ExitStack) -> Jobs:
    """A document, with its lineage in a field."""
    one = stack.enter_context(mongodb_clients.client(topology.primary))
    jobs: Any = one[mongodb_clients.DB][f"jobs_{uuid.uuid4().hex[:8]}"]
    mongodb.uninstrument_client(one)
    mongodb.instrument_client(one, datastore="jobs", lineage="beside", collections=[jobs.name])
    return Jobs(lambda: jobs.insert_one({"_id": 1}), reading(lambda: jobs.find_one({"_id": 1})))


def in_table2(_: Any, stack: ExitStack) -> Jobs:
    """A value of a shim, with its lineage."""
    topology = stack.enter_context(EmbeddedTopology())
    jobs = embedded.shim("jobs", topology.primary, reads_from="primary")
    return Jobs(lambda: jobs.write("job", b"1"), lambda: jobs.read("job")[1])


def in_sqs(topology: Any, stack: ExitStack) -> Jobs:
    """A message, with its lineage in an attribute."""
    one: Any = boto3.client(
        "sqs",
        region_name=topology.regions[1],
        endpoint_url=topology.urls[1],
        **topology.credentials,
    )
    stack.callback(one.close)
    queue = one.create_queue(QueueName=f"jobs-{uuid.uuid4().hex[:8]}")["QueueUrl"]
    sns.instrument_client(one, datastore="jobs")

    def get() -> Lineage:
        (message,) = one.receive_message(QueueUrl=queue, WaitTimeSeconds=10)["Messages"]
        with sns.message(message, datastore="jobs"):
            return antipode.current()

    return Jobs(lambda: one.send_message(QueueUrl=queue, MessageBody="1"), get)


def reading(read: Callable[[], Any]) -> Callable[[], Lineage]:
    """What a request that reads depends on."""

    def get() -> Lineage:
        with antipode.scope():
            assert read()
            return antipode.current()

    return get


QUEUES = [
    pytest.param(in_redis, "antipode_redis", marks=pytest.mark.store("redis"), id="redis"),
    pytest.param(in_mongodb, "antipode_mongodb", marks=pytest.mark.store("mongodb"), id="mongodb"),
    pytest.param(in_table2, None, id="table2"),
    pytest.param(in_sqs, "antipode_sns", marks=pytest.mark.store("sns"), id="sqs"),
]


@pytest.fixture
def jobs(
    request: pytest.FixtureRequest, make: Callable[..., Jobs], topology: str | None
) -> Iterator[Jobs]:
    """A queue; nothing stays instrumented."""
    with ExitStack() as stack:
        yield make(topology and request.getfixturevalue(topology), stack)


@pytest.mark.parametrize(("make", "topology"), QUEUES)
@pytest.mark.parametrize("earlier", [False, True], ids=["first", "after a commit"])
def test_a_job_of_a_row_that_is_not_committed(
    clients: Clients,
    jobs: Jobs,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    *,
    earlier: bool,
) -> None:
    """It is counted, the log has both lines, and the job depends on what was committed alone."""
    monkeypatch.setattr(metrics, "_logged", set())
    connection, before = clients.writer(), counted("sent_before_commit", ROW)
    with antipode.scope():
        if earlier:
            connection.execute(INSERT, (2,))
            connection.commit()
        committed = antipode.current().only(ROW)
        assert committed.empty is not earlier
        connection.execute(INSERT, (3,))
        jobs.put()
        connection.commit()
    assert jobs.get().only(ROW) == committed
    assert counted("sent_before_commit", ROW) == before + 1
    (line,) = [each.getMessage() for each in caplog.records if "leaves at" in each.getMessage()]
    assert line.count(__file__) == 2


@pytest.mark.parametrize(("make", "topology"), QUEUES)
def test_a_job_of_a_row_that_is_committed(clients: Clients, jobs: Jobs) -> None:
    """It depends on that, and nothing is said."""
    connection, before = clients.writer(), counted("sent_before_commit", ROW)
    with antipode.scope():
        connection.execute(INSERT, (2,))
        connection.commit()
        jobs.put()
        committed = antipode.current().only(ROW)
    assert not committed.empty
    assert jobs.get().only(ROW) == committed
    assert counted("sent_before_commit", ROW) == before
