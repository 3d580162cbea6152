"""What a file's tests leave behind fails in that file: threads, and programs that still run.

Sockets and files that nobody closes are found by collecting garbage at the end of the file. What a
fixture of a wider scope starts stays beyond the file, and so do its like: a topology of the session
starts its servers and proxies anew when it heals. Daemon threads are left to the interpreter.
"""

from __future__ import annotations

import os
import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from antipode_testing import wait_until

__all__ = ["Leaks", "running"]

#: Long enough for what ends by itself.
GRACE_S = 10.0
WIDER = ("session", "package")
#: What Python keeps for as long as it runs: multiprocessing's helpers, and the threads of executors
#: that some library holds in a module (those of others end once they are collected).
STAYING = re.compile(
    r"thread ThreadPoolExecutor-|process .*multiprocessing\.(resource|fork|semaph)"
)


def running() -> set[str]:
    """The threads of this process, and the command lines of its children, each with its number.

    What a child starts is its own: a server's script runs small programs all the time.
    """
    threads = {
        f"thread {thread.name} (#{thread.ident})"
        for thread in threading.enumerate()
        if not thread.daemon
    }
    return threads | {f"process {pid}: {_command(pid)}" for pid in _children() if _command(pid)}


def _children() -> set[int]:
    """Of all threads of this process."""
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # It has ended meanwhile.
        if int(status.rpartition(")")[2].split()[1]) == os.getpid():
            found.add(int(folder.name))
    return found


def _command(pid: int) -> str:
    """How a program was called; nothing once it has ended, though nobody has waited for it."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def kind(one: str) -> str:
    """What all of a kind have in common: a program, or the name of a thread without its numbers."""
    what, _, name = one.partition(" ")
    if what == "process":
        return f"process {Path(name.partition(': ')[2].split()[0]).name}"
    return re.sub(r"\d+|\(#.*", "", one)


class Leaks:
    """Watches one file after another."""

    def __init__(self) -> None:
        self._before: set[str] = set()
        #: The kinds of what wider fixtures started.
        self._owned: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Any:
        """What a wider fixture starts is not the file's."""
        if fixturedef.scope not in WIDER:
            return (yield)
        before = running()
        try:
            return (yield)
        finally:
            self._owned |= {kind(one) for one in running() - before}

    def begin(self) -> None:
        """A file's tests begin."""
        self._before = running()

    def left(self, grace_s: float = GRACE_S) -> list[str]:
        """What they have left, once what ends by itself has had its time."""
        with suppress(TimeoutError):
            wait_until(lambda: not self._new(), what="what tests started to end", timeout_s=grace_s)
        return self._new()

    def _new(self) -> list[str]:
        new = (one for one in running() - self._before if not STAYING.match(one))
        return sorted(one for one in new if kind(one) not in self._owned)
