"""Reads that wait in a pool of Java: which connections they keep, and what ends them early."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conformance._agents import command
from tests.integration.mysql._clients import STORES

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parent / "programs" / "PoolProgram.java"


def _url(topology: Any, address: Any) -> str:
    return f"jdbc:{topology.store}://{address.host}:{address.port}/app"


@pytest.mark.parametrize("check", ["pooled", "half", "limited", "cancelled"])
@pytest.mark.parametrize("store", STORES)
def test_a_read_that_waits(request: pytest.FixtureRequest, store: str, check: str) -> None:
    """It keeps no connection or half of a pool; its query timeout and a cancel end it."""
    topology = request.getfixturevalue(f"antipode_{store}")
    topology.set_lag(0)
    urls = [_url(topology, each) for each in (topology.primary, topology.replica)]
    ran = subprocess.run(
        ["java", "-cp", command("java")[-1], str(PROGRAM), *urls, check],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
