"""The social network, built and over stores of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from antipode_testing import ServerMissing
from benchmarks.social_graph._build import build
from benchmarks.social_graph._graph import edges
from benchmarks.social_graph._servers import servers
from benchmarks.social_graph._services import seed
from tests.conformance._agents import command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.social_graph._graph import Friendship
    from benchmarks.social_graph._servers import Servers


@pytest.fixture(scope="session")
def graph() -> list[Friendship]:
    """Who follows whom."""
    return edges()


@pytest.fixture(scope="session")
def built() -> Path:
    """The services, against the library as `make cpp` has built it."""
    for language in ("cpp", "java"):
        command(language)  # Skips, or fails where the library is required in it.
    return build("dev")


@pytest.fixture(scope="module")
def stores(graph: list[Friendship]) -> Iterator[Servers]:
    """The stores, which have the graph; nothing is late."""
    required = os.environ.get("ANTIPODE_REQUIRE_STORES", "").split(",")
    try:
        context = servers(0, 0)
        found = context.__enter__()
    except ServerMissing as missing:
        if {"mongodb", "rabbitmq", "redis"} & set(required):
            raise
        pytest.skip(str(missing))
    try:
        seed(found.redis["us"].address, graph)
        found.mongodb.wait_replicated()
        yield found
    finally:
        context.__exit__(None, None, None)
