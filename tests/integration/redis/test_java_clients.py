"""Instrumented clients of Java, Lettuce and Jedis, on real servers."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance._agents import command
from tests.integration.redis._proxies import info_proxy

if TYPE_CHECKING:
    from antipode_testing import RedisTopology

pytestmark = [pytest.mark.store("redis"), pytest.mark.slow]

PROGRAMS = Path(__file__).parent / "programs"
LAG_MS = 400
NEVER_MS = 5_000


LETTUCE = (
    *("held", "automatic", "transactions", "unknown", "refused"),
    *("order", "again", "shared", "database", "flushes", "late"),
)
JEDIS = (
    *("held", "automatic", "pipelines", "transactions"),
    *("unknown", "refused", "doubt", "late"),
)


def _run(program: str, primary: str, replica: str, check: str) -> None:
    ran = subprocess.run(
        ["java", "-cp", command("java")[-1], str(PROGRAMS / program), primary, replica, check],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("program", "check"),
    [
        *(("LettuceProgram.java", check) for check in LETTUCE),
        *(("JedisProgram.java", check) for check in JEDIS),
    ],
)
def test_connection(antipode_redis: RedisTopology, program: str, check: str) -> None:
    """Writes enter the scope with their positions, and reads wait as long as they must."""
    antipode_redis.set_lag(NEVER_MS if check == "late" else LAG_MS)
    _run(program, antipode_redis.url(), antipode_redis.url(antipode_redis.replica), check)


@pytest.mark.parametrize("answers", [None, b"-ERR unknown command\r\n"], ids=["closes", "refuses"])
def test_jedis_where_info_is_not_passed(
    antipode_redis: RedisTopology, answers: bytes | None
) -> None:
    """A proxy that does not pass INFO is asked once a connection; writes succeed and are marked."""
    with info_proxy(antipode_redis.primary, answers=answers) as proxy:
        url = f"redis://{proxy.address.host}:{proxy.address.port}"
        _run("JedisProgram.java", url, antipode_redis.url(), "unasked")
        assert proxy.asked == 1
