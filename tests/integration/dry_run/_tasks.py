"""A worker that shows posts of a Redis replica; ``ANTIPODE_TEST_INSTRUMENTS`` says by what."""

from __future__ import annotations

import os
from typing import Any

import celery
from redis import Redis

from antipode.integrations import celery as antipode_celery
from antipode_shims import redis

app = celery.Celery("shop", broker=os.environ.get("ANTIPODE_TEST_BROKER", "memory://"))
app.conf.update(
    broker_connection_retry_on_startup=True,
    task_default_queue="dry-run-tasks",
    worker_enable_remote_control=False,
    worker_send_task_events=False,
)
if "celery" in os.environ.get("ANTIPODE_TEST_INSTRUMENTS", ""):
    antipode_celery.instrument()
if "ANTIPODE_TEST_REPLICA" in os.environ:
    posts: Any = Redis.from_url(os.environ["ANTIPODE_TEST_REPLICA"])
    redis.instrument_client(posts, datastore="posts", reads_from="replica")


@app.task
def show(name: str) -> None:
    """Read a post, and say that it was read."""
    posts.get(name)
    with Redis.from_url(os.environ["ANTIPODE_TEST_PRIMARY"]) as plain:
        plain.rpush("shown", name)
