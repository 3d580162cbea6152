"""The guide to Java and java/README.md do what they say, on real servers."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.conformance._agents import ROOT, command

if TYPE_CHECKING:
    from pathlib import Path

    from antipode_testing import RedisTopology

pytestmark = [pytest.mark.store("redis"), pytest.mark.slow]

SOURCES = ROOT / "java"
README = (SOURCES / "README.md").read_text(encoding="utf-8")
PAGES = sorted((ROOT / "docs" / "guides" / "java").glob("*.md"))
GUIDE = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
LAG_MS = 400


@pytest.mark.parametrize(("name", "text"), [("QuickStart", GUIDE), ("Readme", README)])
def test_the_quick_start_compiles_and_waits(
    antipode_redis: RedisTopology, tmp_path: Path, name: str, text: str
) -> None:
    """It prints the post although the replica lags."""
    jar = command("java")[-1]
    antipode_redis.set_lag(LAG_MS)
    blocks = re.findall(r"```java[^\n]*\n(.*?)```", text, flags=re.DOTALL)
    (program,) = (block for block in blocks if f"public final class {name} " in block)
    path = tmp_path / f"{name}.java"
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
    for name in set(re.findall(r"`(antipode-[a-z-]+)`", GUIDE + README)):
        assert (SOURCES / name / "pom.xml").is_file(), name
    for name in set(re.findall(r"`(\w+Exception)`", GUIDE + README)):
        assert list(SOURCES.glob(f"antipode-core/src/main/**/{name}.java")), name
