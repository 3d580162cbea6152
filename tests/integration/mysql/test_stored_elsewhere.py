"""What is stored while its cause is in a transaction that is open: told, for it names no write."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
import redis as client_library

import antipode
from antipode_shims import redis

from ._clients import counted, run
from .test_stored import beside

if TYPE_CHECKING:
    from antipode_testing import RedisTopology

    from ._clients import Sql

NAME = "sent_before_commit"
INSERT = "INSERT INTO posts VALUES (%s, 'a', 'b')"


def test_a_row_of_the_same_transaction_is_not_told_of(posts: Sql) -> None:
    """It is there when the others are."""
    before = counted(NAME)
    with closing(beside(posts)) as one, antipode.scope():
        one.begin()
        for number in (1, 2):
            run(one, INSERT, number)
        one.commit()
    assert counted(NAME) == before


def test_a_row_of_another_connection_is_told_of(posts: Sql) -> None:
    """Once a transaction, however many follow; not after its end."""
    before = counted(NAME)
    with closing(beside(posts)) as one, closing(beside(posts)) as other, antipode.scope():
        one.begin()
        run(one, INSERT, 1)
        for number in (2, 3):
            run(other, INSERT, number)
        one.commit()
        run(other, INSERT, 4)
    assert counted(NAME) == before + 1


@pytest.mark.store("redis")
def test_a_value_of_redis_is_told_of(posts: Sql, antipode_redis: RedisTopology) -> None:
    """Its companion says nothing of the row."""
    before = counted(NAME)
    cache = client_library.Redis(*antipode_redis.primary)
    redis.instrument_client(cache, datastore="cache", lineage="beside", keys=["told:*"])
    with closing(beside(posts)) as one, antipode.scope():
        cache.set("told:1", "before")
        one.begin()
        run(one, INSERT, 1)
        cache.set("told:1", "within")
        one.rollback()
        cache.set("told:1", "after")
    redis.uninstrument_client(cache)
    cache.close()
    assert counted(NAME) == before + 1
