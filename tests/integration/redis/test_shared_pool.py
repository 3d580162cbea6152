"""The pool of an instrumented client: other clients of it, and connections without any."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from redis import Redis

import antipode
from antipode.shim import Incomplete
from antipode_shims import redis

from ._clients import client, writes_of

if TYPE_CHECKING:
    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")


def test_a_client_on_the_pool_of_an_instrumented_one(antipode_redis: RedisTopology) -> None:
    """It is instrumented as that one, and as it is told itself; undone with it."""
    with client(antipode_redis.primary) as first:
        plain = type(first)
        redis.instrument_client(first, datastore="posts")
        second = Redis(connection_pool=first.connection_pool)
        third = Redis(connection_pool=first.connection_pool)
        redis.instrument_client(third, datastore="others")
        with antipode.scope() as scope:
            second.set("shared", "1")
            (single,) = writes_of(scope.lineage)
            third.set("shared", "2")
            first.client().set("shared", "3")
            later = {write.datastore: write for write in writes_of(scope.lineage)}
        assert later["posts"].version > single.version
        assert set(later) == {"posts", "others"}
        redis.uninstrument_client(first)
        assert type(second) is plain


def test_a_connection_of_the_pool_alone(antipode_redis: RedisTopology) -> None:
    """What it writes nobody sees: that it was taken marks the lineage, and what clients do not."""
    with client(antipode_redis.primary) as first:
        redis.instrument_client(first, datastore="posts")
        with antipode.scope() as scope:
            first.set("shared", "1")
            first.get("shared")
            assert not scope.lineage.incomplete
            raw = first.connection_pool.get_connection()
            first.connection_pool.release(raw)
            assert Incomplete("posts", "unsampled") in scope.lineage.incomplete


def test_the_guide_says_so() -> None:
    """What is outside must stand in the guide."""
    from tests.integration.redis.test_guide import GUIDE

    text = GUIDE.read_text(encoding="utf-8")
    assert "Redis(connection_pool=client.connection_pool)" in text
    assert "client.connection_pool.get_connection()" in text
