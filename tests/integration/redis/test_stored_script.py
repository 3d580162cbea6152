"""The script that merges lineages on the server does what the core does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings

from antipode import Lineage, deserialize, serialize
from antipode_shims.redis._stored.script import SCRIPT, SHA
from tests.unit._lineages import crowded, lineages

from ._clients import client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")

#: More than any of these lineages needs.
ROOM = 60_000


@pytest.fixture(scope="module")
def server(antipode_redis: RedisTopology) -> Iterator[Any]:
    """A server that knows the script, with a value that is no string."""
    with client(antipode_redis.primary) as one:
        one.flushall()
        assert one.script_load(SCRIPT) == SHA
        one.hset("k", "f", 1)
        yield one
        one.delete("k", "ap:k")


def merged(server: Any, held: Lineage, added: Lineage) -> Lineage:
    """What the server makes of two lineages."""
    texts = [serialize(each, max_bytes=ROOM) for each in (held, added)]
    batch = server.pipeline().set("ap:k", f"~|{texts[0]}")
    batch.evalsha(SHA, 2, "k", "ap:k", texts[1], "m", 1000, ROOM, "").get("ap:k")
    *_, stored = batch.execute()
    return deserialize(stored.partition(b"|")[2].decode())


@settings(max_examples=150)
@given(held=lineages(), added=lineages())
def test_merge_is_the_cores(server: Any, held: Lineage, added: Lineage) -> None:
    """Whatever two lineages hold, nothing is lost, added, or put into another order of time."""
    assert merged(server, held, added) == held.merge(added)


@settings(max_examples=150)
@given(held=lineages(crowded), added=lineages(crowded))
def test_merge_of_the_same_logs_is_the_cores(server: Any, held: Lineage, added: Lineage) -> None:
    """So it is where every entry meets another one in its place."""
    assert merged(server, held, added) == held.merge(added)
