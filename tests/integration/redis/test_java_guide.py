"""The guide to Java does what it says, on real servers."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.conformance._agents import ROOT, command

if TYPE_CHECKING:
    from pathlib import Path

    from antipode.testing import RedisTopology

pytestmark = [pytest.mark.store("redis"), pytest.mark.slow]

GUIDE = (ROOT / "docs" / "guides" / "java.md").read_text(encoding="utf-8")
SOURCES = ROOT / "java"
LAG_MS = 400


def test_the_quick_start_compiles_and_waits(antipode_redis: RedisTopology, tmp_path: Path) -> None:
    """It prints the post although the replica lags."""
    jar = command("java")[-1]
    antipode_redis.set_lag(LAG_MS)
    (program,) = re.findall(r'```java title="QuickStart.java"\n(.*?)```', GUIDE, flags=re.DOTALL)
    path = tmp_path / "QuickStart.java"
    path.write_text(program, encoding="utf-8")
    servers = [antipode_redis.url(), antipode_redis.url(antipode_redis.replica)]
    ran = subprocess.run(
        ["java", "-cp", jar, str(path), *servers],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "hello\n"


def test_what_it_names_is_there() -> None:
    """Its modules and exceptions exist."""
    for name in set(re.findall(r"`(antipode-[a-z-]+)`", GUIDE)):
        assert (SOURCES / name / "pom.xml").is_file(), name
    for name in set(re.findall(r"`(\w+Exception)`", GUIDE)):
        assert list(SOURCES.glob(f"antipode-core/src/main/**/{name}.java")), name
