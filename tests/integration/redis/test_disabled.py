"""``ANTIPODE_DISABLED=true``: the server of an instrumented client sees what a plain one sends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import redis

from . import _disabled

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")


def seen(topology: RedisTopology, serve: Callable[[redis.Redis], object]) -> dict[str, int]:
    """How often the server sees each command while *serve* is called with a client of it."""
    with redis.Redis(*topology.primary) as admin, redis.Redis(*topology.primary) as client:
        before = admin.info("commandstats")
        serve(client)
        after = admin.info("commandstats")
    counts = {
        name: found["calls"] - before.get(name, {"calls": 0})["calls"]
        for name, found in after.items()
        if not name.startswith("cmdstat_replconf")  # The replica's, now and then.
    }
    counts["cmdstat_info"] -= 1  # The first of the two above.
    return {name: calls for name, calls in counts.items() if calls}


def disabled(client: redis.Redis) -> None:
    """The service in a process of its own, where the variable is set as it starts."""
    where = client.get_connection_kwargs()
    module = "tests.integration.redis._disabled"
    program = [sys.executable, "-m", module, where["host"], str(where["port"])]
    environment = {**os.environ, "ANTIPODE_DISABLED": "true"}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {}


def test_a_disabled_library_sends_nothing(antipode_redis: RedisTopology) -> None:
    """Not one command more than without it, and no header; enabled it sends both."""

    def enabled(client: redis.Redis) -> None:
        assert "baggage" in _disabled.ours(client)

    plain = seen(antipode_redis, _disabled.plain)
    assert seen(antipode_redis, disabled) == plain
    assert seen(antipode_redis, enabled)["cmdstat_info"] > 0
