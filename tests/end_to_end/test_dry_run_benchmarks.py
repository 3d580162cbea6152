"""The dry run finds each barrier that is removed from the benchmark application, without lag."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from antipode_cli.report import Report, load, report

ROOT = Path(__file__).parents[2]
SERVERS = "redis", "mysql", "mariadb", "mongodb"
STORES = ["embedded", *(pytest.param(name, marks=pytest.mark.store(name)) for name in SERVERS)]


def dry_run(folder: Path, store: str, strategy: str) -> Report:
    """What a dry run of the application finds; nothing is late there."""
    folder.mkdir()
    subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.post_notification", "--post-storage", store),
            *("--requests", "20", "--blocks", "1", "--kinds", "new,update", "--lag-ms", "0"),
            *("--strategies", strategy, "--out-dir", str(folder / "out")),
        ],
        cwd=ROOT,
        env={
            **os.environ,
            "ANTIPODE_MODE": "dry-run",
            "ANTIPODE_DRY_RUN_DIR": str(folder / "records"),
        },
        # Nothing waits in a dry run: the benchmark may see violations where replication is slow.
        check=False,
        capture_output=True,
        timeout=100,
    )
    return report(load([folder / "records"]))


@pytest.mark.parametrize("store", STORES)
def test_a_removed_barrier_is_found(
    store: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """With it nothing is missing; without it the read of the post is, in another process."""
    if store != "embedded":
        request.getfixturevalue(f"antipode_{store}")  # Skips, or fails where it is required.
    with_barrier = dry_run(tmp_path / "with", store, "barrier")
    assert with_barrier.records
    assert not with_barrier.findings
    without = dry_run(tmp_path / "without", store, "unguarded")
    assert (without.lints, with_barrier.lints) == ((), ())
    found = without.findings
    assert {each.datastore for each in found} == {"post-storage"}
    assert {each.read.function for each in found} == {"read"}
    assert {each.write.function for each in found} == {"write"}
    assert sum(each.reads for each in found) >= 40
