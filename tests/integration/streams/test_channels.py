"""Messages of Django Channels, over its layer in Redis, to who reads a late replica."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage, WriteId
from antipode.propagation import event_headers, event_scope
from antipode_shims import redis as redis_shims
from tests.integration.mysql._clients import NOTES, Sql, counted, run
from tests.integration.redis._clients import client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")

GUIDE = (Path(__file__).resolve().parents[3] / "docs" / "guides" / "streams.md").read_text("utf-8")
EVENTS, LAG_MS = 10, 60
POST = WriteId("posts", "k", 1, 498_669)


@pytest.fixture
async def layer(antipode_redis: RedisTopology) -> AsyncIterator[Any]:
    """A channel layer of its own prefix."""
    channels: Any = pytest.importorskip("channels_redis.core")
    made = channels.RedisChannelLayer(
        hosts=[tuple(antipode_redis.primary)], prefix=f"antipode-{uuid.uuid4().hex[:8]}"
    )
    yield made
    await made.flush()
    await made.close_pools()


def guide() -> dict[str, Any]:
    """The guide's code for Channels: ``saved`` and ``Orders``."""
    section = GUIDE.partition("\n## Django Channels\n")[2]
    names: dict[str, Any] = {
        "antipode": antipode,
        "event_headers": event_headers,
        "event_scope": event_scope,
        "Any": Any,
    }
    exec(section.partition("```python\n")[2].partition("```")[0], names)  # noqa: S102 - the guide's
    return names


@pytest.mark.slow
@pytest.mark.parametrize("headers", [False, True], ids=["without", "with"])
async def test_a_consumer_reads_what_it_was_told_of(
    antipode_redis: RedisTopology, layer: Any, *, headers: bool
) -> None:
    """By the headers in its message; without them its barrier has nothing to wait for."""
    names, right = guide(), 0
    consumer, mine = names["Orders"](), await layer.new_channel()
    await layer.group_add("orders", mine)
    antipode_redis.set_lag(LAG_MS)
    with (
        client(antipode_redis.primary) as primary,
        client(antipode_redis.replica) as replica,
    ):
        redis_shims.instrument_client(primary, datastore="orders")
        redis_shims.instrument_client(replica, datastore="orders", reads_from="replica")
        names["look_up"] = lambda _: int(replica.get("order") or 0)
        try:
            for order in range(1, EVENTS + 1):
                with antipode.scope():
                    primary.set("order", order)
                    await names["saved"](layer, order)
                event = await layer.receive(mine)
                if not headers:
                    del event["headers"]
                await consumer.order_saved(event)
                right += consumer.shown == event["order"] == order
        finally:
            antipode_redis.set_lag(0)
            redis_shims.uninstrument_client(primary)
            redis_shims.uninstrument_client(replica)
    assert right == EVENTS if headers else right < EVENTS // 2


async def test_each_channel_of_a_group_gets_the_lineage_of_who_sends(layer: Any) -> None:
    """With its own copy of the message."""
    channels = [await layer.new_channel() for _ in range(2)]
    for each in channels:
        await layer.group_add("orders", each)
    with antipode.scope(Lineage([POST])):
        await guide()["saved"](layer, 1)
    for each in channels:
        with event_scope((await layer.receive(each))["headers"]):
            assert antipode.current() == Lineage([POST])


async def test_a_message_within_a_transaction_is_told(layer: Any, sql: Sql) -> None:
    """Its headers name no position of what is not committed."""
    before, mine = counted("sent_before_commit"), await layer.new_channel()
    await layer.group_add("orders", mine)
    connection = sql.connect()
    with antipode.scope():
        run(connection, "BEGIN")
        run(connection, "INSERT INTO notes VALUES (2, 'open')")
        await guide()["saved"](layer, 2)
        run(connection, "COMMIT")
        assert not antipode.current().empty
    with event_scope((await layer.receive(mine))["headers"]):
        assert antipode.current().only(NOTES).empty
    assert counted("sent_before_commit") == before + 1
