"""Instrumented connections of Lettuce, on real servers."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance._agents import command

if TYPE_CHECKING:
    from antipode.testing import RedisTopology

pytestmark = [pytest.mark.store("redis"), pytest.mark.slow]

PROGRAM = Path(__file__).parent / "programs" / "LettuceProgram.java"
LAG_MS = 400
NEVER_MS = 5_000


@pytest.mark.parametrize(
    "check", ["held", "automatic", "transactions", "unknown", "refused", "order", "late"]
)
def test_connection(antipode_redis: RedisTopology, check: str) -> None:
    """Writes enter the scope with their positions, and reads wait as long as they must."""
    jar = command("java")[-1]
    antipode_redis.set_lag(NEVER_MS if check == "late" else LAG_MS)
    servers = [antipode_redis.url(), antipode_redis.url(antipode_redis.replica)]
    ran = subprocess.run(
        ["java", "-cp", jar, str(PROGRAM), *servers, check],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
