"""The pool of an instrumented client: what the guide says is outside, and what brings it in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from redis import Redis

import antipode
from antipode_shims import redis

from ._clients import client, writes_of

if TYPE_CHECKING:
    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")


def test_a_client_on_the_pool_of_an_instrumented_one(antipode_redis: RedisTopology) -> None:
    """It and a raw connection are outside, as the guide says; instrumented itself it is inside."""
    with client(antipode_redis.primary) as first:
        redis.instrument_client(first, datastore="posts")
        second = Redis(connection_pool=first.connection_pool)
        with antipode.scope() as scope:
            second.set("shared", "1")
            raw = first.connection_pool.get_connection()
            raw.send_command("SET", "shared", "2")
            raw.read_response()
            first.connection_pool.release(raw)
            assert not scope.lineage
            first.client().set("shared", "3")
            (single,) = writes_of(scope.lineage)
            redis.instrument_client(second, datastore="posts")
            second.set("shared", "4")
            (later,) = writes_of(scope.lineage)
        assert later.version > single.version


def test_the_guide_says_so() -> None:
    """What is outside without a count must stand in the guide."""
    from tests.integration.redis.test_guide import GUIDE

    text = GUIDE.read_text(encoding="utf-8")
    assert "Redis(connection_pool=client.connection_pool)" in text
    assert "client.connection_pool.get_connection()" in text
