"""How long a check takes, and how much memory, by its own process."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from antipode.checker import save
from tests.checker import large

if TYPE_CHECKING:
    from pathlib import Path


def measured(tmp_path: Path, operations: int) -> tuple[float, float]:
    """Processor seconds and MiB of a whole ``antipode check`` that finds nothing."""
    path = tmp_path / f"{operations}.jsonl"
    save(large.history(operations), path)
    command = [sys.executable, "-m", "antipode", "check", str(path)]
    pid = os.posix_spawn(sys.executable, command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    per_mib = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / per_mib


@pytest.mark.slow
def test_100000_operations(tmp_path: Path) -> None:
    """100,000 operations of 50 processes are checked in seconds, below 1 GB."""
    # Four seconds of a processor that does nothing else; a busy neighbour makes three times of it.
    seconds, mib = measured(tmp_path, 100_000)
    assert seconds < 30
    assert mib < 1000


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_time_grows_with_the_history(tmp_path: Path) -> None:
    """Four times as many operations take about four times as long: no step is quadratic."""
    small, _ = measured(tmp_path, 30_000)
    large_s, _ = measured(tmp_path, 120_000)
    assert large_s < 10 * small
