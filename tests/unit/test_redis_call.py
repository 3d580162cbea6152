"""What the hooks of a Redis client decide, without a server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import antipode
from antipode.shim import Floor
from antipode_shims.redis._call import Call, Rules


def rules(datastore: str) -> Rules:
    """The rules of a client of *datastore*."""
    shim: Any = SimpleNamespace(datastore=datastore, beside=None)
    return Rules(shim)


def floor(datastore: str) -> Floor:
    """A floor that demands nothing."""
    policies: Any = None
    return Floor(datastore, frozenset(), timeout_s=1, policies=policies)


def test_read_is_a_call_under_a_floor_alone() -> None:
    """A read without a floor stays redis-py's own; one under a floor knows it from the start."""
    posts = rules("posts")
    with antipode.scope() as scope:
        assert posts.call(("GET", "key")) is None
        held = floor("posts")
        scope.set_floor(held)
        call = posts.call(("GET", "key"))
        assert call is not None
        assert posts.floor(call) is held
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
        scope.set_floor(floor("posts"))
        call = rules("posts").call(("GET", "key"))
        assert isinstance(call, Call)
        assert rules("users").floor(call) is None
        held = floor("users")
        scope.set_floor(held)
        assert rules("users").floor(call) is held
