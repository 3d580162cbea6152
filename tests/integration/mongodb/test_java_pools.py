"""Reads that wait in a client of Java: which connections of its pool they keep."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance._agents import command

if TYPE_CHECKING:
    from antipode_testing import MongoDBTopology

pytestmark = [pytest.mark.slow, pytest.mark.store("mongodb")]

PROGRAM = Path(__file__).parent / "programs" / "PoolProgram.java"


@pytest.mark.parametrize("check", ["pooled", "half", "table2"])
def test_a_read_that_waits(antipode_mongodb: MongoDBTopology, check: str) -> None:
    """It keeps no connection, or half of the pool where it cannot be made again."""
    urls = [
        f"mongodb://{each.host}:{each.port}/?serverMonitoringMode=poll&directConnection=true"
        for each in (antipode_mongodb.primary, antipode_mongodb.replica)
    ]
    ran = subprocess.run(
        ["java", "-cp", command("java")[-1], str(PROGRAM), *urls, check],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
