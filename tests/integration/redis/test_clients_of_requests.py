"""Clients that are made for each request, and dropped."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode.shim import shims_of
from antipode_shims import redis

client_library = pytest.importorskip("redis")

if TYPE_CHECKING:
    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")

REQUESTS = 30


def test_they_leave_no_shim_each(antipode_redis: RedisTopology) -> None:
    """A later one takes the place of one that is gone; what that wrote is waited for meanwhile."""
    host, port = antipode_redis.primary
    written = []
    for _ in range(REQUESTS):
        with antipode.scope():
            client = client_library.Redis(host, port)
            redis.instrument_client(client, datastore="carts")
            client.set("cart", "1")
            client.close()
            del client
            gc.collect()
            gc.collect()
            written.append(antipode.current())
            assert antipode.barrier(timeout=5).ok
    assert len(shims_of("carts")) < REQUESTS / 10
    assert all(len(each) == 1 and not each.incomplete for each in written)


def test_those_that_live_have_one_each(antipode_redis: RedisTopology) -> None:
    """Undoing one leaves the others as they are."""
    host, port = antipode_redis.primary
    clients = [client_library.Redis(host, port) for _ in range(2)]
    for client in clients:
        redis.instrument_client(client, datastore="carts")
    redis.uninstrument_client(clients[0])
    with antipode.scope():
        clients[0].set("cart", "1")
        assert antipode.current().empty
        clients[1].set("cart", "1")
        assert len(antipode.current()) == 1
    for client in clients:
        redis.uninstrument_client(client)
        client.close()
