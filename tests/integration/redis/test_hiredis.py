"""Instrumented connections of hiredis, on real servers."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance._agents import command

if TYPE_CHECKING:
    from antipode_testing import RedisTopology

pytestmark = [pytest.mark.store("redis"), pytest.mark.slow]

LAG_MS = 200
NEVER_MS = 5_000
#: What each check of cpp/tests/redis/client_program.cc claims, and how far the replica is behind.
CHECKS = {
    "held": LAG_MS,
    "pipelines": LAG_MS,
    "transactions": LAG_MS,
    "nothing": LAG_MS,
    "scripts": LAG_MS,
    "watched": LAG_MS,
    "within": LAG_MS,
    "late": NEVER_MS,
    "lost": LAG_MS,
    "refused": LAG_MS,
    "subscriptions": 0,
    "silent": 0,
    "forked": LAG_MS,
}


@pytest.mark.parametrize("check", CHECKS)
def test_connection(antipode_redis: RedisTopology, check: str) -> None:
    """Writes enter the scope with their positions or a mark, and reads wait as they must."""
    program = Path(command("cpp")[0]).with_name("antipode_redis_client")
    antipode_redis.set_lag(CHECKS[check])
    servers = [f"{host}:{port}" for host, port in (antipode_redis.primary, antipode_redis.replica)]
    ran = subprocess.run(
        [program, *servers, check], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
