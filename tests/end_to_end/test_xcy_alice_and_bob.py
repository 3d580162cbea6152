"""Alice blocks Bob and then posts (paper section 5.1): who is shown the post is past the block.

The access control list lies in one store, posts in another. The block is an update of Bob's entry
or its deletion, and replicates later than the post.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from tests.end_to_end._xcy_stores import TIMEOUT_S, held_back, opened, over

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLLOWS, BLOCKED, POST, FRIENDS = b"follows", b"blocked", b"post", b"friends"
# Each store holds the list once, and posts once.
PAIRS = over(
    ("embedded", "redis"),
    ("redis", "mysql"),
    ("mysql", "mongodb"),
    ("mongodb", "mariadb"),
    ("mariadb", "embedded"),
)
WITH_MESSAGES = [*PAIRS, *over(("redis", "rabbitmq"), ("mysql", "rabbitmq"))]
# The list, posts, and what else the request wrote that changed the list.
TRIPLES = over(
    ("embedded", "redis", "mysql"),
    ("redis", "mysql", "mongodb"),
    ("mysql", "mongodb", "embedded"),
    ("mongodb", "mariadb", "redis"),
    ("mariadb", "embedded", "redis"),
)
WAYS = pytest.mark.parametrize("way", ["update", "delete"])


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Iterator[list[Any]]:
    """The stores of the list and of posts."""
    acl, posts = request.param
    with opened(request, {"acl": acl, "posts": posts}) as stores:
        yield stores


@pytest.fixture
def triple(request: pytest.FixtureRequest) -> Iterator[list[Any]]:
    """The stores of the list, of posts, and of friendships."""
    acl, posts, friends = request.param
    with opened(request, {"acl": acl, "posts": posts, "friends": friends}) as stores:
        yield stores


@pytest.fixture
def key() -> str:
    return f"alice-bob-{uuid.uuid4().hex}"


def entered(acl: Any, key: str, value: bytes) -> None:
    """An entry that both regions have; what comes after it replicates no more."""
    with antipode.scope():
        acl.put(key, value)
        antipode.barrier(timeout=TIMEOUT_S)
    acl.topology.pause()


def block(acl: Any, key: str, way: str) -> None:
    if way == "update":
        acl.put(key, BLOCKED)
    else:
        acl.delete(key)


def bob_is_kept_out(acl: Any, posts: Any, key: str) -> None:
    """In Bob's region: the post is there, the block is not yet, and the barrier waits for it."""
    with antipode.scope():
        posts.await_value(key, POST)
        assert acl.get(key)[0] == FOLLOWS, "without a barrier Bob would see the post"
        held_back(acl)
        acl.topology.resume()
        antipode.barrier(timeout=TIMEOUT_S)
        assert acl.get(key)[0] != FOLLOWS


@WAYS
@pytest.mark.parametrize("pair", WITH_MESSAGES, indirect=True)
def test_transfer(pair: list[Any], key: str, way: str) -> None:
    """Transferred from one request of Alice's to the next, the block comes before the post."""
    acl, posts = pair
    entered(acl, key, FOLLOWS)
    with antipode.scope():
        block(acl, key, way)
        kept_by_alice = antipode.serialize()
    with antipode.scope():
        antipode.transfer(kept_by_alice)
        posts.put(key, POST)
    bob_is_kept_out(acl, posts, key)


@pytest.mark.parametrize("pair", PAIRS, indirect=True)
def test_requests_are_apart_without_transfer(pair: list[Any], key: str) -> None:
    """Nothing connects two requests that neither read nor were handed what the other wrote."""
    acl, posts = pair
    entered(acl, key, FOLLOWS)
    with antipode.scope():
        block(acl, key, "update")
    with antipode.scope():
        posts.put(key, POST)
    with antipode.scope():
        posts.await_value(key, POST)
        antipode.barrier(timeout=TIMEOUT_S)
        assert acl.get(key)[0] == FOLLOWS


@WAYS
@pytest.mark.parametrize("pair", WITH_MESSAGES, indirect=True)
def test_stored_lineages(pair: list[Any], key: str, way: str) -> None:
    """A post whose service looked into the list comes after the block, without any transfer."""
    acl, posts = pair
    entered(acl, key, FOLLOWS)
    with antipode.scope():
        block(acl, key, way)
    with antipode.scope():
        assert acl.get_at_home(key)[0] != FOLLOWS
        posts.put(key, POST)
    bob_is_kept_out(acl, posts, key)


@pytest.mark.parametrize("triple", TRIPLES, indirect=True)
def test_post_after_unblocking(triple: list[Any], key: str) -> None:
    """Who found no block before posting depends on its deletion, and on what that depended on."""
    acl, posts, friends = triple
    entered(acl, key, BLOCKED)
    friends.topology.pause()
    with antipode.scope():
        friends.put(key, FRIENDS)
        acl.delete(key)
    with antipode.scope():
        assert acl.get_at_home(key)[0] is None
        posts.put(key, POST)
    with antipode.scope():
        posts.await_value(key, POST)
        assert acl.get(key)[0] == BLOCKED, "without a barrier Bob would miss the post"
        held_back(acl, friends)
        acl.topology.resume()
        antipode.barrier(timeout=TIMEOUT_S, only="acl")
        assert acl.get(key)[0] is None
        held_back(friends)
        friends.topology.resume()
        antipode.barrier(timeout=TIMEOUT_S)
        assert friends.get(key)[0] == FRIENDS


@pytest.mark.parametrize("triple", TRIPLES, indirect=True)
def test_absence_in_the_other_region(triple: list[Any], key: str) -> None:
    """Where a deletion has arrived, who finds nothing waits for what it depended on."""
    acl, _, friends = triple
    entered(acl, key, BLOCKED)
    acl.topology.resume()
    friends.topology.pause()
    with antipode.scope():
        friends.put(key, FRIENDS)
        unblocked = acl.delete(key)
    antipode.barrier(unblocked, timeout=TIMEOUT_S, only="acl")
    with antipode.scope():
        assert acl.get(key)[0] is None
        assert friends.get(key)[0] is None
        held_back(friends)
        friends.topology.resume()
        antipode.barrier(timeout=TIMEOUT_S)
        assert friends.get(key)[0] == FRIENDS


@pytest.mark.parametrize("triple", TRIPLES, indirect=True)
def test_write_after_unblocking(triple: list[Any], key: str) -> None:
    """A block that replaces the absence depends on nothing that the deletion depended on."""
    acl, _, friends = triple
    entered(acl, key, BLOCKED)
    acl.topology.resume()
    friends.topology.pause()
    with antipode.scope():
        friends.put(key, FRIENDS)
        acl.delete(key)
    with antipode.scope():
        acl.put(key, b"blocked anew")
        antipode.barrier(timeout=TIMEOUT_S)
    with antipode.scope():
        assert acl.get(key)[1].datastores == {"acl"}
        antipode.barrier(timeout=TIMEOUT_S)
