"""Promises on Redis: in the application's own pipelines, and what cannot fulfil one."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio

import antipode
from antipode import (
    ConfigurationError,
    DependencyLost,
    Lineage,
    Promise,
    PromiseAbandoned,
    Status,
    VisibilityCheckError,
)
from antipode._barrier.decisions import Pacer
from antipode_shims import redis as shims

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")

DAY_S = 86_400


@pytest.fixture
def client(antipode_redis: RedisTopology) -> Iterator[redis.Redis]:
    """A native client of the primary, instrumented with a lineage beside every key."""
    with redis.Redis(*antipode_redis.primary) as client:
        shims.instrument_client(client, datastore="posts", lineage="beside", keys=["*"])
        yield client
        shims.uninstrument_client(client)


@pytest.fixture
def reader(antipode_redis: RedisTopology) -> Iterator[redis.Redis]:
    """One of the replica."""
    with redis.Redis(*antipode_redis.replica) as client:
        shims.instrument_client(client, datastore="posts", reads_from="replica")
        yield client
        shims.uninstrument_client(client)


@pytest.fixture
def refund() -> str:
    """A key that no other test uses."""
    return f"refund-{uuid.uuid4().hex}"


@pytest.fixture
def promise() -> Promise:
    """What some other service promised."""
    with antipode.scope():
        return antipode.promise("posts", expires_in_s=60)


def test_record_lives_until_nobody_asks(client: redis.Redis, promise: Promise, refund: str) -> None:
    """The record has a key of its own, which expires once its absence means nothing any more."""
    with antipode.scope(), client.pipeline() as pipeline:
        pipeline.set(refund, b"80")
        shims.fulfil(pipeline, promise.token)
        pipeline.incr(f"{refund}-count")
        assert pipeline.execute() == [True, True, 1], "the record's reply is one more"
    key = f"ap:promise:{promise.id}"
    assert client.get(key) == b"fulfilled"
    assert 7 * DAY_S < client.ttl(key) <= 7 * DAY_S + 3 * 3600 + 61
    assert not client.exists(f"ap:{key}"), "a record has no companion"
    assert client.exists(f"ap:{refund}")


def test_transaction_by_hand(client: redis.Redis, promise: Promise, refund: str) -> None:
    """Where the application watches keys itself, it says multi() first, and keeps its watches."""
    client.set(refund, 100)
    with antipode.scope(), client.pipeline() as pipeline:
        pipeline.watch(refund)
        balance = int(pipeline.get(refund) or 0)
        with pytest.raises(ConfigurationError, match=r"multi\(\)"):
            shims.fulfil(pipeline, promise)
        pipeline.multi()
        shims.fulfil(pipeline, promise)
        pipeline.set(refund, balance + 80)
        client.set(refund, 0)
        with pytest.raises(redis.WatchError):
            pipeline.execute()
    assert not client.exists(f"ap:promise:{promise.id}")


def test_abandonment_in_between_aborts(client: redis.Redis, promise: Promise, refund: str) -> None:
    """A promise that is given up between fulfil() and execute() aborts the transaction."""
    with antipode.scope() as scope, client.pipeline() as pipeline:
        shims.fulfil(pipeline, promise)
        pipeline.set(refund, b"80")
        assert antipode.abandon(promise)
        with pytest.raises(redis.WatchError):
            pipeline.execute()
        with pytest.raises(PromiseAbandoned):
            shims.fulfil(pipeline, promise)
    assert scope.lineage.empty
    assert not client.exists(refund)


def test_abandoned_pipeline_is_reset(client: redis.Redis, promise: Promise, refund: str) -> None:
    """What was queued before is not sent by a later execute() either."""
    antipode.abandon(promise)
    with antipode.scope(), client.pipeline() as pipeline:
        pipeline.set(refund, b"80")
        with pytest.raises(PromiseAbandoned):
            shims.fulfil(pipeline, promise)
        assert pipeline.execute() == []
    assert not client.exists(refund)


@pytest.mark.parametrize(
    "open_it",
    [
        lambda client: client,
        lambda client: client.pipeline(transaction=False),
        lambda _: redis.asyncio.Redis().pipeline(),
        lambda _: None,
    ],
    ids=["client", "plain pipeline", "asyncio", "nothing"],
)
def test_what_is_no_transaction_is_refused(
    client: redis.Redis, promise: Promise, open_it: Callable[[redis.Redis], Any]
) -> None:
    """Without a transaction the record could be there before, or without, its data."""
    with pytest.raises(ConfigurationError):
        shims.fulfil(open_it(client), promise)
    assert not client.exists(f"ap:promise:{promise.id}")


def test_promise_of_another_store_is_refused(client: redis.Redis) -> None:
    """Whoever waits looks at the promised datastore: a record elsewhere would help nobody."""
    with antipode.scope():
        elsewhere = antipode.promise("carts", expires_in_s=60)
    with client.pipeline() as pipeline, pytest.raises(ConfigurationError, match="carts"):
        shims.fulfil(pipeline, elsewhere)


def test_plain_pipeline_fulfils(
    antipode_redis: RedisTopology, reader: redis.Redis, promise: Promise, refund: str
) -> None:
    """The branch need not be instrumented, and may decode its replies."""
    del reader
    with redis.Redis(*antipode_redis.primary, decode_responses=True) as plain:
        for _ in range(2):
            with plain.pipeline() as pipeline:
                shims.fulfil(pipeline, promise)
                pipeline.set(refund, "80")
                pipeline.execute()
    assert antipode.barrier(Lineage(promises=[promise]), timeout=5).ok


def test_asyncio_pipeline(antipode_redis: RedisTopology, promise: Promise, refund: str) -> None:
    """The asyncio twin fulfils, is refused what was given up, and its reads wait as well."""
    with antipode.scope():
        given_up = antipode.promise("posts", expires_in_s=60)

    async def request() -> None:
        primary, replica = antipode_redis.primary, antipode_redis.replica
        async with (
            redis.asyncio.Redis(host=primary.host, port=primary.port) as writer,
            redis.asyncio.Redis(host=replica.host, port=replica.port) as reader,
        ):
            shims.instrument_client(writer, datastore="posts")
            shims.instrument_client(reader, datastore="posts", reads_from="replica")
            antipode_redis.set_lag(100)
            await antipode.abandon_async(given_up)
            async with writer.pipeline() as pipeline:
                await shims.fulfil_async(pipeline, promise.token)
                pipeline.set(refund, b"80")
                await pipeline.execute()
                pipeline.set(refund, b"never")
                with pytest.raises(PromiseAbandoned):
                    await shims.fulfil_async(pipeline, given_up)
                assert await pipeline.execute() == []
            with antipode.scope(Lineage(promises=[promise])):
                antipode.barrier(timeout=5, at="read")
                assert await reader.get(refund) == b"80"
            shims.uninstrument_client(writer)
            shims.uninstrument_client(reader)

    asyncio.run(request())


def test_reads_of_every_kind_wait(
    antipode_redis: RedisTopology,
    client: redis.Redis,
    reader: redis.Redis,
    promise: Promise,
    refund: str,
) -> None:
    """Single commands, pipelines, transactions and scripts are all held back for the record."""
    reads: list[Callable[[], Any]] = [
        lambda: reader.get(refund),
        lambda: reader.pipeline(transaction=False).get(refund).execute()[0],
        lambda: reader.pipeline().get(refund).execute()[0],
        lambda: reader.eval("return redis.call('GET', KEYS[1])", 1, refund),
    ]
    for number, read in enumerate(reads):
        with antipode.scope():
            mine = antipode.promise("posts", expires_in_s=60)
        antipode_redis.set_lag(60)
        with antipode.scope(), client.pipeline() as pipeline:
            shims.fulfil(pipeline, mine)
            pipeline.set(refund, number)
            pipeline.execute()
        with antipode.scope(Lineage(promises=[mine])):
            antipode.barrier(timeout=5, at="read")
            assert read() == str(number).encode()
    with antipode.scope(Lineage(promises=[promise])):
        antipode.barrier(timeout=0.1, at="read")
        for read in reads:
            with pytest.raises(antipode.BarrierTimeout):
                read()


@pytest.mark.usefixtures("antipode_redis", "reader")
def test_push_wakes_who_waits_for_a_promise(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replica pushes that the record came: waiting is not a matter of polling."""
    # Pauses are longer than the barrier may take.
    monkeypatch.setattr(Pacer, "SHARE", 1e6)
    monkeypatch.setattr(Pacer, "MOST_S", 60.0)

    async def once() -> None:
        with antipode.scope():
            mine = antipode.promise("posts", expires_in_s=60)
        waiting = asyncio.ensure_future(
            antipode.barrier_async(Lineage(promises=[mine]), timeout=20)
        )
        await asyncio.sleep(1)
        with client.pipeline() as pipeline:
            shims.fulfil(pipeline, mine)
            pipeline.execute()
        assert (await waiting).ok

    for _ in range(3):
        asyncio.run(once())


def test_user_who_may_not_look(
    antipode_redis: RedisTopology, promise: Promise, refund: str
) -> None:
    """A user who may not read the records is told so at once: waiting cannot help."""
    with redis.Redis(*antipode_redis.replica) as plain:
        plain.acl_setuser("limited", enabled=True, nopass=True, keys=[refund], commands=["+@all"])
        try:
            with redis.Redis(
                *antipode_redis.replica, username="limited", password=promise.id
            ) as limited:
                shims.instrument_client(limited, datastore="posts", reads_from="replica")
                with pytest.raises(VisibilityCheckError, match="records of promises"):
                    antipode.barrier(Lineage(promises=[promise]), timeout=5)
                with antipode.scope(Lineage(promises=[promise])):
                    antipode.barrier(timeout=5, at="read")
                    with pytest.raises(VisibilityCheckError):
                        limited.get(refund)
                shims.uninstrument_client(limited)
        finally:
            plain.acl_deluser("limited")


def test_replica_takes_no_record(antipode_redis: RedisTopology, promise: Promise) -> None:
    """Giving up at what has become a replica is worth repeating, and says nothing."""
    with redis.Redis(*antipode_redis.replica) as client:
        shims.instrument_client(client, datastore="posts")
        with pytest.raises(antipode.shim.Unreachable, match="replica now"):
            antipode.abandon(promise)
        shims.uninstrument_client(client)


def test_deletion_fulfils(antipode_redis: RedisTopology, promise: Promise, refund: str) -> None:
    """Table 2's delete may be what was promised; and is refused where that was given up."""
    with antipode.scope():
        given_up = antipode.promise("posts", expires_in_s=60)
    with redis.Redis(*antipode_redis.primary) as plain, shims.shim("posts", plain) as writer:
        writer.write(refund, b"80")
        antipode.abandon(given_up)
        with pytest.raises(PromiseAbandoned):
            writer.delete(refund, fulfils=given_up)
        assert writer.read(refund)[0] == b"80"
        writer.delete(refund, fulfils=promise)
        assert {o.status for o in antipode.check(Lineage(promises=[promise])).outcomes} == {
            Status.VISIBLE
        }
        with pytest.raises(DependencyLost):
            antipode.barrier(Lineage(promises=[given_up]), timeout=5)


def test_asyncio_table2(antipode_redis: RedisTopology, promise: Promise, refund: str) -> None:
    """The asyncio face of Table 2 fulfils as the synchronous one does."""
    with antipode.scope():
        given_up = antipode.promise("posts", expires_in_s=60)

    async def request() -> None:
        writer = shims.shim_async("posts", antipode_redis.url())
        try:
            with antipode.scope():
                await writer.write(refund, b"80", fulfils=promise)
                await antipode.abandon_async(given_up)
                with pytest.raises(PromiseAbandoned):
                    await writer.delete(refund, fulfils=given_up)
                assert (await writer.read(refund))[0] == b"80"
        finally:
            await writer.aclose()

    asyncio.run(request())
