# ruff: noqa: E402 - what is imported first covers the rest
"""Takes orders: FastAPI with SQLAlchemy and redis-py, and a publisher of Celery's."""

import antipode

antipode.setup()

import os

import redis
from celery import Celery
from fastapi import FastAPI
from sqlalchemy import create_engine, text

app = FastAPI()
primary = create_engine(os.environ["PRIMARY_SQLALCHEMY"])
counts = redis.Redis.from_url(os.environ["REDIS_PRIMARY"])
queue = Celery("shop", broker=os.environ["BROKER"])
INSERT = text("INSERT INTO orders (item) VALUES ('tea') RETURNING id")


@app.post("/orders")
def take_order() -> int:
    """Store an order, count it, and have it invoiced."""
    with primary.begin() as connection:
        number: int = connection.execute(INSERT).scalar_one()
    counts.incr("orders")
    queue.send_task("invoice", [number])
    return number
