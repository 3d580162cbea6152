"""What Antipode adds to the notification service: its clients, its application, one barrier."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import antipode
from antipode.integrations import asgi
from antipode_shims import mongodb, rabbitmq, redis

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel
    from fastapi import FastAPI
    from pymongo import AsyncMongoClient
    from redis.asyncio import Redis


def instrument(app: FastAPI, notices: Redis, refunds: AsyncMongoClient[dict[str, Any]]) -> None:
    """Instrument what the service serves by, and its clients."""
    antipode.instrument()
    asgi.instrument_app(app)
    redis.instrument_client(notices, datastore="notices")
    mongodb.instrument_client(
        refunds,
        datastore="refunds",
        reads_from="replica" if os.environ.get("TRAIN_TICKET_REPLICA") else "primary",
        promise_database=os.environ["MONGODB_DATABASE"],
    )


def instrument_channel(channel: AbstractChannel) -> None:
    """Let messages bring their lineages."""
    rabbitmq.instrument_channel(channel, datastore="rabbitmq")


async def wait() -> None:
    """Wait until the refund of a message is visible, but for a dry run, which finds the place."""
    if os.environ.get("TRAIN_TICKET_NOTIFICATION_WAITS"):
        await antipode.barrier_async(timeout=5, only=["refunds"])
