"""A file whose tests leave something running is red, and names it."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests._leaks import Leaks, kind

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
LEAKY = """
import subprocess, sys, threading

def test_leaks():
    program = "import sys; sys.stdin.read()"
    global left
    left = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)

def test_passes():
    pass
"""


@pytest.fixture
def leaks() -> Leaks:
    """As a file's tests begin."""
    one = Leaks()
    one.begin()
    return one


@pytest.fixture
def endless() -> Iterator[threading.Thread]:
    """A thread that runs until the test is over."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait, name="forgotten", args=(60,))
    thread.start()
    yield thread
    over.set()
    thread.join()


def test_a_thread_is_named(leaks: Leaks, endless: threading.Thread) -> None:
    """One that the tests started and that does not end is what they left."""
    assert leaks.left(grace_s=0) == [f"thread forgotten (#{endless.ident})"]


def test_a_program_is_named(leaks: Leaks) -> None:
    """By its command line; once it has ended nothing is left, though nobody asked how."""
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as program:
        assert leaks.left(grace_s=0) == [f"process {program.pid}: {' '.join(command)}"]
        program.kill()
        assert leaks.left() == []


def test_numbers_make_no_kind() -> None:
    """What a topology starts anew is of the kind that it started before."""
    assert kind("thread lag-proxy-4711 (#12)") == kind("thread lag-proxy-815 (#9)")
    assert kind("process 1: /usr/bin/redis-server --port 1") == "process redis-server"


@pytest.mark.slow
def test_a_leaking_file_is_red(tmp_path: Path) -> None:
    """Its tests pass, and its end fails with the command line of what they left."""
    file = tmp_path / "test_leaky.py"
    file.write_text(LEAKY, encoding="utf-8")
    options = ["-q", "-p", "no:cacheprovider", "-p", "tests.conftest", "-c", "pyproject.toml"]
    command = [sys.executable, "-m", "pytest", *options, str(file)]
    run = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "test_leaky.py leaves behind: process" in run.stdout
    assert "2 passed, 1 error" in run.stdout
