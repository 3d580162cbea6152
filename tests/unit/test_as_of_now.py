"""``as_of_now()``: a primary's position, for an event that names none."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import ConfigurationError, Lineage, WriteId
from antipode.shim import Unreachable, following
from tests.unit._fake_server import FakeServer

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = WriteId("posts", "log", 9, covering=True)
UNSAMPLED = Lineage(incomplete=[("posts", "unsampled")])


def by_asyncio(datastore: str, timeout: float = 5.0) -> Lineage:
    """The asyncio API."""
    return asyncio.run(antipode.as_of_now_async(datastore, timeout=timeout))


FACES = pytest.mark.parametrize("as_of_now", [antipode.as_of_now, by_asyncio])


@pytest.fixture
def posts() -> FakeServer:
    """A store whose primary can be asked for its position, which is 9."""
    server = FakeServer(position=8)
    server.fences = True
    antipode.shim.register(server)
    return server


@FACES
def test_the_primary_is_asked_once(as_of_now: Callable[..., Lineage], posts: FakeServer) -> None:
    """What it says is waited for, and asked for no more."""
    lineage = as_of_now("posts")
    assert lineage == Lineage([NOW])
    with pytest.raises(antipode.BarrierTimeout, match="posts:log@~9 not_yet"):
        antipode.barrier(lineage, timeout=0.1)
    posts.position = 9
    assert antipode.barrier(lineage, timeout=10)
    assert posts.fenced == 1


@FACES
def test_what_a_barrier_demands_besides_is_in_no_lineage(
    as_of_now: Callable[..., Lineage], posts: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That a server follows the primary is judged at a barrier's own polls alone."""
    demanded = frozenset([NOW, following("posts", "primary")])
    monkeypatch.setattr(posts, "fence", lambda *, timeout_s: demanded)
    assert as_of_now("posts") == Lineage([NOW])


@FACES
@pytest.mark.parametrize("answer", [Unreachable("refused"), ValueError("no such log"), frozenset()])
def test_no_answer_is_a_mark(
    as_of_now: Callable[..., Lineage],
    posts: FakeServer,
    answer: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And never an empty lineage: a barrier asks again, and fails where that fails."""

    def fence(*, timeout_s: float) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(posts, "fence", fence)
        lineage = as_of_now("posts")
        assert lineage == UNSAMPLED
        with pytest.raises(antipode.IncompleteLineage):
            antipode.barrier(lineage, timeout=0.2)
    posts.position = 9
    assert antipode.barrier(lineage, timeout=10)


@FACES
def test_a_primary_that_hangs_is_left_alone_in_time(
    as_of_now: Callable[..., Lineage], posts: FakeServer
) -> None:
    """Whatever its client does: the caller has the mark in time."""
    posts.stuck = threading.Event()
    try:
        assert as_of_now("posts", timeout=0.1) == UNSAMPLED  # Later it would be the position.
    finally:
        posts.stuck.set()


@FACES
def test_without_a_primary_it_says_what_to_do(as_of_now: Callable[..., Lineage]) -> None:
    """A client of a replica alone, and a store without a log, cannot be asked."""
    antipode.shim.register(FakeServer())
    for name in ("posts", "unheard"):
        with pytest.raises(ConfigurationError, match="instrument one that reaches it"):
            as_of_now(name)
    with pytest.raises(ValueError, match="timeout"):
        as_of_now("posts", timeout=0)


@pytest.mark.slow
def test_where_the_library_is_disabled_nobody_is_asked() -> None:
    """As all lineages, it is empty then, and no client has to be there."""
    program = (
        "import antipode\n"
        "from antipode_shims import postgresql\n"
        "print(len(antipode.as_of_now('app')), len(postgresql.lineage('app', lsn=1)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "ANTIPODE_DISABLED": "true"},
    )
    assert done.stdout == "0 0\n"
