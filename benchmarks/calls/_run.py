"""Callers that try again until they have a reply, and what became of their orders."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pymongo
import sqlalchemy as sa

from antipode import calls

from ._service import KEPT

if TYPE_CHECKING:
    from collections.abc import Iterator

    #: Of each order the payments that its callers were told of.
    Replies = dict[str, set[str]]

_LIFETIME = "transactionLifetimeLimitSeconds"
STRATEGIES = ("plain", "after_commit", "once")
CALLERS = 4
_OK = 200
_METADATA = sa.MetaData()
_PAYMENTS = sa.Table(
    "payments",
    _METADATA,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("order_id", sa.String(64), nullable=False),
)
sa.Table(
    KEPT,
    _METADATA,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("reply", sa.String(32), nullable=False),
)
calls.table(_METADATA)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of all orders.

    Attributes:
        store: where the payments are.
        strategy: how the service protects itself.
        orders: how many there were.
        doubled: those that were paid twice or more.
        two_replies: those of which callers were told of different payments.
        unpaid: those that have a reply and no payment.
        failed: attempts without a reply.
    """

    store: str
    strategy: str
    orders: int
    doubled: int
    two_replies: int
    unpaid: int
    failed: int


@contextmanager
def emptied(url: str) -> Iterator[Any]:
    """A function that says how often each order was paid, over empty tables."""
    with ExitStack() as stack:
        if url.startswith("mongodb"):
            client: pymongo.MongoClient[Any] = stack.enter_context(pymongo.MongoClient(url))
            shop = client["shop"]
            for name in ("payments", KEPT, "antipode_calls_1"):
                shop[name].delete_many({})
            # The transaction of a process that was killed stays open that long, 60 s by default.
            stack.callback(client.admin.command, {"setParameter": 1, _LIFETIME: 60})
            client.admin.command({"setParameter": 1, _LIFETIME: 1})
            yield lambda: Counter(each["order_id"] for each in shop["payments"].find())
            return
        engine = sa.create_engine(url)
        stack.callback(engine.dispose)
        _METADATA.create_all(engine)
        with engine.begin() as connection:
            for table in _METADATA.sorted_tables:
                connection.execute(table.delete())

        def paid() -> Counter[str]:
            with engine.connect() as connection:
                return Counter(connection.scalars(sa.select(_PAYMENTS.c.order_id)))

        yield paid


@contextmanager
def serving(url: str, strategy: str, steps: int) -> Iterator[str]:
    """The service; where it listens."""
    command = [sys.executable, "-m", "benchmarks.calls._service", url, strategy, str(steps)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = process.stdout.readline().strip() if process.stdout else ""
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def play(store: str, url: str, strategy: str, *, orders: int, steps: int) -> Outcome:
    """Have *orders* paid, each until its caller got a reply twice."""
    replies: Replies = defaultdict(set)
    failed = Counter[str]()
    with emptied(url) as paid, serving(url, strategy, steps) as base:

        def ask(client: httpx.Client, order: str) -> None:
            try:
                response = client.post(
                    "/charge", json={"order_id": order}, headers={"idempotency-key": order}
                )
            except httpx.TransportError:
                failed[order] += 1
                return
            if response.status_code == _OK:
                replies[order].add(response.json()["payment"])
                replied[order] += 1
            else:
                failed[order] += 1

        replied = Counter[str]()

        def call(order: str) -> None:
            with httpx.Client(base_url=base, timeout=30) as client:
                # Whoever has a reply and asks again is to get the same one.
                while replied[order] < (2 if strategy != "plain" else 1):
                    ask(client, order)

        with ThreadPoolExecutor(CALLERS) as pool:
            list(pool.map(call, [f"order-{number}" for number in range(orders)]))
        times = paid()
    return Outcome(
        store,
        strategy,
        orders,
        doubled=sum(count > 1 for count in times.values()),
        two_replies=sum(len(told) > 1 for told in replies.values()),
        unpaid=sum(not times[order] for order in replies),
        failed=failed.total(),
    )
