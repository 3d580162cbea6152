"""A small shop, as two processes set it up: each line of their set-up can be forgotten.

``FORGOTTEN`` in the environment names the line, ``PRIMARY`` and ``REPLICA`` the servers. ``web``
and ``worker`` are what ``antipode doctor --app`` sets up.
"""

from __future__ import annotations

import os
from typing import Any

import redis

import antipode
from antipode.integrations import httpx as httpx_integration
from antipode.integrations import wsgi
from antipode_shims import redis as stores

FORGOTTEN = os.environ.get("FORGOTTEN", "")


def remembered(line: str) -> bool:
    return line != FORGOTTEN


def client(variable: str) -> Any:
    host, _, port = os.environ[variable].rpartition(":")
    return redis.Redis(host=host, port=int(port))


def clients() -> tuple[Any, Any]:
    """Of the primary and of the replica."""
    writer, reader = client("PRIMARY"), client("REPLICA")
    if remembered("writer"):
        options: dict[str, Any] = {"keys": ["post:*"]}
        if remembered("lineage"):
            options["lineage"] = "beside"
        stores.instrument_client(writer, datastore="posts", **options)
    if remembered("reader"):
        name = "posts" if remembered("name") else "post"
        reads_from: Any = "replica" if remembered("reads_from") else "primary"
        stores.instrument_client(reader, datastore=name, reads_from=reads_from)
    return writer, reader


def web() -> Any:
    """The service that users call: it writes, calls another service and sends tasks."""
    import httpx
    from celery import Celery
    from flask import Flask

    from antipode.integrations import celery

    if remembered("propagator"):
        antipode.instrument()
    if remembered("client"):
        httpx_integration.instrument()
    if remembered("publisher"):
        celery.instrument()
    web.held = clients(), httpx.Client(), Celery("shop", broker="memory://")  # type: ignore[attr-defined]
    app = Flask("shop")
    return wsgi.instrument_app(app) if remembered("middleware") else app


def worker() -> Any:
    """The process that handles its tasks."""
    from celery import Celery

    from antipode.integrations import celery

    if remembered("propagator"):
        antipode.instrument()
    if remembered("worker"):
        celery.instrument()
    worker.held = clients()  # type: ignore[attr-defined]
    return Celery("shop", broker="memory://")


def request() -> None:
    """What a request does: write, wait, and read at the replica."""
    writer, reader = clients()
    if not remembered("shim"):
        antipode.shim.unregister("posts")
    with antipode.scope():
        writer.set("post:1", "hello")
        antipode.barrier(timeout=15)
        reader.get("post:1")
