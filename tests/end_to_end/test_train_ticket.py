"""The train-ticket race, fault F1: a cancellation answers before its refund exists.

Orders are in MySQL, refunds in MongoDB, and a queue of RabbitMQ lies between them. The customer
looks for the refund in another region, at both replicas, as soon as the cancellation answered.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Literal

import pika
import pytest

import antipode
from antipode_cli.report import load, report
from antipode_shims import mongodb, mysql, rabbitmq
from tests.integration.mongodb._clients import client
from tests.integration.mysql._clients import Sql, run
from tests.integration.mysql._servers import grant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from antipode_testing import MongoDBTopology, MySQLTopology, RabbitMQTopology

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    *(pytest.mark.store(n) for n in ("mysql", "mongodb", "rabbitmq")),
]

REQUESTS = int(os.environ.get("ANTIPODE_TRAIN_TICKET_REQUESTS", "300"))
CUSTOMERS = 4
LAG_MS = 10
TIMEOUT_S = 30.0
PAID, CANCELLED = 1, 4
QUEUE = "train-ticket-refunds"

#: What the reader does: nothing; a barrier on the answer's lineage; the same where the
#: cancellation promised its refund; nothing although it did.
How = Literal["nothing", "barrier", "promise", "unguarded"]


class Cancelling:
    """The cancel service, in ``us``: one for each thread."""

    def __init__(self, station: Station) -> None:
        self._orders = station.orders(primary=True)
        self._queue = rabbitmq.instrument_channel(station.channel(), datastore="queue")
        self._queue.confirm_delivery()

    def cancel(self, order: str, *, promised: bool) -> str:
        """Write the order's status, queue the refund, and answer: the response's lineage."""
        with antipode.scope():
            run(self._orders, "UPDATE tickets SET status = %s WHERE id = %s", CANCELLED, order)
            promise = antipode.promise("refunds", expires_in_s=600) if promised else None
            message = {"order": order, "promise": promise and promise.token}
            self._queue.basic_publish("", QUEUE, json.dumps(message).encode())
            return antipode.serialize()


class Paying:
    """The payment service, in ``us``: takes refunds off the queue until it is closed."""

    def __init__(self, station: Station) -> None:
        self._refunds = station.refunds(primary=True)
        self._queue = station.channel()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._consume, name="payments")
        self._thread.start()

    def _consume(self) -> None:
        for message in self._queue.consume(QUEUE, inactivity_timeout=0.1):
            method, _, body = message
            if method is not None:
                with rabbitmq.message(message):
                    self._refund(**json.loads(body))
                self._queue.basic_ack(method.delivery_tag)
            if self._closing.is_set():
                self._queue.cancel()
                return

    def _refund(self, order: str, promise: str | None) -> None:
        branch: Any = antipode.fulfilling(promise) if promise else nullcontext()
        with branch, self._refunds.start_session() as session, session.start_transaction():
            refund = {"_id": order, "money": 80, "type": "D"}
            self._refunds.app.refunds.insert_one(refund, session=session)
            if promise:
                mongodb.fulfil(self._refunds.app, promise, session=session)

    def close(self) -> None:
        """End, once the message that it has is done."""
        self._closing.set()
        self._thread.join(TIMEOUT_S)


class Customer:
    """Who cancels, and looks for the money in ``eu``: one for each thread."""

    def __init__(self, station: Station) -> None:
        self._service = Cancelling(station)
        self._orders = station.orders(primary=False)
        self._refunds = station.reader

    def cancel(self, order: str, how: How) -> str:
        """What is seen right behind the answer: ``right``, or what is missing."""
        answer = self._service.cancel(order, promised=how in ("promise", "unguarded"))
        with antipode.scope(answer):
            if how in ("barrier", "promise"):
                antipode.barrier(timeout=TIMEOUT_S)
            ((status,),) = run(self._orders, "SELECT status FROM tickets WHERE id = %s", order)
            refund = self._refunds.app.refunds.find_one({"_id": order})
        if status != CANCELLED:
            return "not cancelled"
        return "right" if refund is not None else "no refund"


class Station:
    """The stores of both regions, with the orders of one test."""

    def __init__(
        self, sql: Sql, mongo: MongoDBTopology, rabbit: RabbitMQTopology, stack: ExitStack
    ) -> None:
        self._sql, self._mongo, self._rabbit, self._stack = sql, mongo, rabbit, stack
        self._lock = threading.Lock()
        sql.topology.execute(grant(sql.topology))
        primary = sql.plain()
        run(primary, "CREATE TABLE IF NOT EXISTS tickets (id VARCHAR(64) PRIMARY KEY, status INT)")
        self.reader = self.refunds(primary=False)
        self.orders_made = [f"order-{os.urandom(6).hex()}-{n}" for n in range(REQUESTS)]
        with primary.cursor() as cursor:
            rows = [(order, PAID) for order in self.orders_made]
            cursor.executemany("INSERT INTO tickets VALUES (%s, %s)", rows)
        channel = self.channel()
        channel.queue_declare(QUEUE)
        stack.callback(self._delete_queue)
        sql.topology.wait_replicated()
        for topology in sql.topology, mongo:
            topology.set_lag(LAG_MS)

    def _delete_queue(self) -> None:
        self.channel().queue_delete(QUEUE)

    def orders(self, *, primary: bool) -> Any:
        """A connection to the orders of one region."""
        topology = self._sql.topology
        with self._lock:
            made = self._sql.plain(topology.primary if primary else topology.replica)
            mysql.instrument_connection(
                made, datastore="orders", reads_from="primary" if primary else "replica"
            )
        return made

    def refunds(self, *, primary: bool) -> Any:
        """A client of the refunds of one region."""
        where = self._mongo.primary if primary else self._mongo.replica
        reads_from = "primary" if primary else "replica"
        options = {"datastore": "refunds", "reads_from": reads_from, "promise_database": "app"}
        return self._stack.enter_context(client(where, options))

    def channel(self) -> Any:
        """A channel of a connection of its own, in ``us``."""
        connection = pika.BlockingConnection(pika.URLParameters(self._rabbit.url()))
        with self._lock:
            self._stack.callback(_close, connection)
        return connection.channel()


def _close(connection: Any) -> None:
    with suppress(pika.exceptions.AMQPError):
        connection.close()


@pytest.fixture
def station(
    antipode_mysql: MySQLTopology,
    antipode_mongodb: MongoDBTopology,
    antipode_rabbitmq: RabbitMQTopology,
) -> Iterator[Station]:
    """Three real stores, two of them in two regions."""
    sql = Sql(antipode_mysql)
    try:
        with ExitStack() as stack:
            yield Station(sql, antipode_mongodb, antipode_rabbitmq, stack)
    finally:
        sql.close()


def cancel_all(station: Station, how: How) -> Counter[str]:
    """Cancel every order, by several customers at once; how often each thing was seen."""
    paying = Paying(station)

    def customer(number: int) -> Counter[str]:
        mine = Customer(station)
        return Counter(mine.cancel(each, how) for each in station.orders_made[number::CUSTOMERS])

    try:
        with ThreadPoolExecutor(CUSTOMERS) as pool:
            return sum(pool.map(customer, range(CUSTOMERS)), Counter())
    finally:
        paying.close()


@pytest.fixture
def seen_of(
    station: Station, record_property: Callable[[str, object], None]
) -> Callable[[How], Counter[str]]:
    """Cancels all orders, and notes in the report what was seen how often."""

    def cancelled(how: How) -> Counter[str]:
        seen = cancel_all(station, how)
        record_property("seen", dict(seen))
        return seen

    return cancelled


def test_answer_comes_before_the_refund(seen_of: Callable[[How], Counter[str]]) -> None:
    """Without a barrier customers see neither the cancellation nor the refund, some of them."""
    seen = seen_of("nothing")
    assert seen["right"] < REQUESTS


def test_lineage_of_completed_writes_is_not_enough(seen_of: Callable[[How], Counter[str]]) -> None:
    """A barrier on what was written waits for the cancellation, and knows of no refund."""
    seen = seen_of("barrier")
    assert seen["no refund"] > 0
    assert seen["not cancelled"] == 0


def test_promised_refund_is_waited_for(seen_of: Callable[[How], Counter[str]]) -> None:
    """Where the cancellation promises its refund, the same barrier leaves no violation."""
    seen = seen_of("promise")
    assert seen == {"right": REQUESTS}


@pytest.mark.parametrize(
    ("how", "missing"), [("promise", set()), ("unguarded", {"orders", "refunds"})]
)
def test_dry_run_finds_the_barrier_that_is_missing(
    station: Station, tmp_path: Path, how: How, missing: set[str]
) -> None:
    """With the barrier nothing is found, though nothing waits; without it both of its reads are."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    cancel_all(station, how)
    antipode.configure(mode="enforce")
    found = report(load([tmp_path]))
    assert found.records
    assert {each.datastore for each in found.findings} == missing
