"""While something is measured clients and servers have processors of their own: none halts."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import _processors
from benchmarks._processors import AS_IS, awake, steady

if TYPE_CHECKING:
    from collections.abc import Collection

SHOW = "import os; print(*sorted(os.sched_getaffinity(0)))"

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system keeps no process anywhere"
)


def of_a_child() -> set[int]:
    """Where a program that is started now may run."""
    said = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True)
    return set(map(int, said.stdout.split()))


def usable(monkeypatch: pytest.MonkeyPatch, processors: Collection[int]) -> None:
    """Let there be these processors alone."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(processors))


def test_clients_and_servers_are_apart() -> None:
    """What is started for either stays there; behind the blocks this thread goes where it did."""
    before = os.sched_getaffinity(0)
    if len(before) == 1:
        pytest.skip("this machine has one processor")
    with steady() as processors:
        with processors.for_servers():
            servers = of_a_child()
        with processors.for_clients():
            clients = of_a_child()
        assert os.sched_getaffinity(0) == before
    assert clients
    assert servers
    assert clients | servers == before
    assert not clients & servers
    assert processors.said.startswith("apart for clients and servers")


def test_one_processor_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one alone nothing is kept anywhere, and that is said."""
    usable(monkeypatch, {0})
    with steady() as processors:
        assert (processors.clients, processors.servers) == ((), ())
    assert processors.said.startswith("not apart")


def test_as_is_changes_nothing() -> None:
    """Programs may run wherever this one may."""
    before = os.sched_getaffinity(0)
    with AS_IS.for_servers(), AS_IS.for_clients():
        assert of_a_child() == before


def test_processors_stay_awake_for_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system is asked to wake up within nothing, and the request is open for the block."""
    device = tmp_path / "latency"
    monkeypatch.setattr(_processors, "LATENCY", device)
    device.touch()

    def is_open() -> bool:
        return any(each.resolve() == device for each in Path("/proc/self/fd").iterdir())

    with awake() as kept:
        assert kept
        assert is_open()
    assert not is_open()
    assert device.read_bytes() == struct.pack("i", 0)


def test_who_may_not_ask_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system lets nobody ask, it is measured all the same, and said with the figures."""
    monkeypatch.setattr(_processors, "LATENCY", tmp_path / "missing" / "latency")
    with steady() as processors:
        assert "may halt" in processors.said
