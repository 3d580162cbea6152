"""A service with Flask and redis-py, for whatever worker serves it."""

from __future__ import annotations

import os

import redis
from flask import Flask

import antipode
from antipode.integrations.wsgi import instrument_app
from antipode_shims.redis import instrument_client

app = Flask(__name__)
primary = redis.Redis(port=int(os.environ["PRIMARY"]))
replica = redis.Redis(port=int(os.environ["REPLICA"]))


@app.get("/")
def ready() -> str:
    """Answer at once."""
    return "ready"


@app.get("/write/<key>")
def write(key: str) -> str:
    """Write in two steps, between which other requests run."""
    primary.set(key, "first")
    primary.set(key, "value")
    return antipode.serialize()


@app.get("/read/<at>/<key>")
def read(at: str, key: str) -> str:
    """Read behind a barrier."""
    antipode.barrier(timeout=20, at=at)
    return str(replica.get(key))


antipode.instrument()
instrument_client(primary, datastore="posts")
instrument_client(replica, datastore="posts", reads_from="replica")
instrument_app(app)
