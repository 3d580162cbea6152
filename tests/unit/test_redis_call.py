"""What the hooks of a Redis client decide, without a server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import redis

import antipode
from antipode.shim import SYSTEM_CLOCK, Floor
from antipode_shims.redis._clients.call import Call, Rules
from antipode_shims.redis._clients.tap import PACKED_INFO, Tap
from tests.unit._floors import floor_of, set_floor


def rules(datastore: str) -> Rules:
    """The rules of a client of *datastore*."""
    shim: Any = SimpleNamespace(
        datastore=datastore, stored=None, barriers=None, clock=SYSTEM_CLOCK, by_sentinels=False
    )
    return Rules(shim, SimpleNamespace(max_connections=0))


def floor(datastore: str) -> Floor:
    """A floor that demands nothing."""
    return floor_of(datastore)


def test_read_is_a_call_under_a_floor_alone() -> None:
    """A read without a floor stays redis-py's own; one under a floor knows it from the start."""
    posts = rules("posts")
    with antipode.scope() as scope:
        assert posts.call(("GET", "key")) is None
        held = floor("posts")
        set_floor(scope, held)
        call = posts.call(("GET", "key"))
        assert call is not None
        found = posts.floor(call, None)
        assert found is not None
        assert found.within(held)
        assert rules("users").call(("GET", "key")) is None


def test_writes_are_calls_and_neutral_commands_are_not() -> None:
    """A write has a position to take; ``PING`` has neither position nor floor."""
    posts = rules("posts")
    assert posts.call(("SET", "key", "value")) is not None
    assert posts.call(("EVAL", "return 1", 0)) is not None
    assert posts.call(("PING",)) is None


def test_call_inside_that_of_another_client_has_its_own_floor() -> None:
    """A client that is asked while another one connects is never held by the other's floor."""
    with antipode.scope() as scope:
        set_floor(scope, floor("posts"))
        call = rules("posts").call(("GET", "key"))
        assert isinstance(call, Call)
        assert rules("users").floor(call, None) is None
        held = floor("users")
        set_floor(scope, held)
        found = rules("users").floor(call, None)
        assert found is not None
        assert found.within(held)


@pytest.mark.parametrize("length", [1, 65_400, 65_500, 100_000])
@pytest.mark.parametrize("number", [1, 2])
def test_write_is_never_whole_without_the_question_behind_it(length: int, number: int) -> None:
    """However long: the bytes that end a packet of writes are sent with ``INFO``, not before it.

    A server that had all of a write and not yet ``INFO`` would answer it, and take others first.
    """
    writes = [("SET", "key", "v" * length)] * number
    packed = redis.Connection().pack_commands(writes)
    chunks = Tap(trail=True).ride(writes, packed)
    assert chunks[-1].endswith(b"\r\n" + PACKED_INFO)
    assert b"".join(chunks) == b"".join(packed) + PACKED_INFO


def test_question_before_a_long_read_is_sent_with_its_beginning() -> None:
    """A floor's ``INFO`` before a read that is sent in parts costs no system call of its own."""
    read = ("MGET", "k" * 100_000)
    packed = redis.Connection().pack_command(*read)
    chunks = Tap(lead=True).ride((read,), packed)
    assert chunks[0].startswith(PACKED_INFO + b"*2\r\n")
    assert b"".join(chunks) == PACKED_INFO + b"".join(packed)


def answered(commands: list[tuple[str, ...]], *replies: object, **plan: Any) -> Tap:
    """What came of a call whose commands had these replies."""
    tap = Tap(trail=True, last=commands[-1] if len(commands) > 1 else None, **plan)
    tap.ride(commands, [b""])
    tap.sent, tap.due = True, tap.packed
    for reply in replies:
        tap.replied(reply)
    return tap


def test_a_script_that_failed_may_have_written() -> None:
    """Its error tells nothing of the commands before it; only one that is not there did nothing."""
    script = [("EVALSHA", "0" * 40, "0")]
    assert answered(script, redis.ResponseError("oops")).ran
    assert not answered(script, redis.exceptions.NoScriptError("no script")).ran


@pytest.mark.parametrize("wrote", [None, True])
def test_a_transaction_that_was_aborted_wrote_nothing(wrote: bool | None) -> None:  # noqa: FBT001
    """A watched key changed, or a command was refused: ``EXEC`` did nothing."""
    commands = [("MULTI",), ("SET", "a", "1"), ("EXEC",)]
    for last in (None, redis.exceptions.ExecAbortError("aborted")):
        assert not answered(commands, "OK", "QUEUED", last, wrote=wrote).wrote
    assert answered(commands, "OK", "QUEUED", ["OK"], wrote=wrote).wrote


def test_a_refusal_in_a_pipeline_is_of_one_command() -> None:
    """The others were sent, and nobody knows what became of them."""
    refused = redis.exceptions.BusyLoadingError("LOADING")
    for commands, lost in (
        ([("SET", "a", "1"), ("SET", "b", "2")], True),
        ([("SET", "a", "1")], False),
    ):
        tap = answered(commands)
        tap.failed(refused)
        assert tap.lost is lost
