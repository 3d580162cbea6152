"""An evaluation that can fail: what proves nothing about the library does not pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import judge

ROOT = Path(judge.__file__).resolve().parents[2]
PROGRAM = (sys.executable, "-m", "benchmarks.post_notification")
SMALL = ("--requests", "60", "--blocks", "1", "--kinds", "update")
#: What takes the place of the library, or of the observer, in every process of a run.
SLEEP = """
import antipode, threading
antipode.barrier = lambda *a, **k: threading.Event().wait(0.12)
"""
NOTHING = "import antipode; antipode.barrier = lambda *a, **k: None"
FORGETFUL = "import antipode.shim; antipode.shim.record_write = lambda *a, **k: None"
BLIND = """
from benchmarks.post_notification._truth import Poller
Poller._look = lambda self, post_ids: None
"""
HASTY = """
from benchmarks.post_notification._strategies._at_read import AtRead
AtRead.far = True
AtRead.read = lambda self, post_id, notice: self.client("across").read(post_id)
"""


def status_and_verdict(folder: Path, changed: str, *arguments: str) -> tuple[int, str]:
    """How a run of a changed application ends, and its last line."""
    (folder / "sitecustomize.py").write_text(changed, encoding="ascii")
    paths = [str(folder), str(ROOT), str(ROOT / "shims")]
    done = subprocess.run(
        [*PROGRAM, *SMALL, *arguments, "--out-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, done.stdout.splitlines()[-1]


def test_it_passes_as_it_is(tmp_path: Path) -> None:
    """Or none of what follows is about what was changed."""
    status, said = status_and_verdict(tmp_path, "")
    assert status == judge.SHOWN, said


@pytest.mark.parametrize(
    "changed", [SLEEP, NOTHING, FORGETFUL], ids=["sleep", "no-op", "no record"]
)
def test_what_is_no_barrier_fails(tmp_path: Path, changed: str) -> None:
    """A fixed sleep of 120 ms where the lag is about 100, no wait, and no writes to wait for."""
    status, said = status_and_verdict(tmp_path, changed)
    assert status == judge.FAILED, said


def test_a_read_of_the_primary_fails(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """It is right, and was answered before the replica had anything: no replica was read."""
    request.getfixturevalue("antipode_redis")  # Skips, or fails where the store is required.
    arguments = ("--post-storage", "redis", "--strategies", "none,at-read", "--link-ms", "5")
    status, said = status_and_verdict(tmp_path, HASTY, *arguments)
    assert status == judge.FAILED, said
    assert "early" in said


def test_where_nothing_is_late_nothing_is_shown(tmp_path: Path) -> None:
    """Without protection no read is wrong, either."""
    status, said = status_and_verdict(tmp_path, "", "--lag-ms", "0", "--notifier-lag-ms", "50")
    assert status == judge.INCONCLUSIVE, said
    assert "nothing was wrong without it" in said


def test_a_blind_observer_shows_nothing(tmp_path: Path) -> None:
    """Right answers whose need nobody saw are no evidence."""
    status, said = status_and_verdict(tmp_path, BLIND, "--timeout", "2")
    assert status == judge.INCONCLUSIVE, said
    assert "the observer cannot tell" in said
