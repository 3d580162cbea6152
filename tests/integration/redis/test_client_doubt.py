"""Instrumented redis-py clients when connections fail: doubt where there is doubt, nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

import antipode
from antipode import IncompleteLineage
from antipode.shim import Incomplete
from antipode_shims import redis as shims

from ._clients import (
    client,
    writes_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode_testing import LagProxy, RedisTopology

pytestmark = pytest.mark.store("redis")

IN_DOUBT = Incomplete("posts", "in_doubt")
UNSAMPLED = Incomplete("posts", "unsampled")


def test_write_at_a_replica_mints_nothing(antipode_redis: RedisTopology) -> None:
    """``READONLY`` is raised as it was."""
    with client(antipode_redis.replica) as one, antipode.scope() as scope:
        shims.instrument_client(one, datastore="posts", reads_from="replica")
        with pytest.raises(redis.ReadOnlyError):
            one.set("k", "v")
        assert scope.lineage.empty
        shims.uninstrument_client(one)


def test_write_at_a_writable_replica_is_in_doubt(antipode_redis: RedisTopology) -> None:
    """A write that no log carries must not borrow the position of one."""
    antipode_redis.config({"replica-read-only": "no"}, replica=0)
    with client(antipode_redis.replica) as one, antipode.scope() as scope:
        shims.instrument_client(one, datastore="posts", reads_from="replica")
        one.set("stray", "v")
        one.delete("stray")
        assert not writes_of(scope.lineage)
        assert IN_DOUBT in scope.lineage.incomplete
        shims.uninstrument_client(one)


def test_lost_reply_is_in_doubt(make: Callable[..., Any], proxy: LagProxy) -> None:
    """A write whose reply never comes is in doubt, and a barrier refuses to vouch for it."""
    one = make(options={"socket_timeout": 0.6})
    for write in (
        lambda: one.set("k", "v"),
        lambda: one.pipeline().set("k", "v").execute(),
        lambda: one.pipeline(transaction=False).set("k", "v").execute(),
    ):
        one.set("first", 1)
        with antipode.scope() as scope:
            proxy.set_lag(60_000)
            with pytest.raises(redis.TimeoutError):
                write()
            proxy.set_lag(0)
            assert scope.lineage.incomplete == {IN_DOUBT}
            with pytest.raises(IncompleteLineage):
                antipode.barrier(timeout=1)


def test_lost_reply_of_a_read_leaves_no_doubt(make: Callable[..., Any], proxy: LagProxy) -> None:
    """A read that got no reply wrote nothing."""
    one = make(options={"socket_timeout": 0.6})
    one.ping()
    proxy.set_lag(60_000)
    with antipode.scope() as scope:
        with pytest.raises(redis.TimeoutError):
            one.get("k")
        assert scope.lineage.empty


def test_refused_connection_leaves_no_doubt(make: Callable[..., Any], proxy: LagProxy) -> None:
    """Where nothing was sent nothing can have been written."""
    one = make()
    one.ping()
    one.connection_pool.disconnect()
    proxy.cut()
    with antipode.scope() as scope:
        with pytest.raises(redis.ConnectionError):
            one.set("k", "v")
        assert scope.lineage.empty


def test_retry_settles_the_doubt(make: Callable[..., Any], proxy: LagProxy) -> None:
    """Where redis-py's own retry is acknowledged the write is known, and minted once."""

    class HealingBackoff(NoBackoff):
        def compute(self, failures: int) -> float:
            proxy.set_lag(0)
            return 0.0

    one = make(
        options={
            "socket_timeout": 0.6,
            "retry": Retry(HealingBackoff(), 2),
            "retry_on_error": [redis.TimeoutError],
        }
    )
    one.ping()
    proxy.set_lag(60_000)
    with antipode.scope() as scope:
        assert one.set("k", "v")
        assert not scope.lineage.incomplete
        assert len(writes_of(scope.lineage)) == 1


def test_floor_timeout_is_not_retried_by_redis_py(
    make: Callable[..., Any], antipode_redis: RedisTopology
) -> None:
    """A floor's deadline is the caller's: redis-py does not take its error for a broken socket."""
    writer = make()
    with client(antipode_redis.replica, retry=Retry(NoBackoff(), 50)) as reader:
        shims.instrument_client(reader, datastore="posts", reads_from="replica")
        antipode_redis.pause()
        with antipode.scope():
            writer.set("k", "v")
            antipode.barrier(timeout=0.2, at="read")
            reader.ping()
            held = reader.connection_pool._available_connections[0]._sock
            with pytest.raises(antipode.BarrierTimeout):
                reader.get("k")
            with pytest.raises(antipode.BarrierTimeout):
                reader.pipeline().get("k").execute()
            with reader.pipeline() as pipe:
                pipe.watch("k")
                with pytest.raises(antipode.BarrierTimeout):
                    pipe.get("k")
            assert reader.connection_pool._available_connections[0]._sock is held
        shims.uninstrument_client(reader)
