"""Orders in the stores of docker-compose.yml, for the services that run there: `data`."""

from __future__ import annotations

import signal
from contextlib import closing
from pathlib import Path

import pymongo
import pymysql

from antipode_testing import wait_until

from ._stores import Order, create_collections, fill

DATABASE = "train_ticket"
ORDERS, USERS = 100, 10
_TIMEOUT_S = 120.0
_DONE = Path("/tmp/done")  # noqa: S108 - of the container, whose health it is


def order(number: int) -> Order:
    """One of those that are there, from 0 on."""
    return Order(f"order-{number}", f"user-{number % USERS}", 5_000 + number)


def _sql(region: str) -> pymysql.Connection[pymysql.cursors.Cursor]:
    return pymysql.connect(host=f"mysql-{region}", user="app", password="app", database="app")  # noqa: S106 - of the stack


def _mongodb(region: str) -> str:
    return f"mongodb://mongodb-{region}:27017/?directConnection=true"


def _replicated() -> bool:
    """Whether the region eu has all of it."""
    with closing(_sql("eu")) as connection, connection.cursor() as cursor:
        try:
            cursor.execute("SELECT COUNT(*) FROM payments")
        except pymysql.err.ProgrammingError:
            return False  # The table is not there yet.
        row = cursor.fetchone()
    with pymongo.MongoClient[dict[str, object]](_mongodb("eu")) as client:
        collections = client[DATABASE].list_collection_names()
    return row == (ORDERS,) and {"money", "antipode_promises"} <= {*collections}


def main() -> None:
    """Put them there, then stay: a container that ended would look like one that failed."""
    with closing(_sql("us")) as connection:
        fill(connection, [order(number) for number in range(ORDERS)])
    create_collections(_mongodb("us"), DATABASE)
    what = "the region eu to have the orders"
    wait_until(_replicated, what=what, timeout_s=_TIMEOUT_S, interval_s=0.2)
    _DONE.touch()
    signal.pause()


if __name__ == "__main__":
    main()
