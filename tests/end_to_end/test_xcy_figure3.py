"""The paper's Figure 3: who reads one write of a request sees whatever that request did before it.

R1 writes x, and in another branch y. R2, in another region, reads y, and later x: by Lamport's
order the two are concurrent, by XCY x is there (paper section 4.2).
"""

from __future__ import annotations

import contextvars
import threading
import uuid
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from tests.end_to_end._xcy_stores import TIMEOUT_S, held_back, opened, over

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Each store is x once, and y once.
PAIRS = over(
    ("redis", "mysql"),
    ("mysql", "mongodb"),
    ("mongodb", "embedded"),
    ("embedded", "mariadb"),
    ("mariadb", "redis"),
    ("redis", "rabbitmq"),
    ("mongodb", "rabbitmq"),
)


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Iterator[list[Any]]:
    """The stores of x and y."""
    x, y = request.param
    with opened(request, {"x": x, "y": y}) as stores:
        yield stores


@pytest.fixture
def key() -> str:
    return uuid.uuid4().hex


def branch(work: Callable[[], object]) -> None:
    """Run a branch of the current request to its end, in a thread of its own."""
    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    thread.start()
    thread.join()


def first_request(pair: list[Any], key: str) -> None:
    """R1: x is written in one branch, then y in another."""
    x, y = pair
    with antipode.scope():
        branch(lambda: x.put(key, b"x"))
        branch(lambda: y.put(key, b"y"))


@pytest.mark.parametrize("pair", PAIRS, indirect=True)
def test_reading_y_makes_x_visible(pair: list[Any], key: str) -> None:
    """Who has read y waits for x, which another branch wrote before, and then sees it."""
    x, y = pair
    x.topology.pause()
    first_request(pair, key)
    with antipode.scope():
        y.await_value(key, b"y")
        assert x.get(key)[0] is None, "Lamport's order would allow this"
        held_back(x)
        x.topology.resume()
        antipode.barrier(timeout=TIMEOUT_S)
        assert x.get(key)[0] == b"x"


@pytest.mark.parametrize("pair", PAIRS, indirect=True)
def test_reading_y_holds_back_the_read_of_x(pair: list[Any], key: str) -> None:
    """With ``at="read"`` it is the read of x itself that waits."""
    x, y = pair
    x.topology.set_lag(60)
    first_request(pair, key)
    with antipode.scope():
        y.await_value(key, b"y")
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        assert x.get(key)[0] == b"x"


@pytest.mark.parametrize("pair", PAIRS, indirect=True)
def test_lineage_crosses_more_requests(pair: list[Any], key: str) -> None:
    """A third request, which only reads what R2 wrote after reading y, waits for x too."""
    x, y = pair
    x.topology.pause()
    first_request(pair, key)
    with antipode.scope():
        y.await_value(key, b"y")
        y.put(key, b"z")
    with antipode.scope():
        y.await_value(key, b"z")
        held_back(x)
        x.topology.resume()
        antipode.barrier(timeout=TIMEOUT_S)
        assert x.get(key)[0] == b"x"


@pytest.mark.parametrize("pair", over(("embedded", "redis"), ("redis", "mysql")), indirect=True)
def test_what_follows_y_is_not_in_it(pair: list[Any], key: str) -> None:
    """What is stored with y is what was written before it: a later x is not waited for."""
    x, y = pair
    x.topology.pause()
    with antipode.scope():
        branch(lambda: y.put(key, b"y"))
        branch(lambda: x.put(key, b"x"))
    with antipode.scope():
        lineage = y.await_value(key, b"y")
        assert lineage.datastores == {"y"}
        antipode.barrier(timeout=TIMEOUT_S)
        assert x.get(key)[0] is None
