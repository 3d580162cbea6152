"""A forked process counts, whatever other threads of its parent were doing at that moment."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, threading
from antipode._runtime import metrics
from antipode._telemetry import telemetry

telemetry.counted("polls")
held, over = threading.Event(), threading.Event()

def hold():
    with metrics._lock, telemetry._lock:
        held.set()
        over.wait()

threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if not child:
    signal.alarm(20)
    metrics.count("a_new_count")
    os._exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
over.set()
sys.exit(status)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it has no fork")
def test_a_lock_that_another_thread_held_is_free() -> None:
    """The parent's threads are not in the child, which would wait for them for ever."""
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
