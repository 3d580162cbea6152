"""The tasks of the EU.

``notify`` waits for what a message speaks of, then reads it nearby.
"""

from __future__ import annotations

import json
import os

import httpx
from celery.utils.log import get_task_logger
from redis import Redis
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

import antipode
from examples.posts.eu_celery import app
from examples.posts.schema import Post

log = get_task_logger(__name__)

posts = create_engine(os.environ["MYSQL_URL"])
counters = Redis.from_url(os.environ["REDIS_URL"])
api = httpx.Client(base_url=os.environ["EU_API_URL"])


@app.task(
    name="notify",
    autoretry_for=(antipode.BarrierTimeout,),
    retry_backoff=True,
)
def notify(post_id: int, author: str) -> None:
    """Tell the author's followers in the EU of a post."""
    antipode.barrier(timeout=5, only=["posts", "counters"])
    with Session(posts) as session:
        post = session.get(Post, post_id)
    number = counters.get(f"posts:{author}")

    # It counts a view, in the US: its response says so.
    page = api.get(f"/posts/{post_id}")
    antipode.barrier(timeout=5, only="counters")
    views = counters.get(f"views:{post_id}")

    notification = {
        "id": post_id,
        "title": post and post.title,
        "number": number and int(number),
        "page": page.status_code,
        "views": views and int(views),
        "lineage": antipode.serialize(),
    }
    log.info("notified %s", json.dumps(notification))
