"""Instrumented clients of Java, Lettuce and Jedis, on real servers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests._lines import records_in
from tests.conformance._agents import command
from tests.integration._dry_run import dry_run_into
from tests.integration.redis._proxies import info_proxy

if TYPE_CHECKING:
    from antipode_testing import RedisTopology

pytestmark = [pytest.mark.store("redis"), pytest.mark.slow]

PROGRAMS = Path(__file__).parent / "programs"
LAG_MS = 400
NEVER_MS = 5_000


LETTUCE = (
    *("held", "automatic", "transactions", "unknown", "refused"),
    *("order", "again", "shared", "database", "flushes", "late", "moved", "half"),
)
JEDIS = (
    *("held", "automatic", "pipelines", "transactions"),
    *("unknown", "refused", "doubt", "late", "pooled", "half"),
)


def _run(program: str, primary: str, replica: str, check: str, **variables: str) -> None:
    ran = subprocess.run(
        ["java", "-cp", command("java")[-1], str(PROGRAMS / program), primary, replica, check],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env={**os.environ, **variables},
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
    antipode_redis.set_lag(NEVER_MS if check in ("late", "moved") else LAG_MS)
    _run(program, antipode_redis.url(), antipode_redis.url(antipode_redis.replica), check)


def test_places_are_those_of_calls(antipode_redis: RedisTopology, tmp_path: Path) -> None:
    """A dry run names the line that called Lettuce, whose own thread takes the reply."""
    url = antipode_redis.url()
    replica = antipode_redis.url(antipode_redis.replica)
    _run("LettuceProgram.java", url, replica, "places", **dry_run_into(tmp_path))
    written = [
        each["site"]
        for each in records_in(tmp_path)
        if each["kind"] == "write" or each.get("lint") == "unscoped-write"
    ]
    assert [(each["file"], each["function"]) for each in written] == [
        ("LettuceProgram.java", "places")
    ] * 5
    assert len({each["line"] for each in written}) == 5


@pytest.mark.ci
@pytest.mark.parametrize("answers", [None, b"-ERR unknown command\r\n"], ids=["closes", "refuses"])
def test_jedis_where_info_is_not_passed(
    antipode_redis: RedisTopology, answers: bytes | None
) -> None:
    """A proxy that does not pass INFO is asked once a connection; writes succeed and are marked."""
    with info_proxy(antipode_redis.primary, answers=answers) as proxy:
        url = f"redis://{proxy.address.host}:{proxy.address.port}"
        _run("JedisProgram.java", url, antipode_redis.url(), "unasked")
        assert proxy.asked == 1
