"""A service of a few commands, with the library or without: run by test_disabled.py."""

from __future__ import annotations

import json
import sys
from typing import Any

import redis
from opentelemetry import propagate

REPORTS: dict[str, Any] = {"timeout": 5, "on_incomplete": "report"}


def commands(client: redis.Redis) -> None:
    """Writes and reads of each kind."""
    client.set("post:1", "hello")
    client.pipeline().incr("posts").expire("posts", 60).execute()
    client.eval("return redis.call('INCR', KEYS[1])", 1, "posts")
    client.get("post:1")


def plain(client: redis.Redis) -> dict[str, str]:
    """The headers of a call that follows."""
    headers: dict[str, str] = {}
    commands(client)
    propagate.inject(headers)
    return headers


def ours(client: redis.Redis) -> dict[str, str]:
    """The same of a service that has the library."""
    import antipode
    from antipode_shims import redis as shims

    headers: dict[str, str] = {}
    antipode.instrument()
    assert shims.instrument_client(client, datastore="posts", reads_from="replica") is client
    with antipode.scope():
        assert antipode.barrier(timeout=5, at="read")
        commands(client)
        assert antipode.barrier(antipode.Lineage(incomplete=[("posts", "size")]), **REPORTS)
        antipode.propagation.inject_response(headers)
        propagate.inject(headers)
    shims.uninstrument_client(client)
    return headers


if __name__ == "__main__":
    host, port = sys.argv[1:]
    with redis.Redis(host, int(port)) as connected:
        sys.stdout.write(json.dumps(ours(connected)))
