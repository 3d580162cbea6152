"""Where a server, or what was sent by hand, leaves no room for lineages beside keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from redis.exceptions import NoPermissionError, OutOfMemoryError

import antipode

from ._clients import counted
from ._stored import CAUSE, KEYS, OTHER, causes, found, under

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.store("redis")


def test_a_server_out_of_memory_is_counted(beside: Any, plain: Any) -> None:
    """Reads and deletions are done, as ever; a lineage that finds no room is counted."""
    under(CAUSE, lambda: beside.hset("k:1", "a", 1))
    under(CAUSE, lambda: beside.set("k:2", "v"))
    before = counted("unstored_lineage")
    plain.config_set("maxmemory", 1)
    try:
        assert beside.delete("k:1") == 1
        assert CAUSE in found(lambda: beside.get("k:2"))
        batch = beside.pipeline(transaction=False).get("k:2").hgetall("k:1")
        with antipode.scope() as scope:
            assert batch.execute() == [b"v", {}]
            assert CAUSE in scope.lineage
            beside.pipeline(transaction=False).get("k:2").execute(raise_on_error=False)
        with pytest.raises(OutOfMemoryError):
            beside.hset("k:1", "a", 1)
    finally:
        plain.config_set("maxmemory", 0)
    assert counted("unstored_lineage") == before + 1


def test_a_user_who_may_not_call_scripts_writes_nothing(
    beside: Any, plain: Any, make: Callable[..., Any]
) -> None:
    """No value is written whose lineage could not be stored; the error is the server's."""
    plain.execute_command("ACL", "SETUSER", "poor", "on", "nopass", "~*", "+@all", "-eval")
    try:
        poor = make(options={"username": "poor", "password": "-"}, lineage="beside", keys=KEYS)
        with pytest.raises(NoPermissionError, match="eval"):
            poor.hset("k:1", "a", 1)
        assert poor.hset("other", "a", 1) == 1
        assert not beside.exists("k:1")
    finally:
        plain.execute_command("ACL", "DELUSER", "poor")


def test_by_hand_is_counted(make: Callable[..., Any]) -> None:
    """Behind a MULTI sent by hand nothing is stored, and that is counted."""
    one = make(options={"single_connection_client": True}, lineage="beside", keys=KEYS)
    before = counted("unstored_lineage")
    one.execute_command("MULTI")
    one.execute_command("SET", "k:1", "v")
    assert one.execute_command("EXEC") == [b"OK"]
    assert counted("unstored_lineage") == before + 1


def test_a_watch_by_hand_is_kept(make: Callable[..., Any], plain: Any) -> None:
    """No transaction of the library's ends a WATCH that was sent by hand."""
    one = make(options={"single_connection_client": True}, lineage="beside", keys=KEYS)
    under(CAUSE, lambda: one.set("k:1", "1"))
    one.execute_command("WATCH", "k:1")
    assert CAUSE in found(lambda: one.get("k:1"))
    plain.set("k:1", "2")
    one.execute_command("MULTI")
    one.execute_command("SET", "k:1", "3")
    assert one.execute_command("EXEC") is None
    assert plain.get("k:1") == b"2"


def test_a_script_that_the_server_forgot(beside: Any, plain: Any) -> None:
    """Nothing depends on what the server remembers of scripts."""
    under(CAUSE, lambda: beside.hset("k:1", "a", 1))
    plain.script_flush()
    under(OTHER, lambda: beside.pipeline().hset("k:1", "b", 1).hset("k:2", "b", 1).execute())
    assert causes(found(lambda: beside.hgetall("k:1"))) == {CAUSE, OTHER}


@pytest.mark.parametrize(
    ("pattern", "named", "others"),
    [
        ("k:*", ["k:", "k:1", "k:a/b"], ["k", "xk:1"]),
        ("k?[ab-d]", ["k1a", "k-c"], ["ka", "k1e", "k1aa"]),
        ("k[^a]", ["kb"], ["ka", "k"]),
        ("k\\*", ["k*"], ["k1"]),
        ("*", ["k", ""], []),
    ],
)
def test_patterns_are_redis_own(
    make: Callable[..., Any], plain: Any, pattern: str, named: list[str], others: list[str]
) -> None:
    """Keys are named as ``KEYS`` of the server names them, companions aside."""
    plain.flushall()
    one = make(lineage="beside", keys=[pattern])
    for key in (*named, *others):
        one.rpush(key, "v")
    one.set("ap:", "v")
    assert {key[3:].decode() for key in plain.keys("ap:*")} == {*named, ""}
    shown = {key.decode() for key in plain.keys(pattern)}
    assert set(named) == {key for key in shown if not key.startswith("ap:")}
