# ruff: noqa: E402 - what is imported first covers the rest
"""Invoices orders: a worker of Celery's, which calls the other service."""

import antipode

antipode.setup()

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import redis
import requests
from celery import Celery
from sqlalchemy import create_engine, text

standby = create_engine(os.environ["STANDBY_SQLALCHEMY"])
counts = redis.Redis.from_url(os.environ["REDIS_REPLICA"])
queue = Celery("shop", broker=os.environ["BROKER"])
queue.conf.update(broker_connection_retry_on_startup=True, worker_enable_remote_control=False)


def ordered(number: int) -> bool:
    """Whether the order is there."""
    with standby.connect() as connection:
        found = connection.execute(text("SELECT 1 FROM orders WHERE id = :id"), {"id": number})
        return found.first() is not None


@queue.task(name="invoice")
def invoice(number: int) -> None:
    """Read the order and the count, and have the invoice written."""
    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(ordered, number).result()
        counts.get("orders")
        requests.post(os.environ["WEB"], params={"order": number}, timeout=20)
    finally:
        with Path(os.environ["DONE"]).open("a") as done:
            done.write(f"{number}\n")


if __name__ == "__main__":
    queue.worker_main(["worker", "-P", "solo"])
