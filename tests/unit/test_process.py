"""A server as a child process: a failure explains itself, and nothing outlives the tests."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from antipode_testing import ServerFailed, ServerMissing, ServerProcess, wait_until
from antipode_testing._process import find_executable

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_S = 10.0
SLEEPS = [sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()"]
IGNORES_TERM = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True);"
    " [signal.pause() for _ in range(9)]"
)


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[ServerProcess]:
    process = make(SLEEPS, tmp_path)
    yield process
    process.kill()


def make(command: list[str], directory: Path, timeout_s: float = TIMEOUT_S) -> ServerProcess:
    output = directory / "it.out"
    return ServerProcess(
        "it",
        command,
        directory=directory,
        ready=lambda: output.exists() and "up" in output.read_text(),
        timeout_s=timeout_s,
    )


def exists(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def test_a_missing_executable_says_how_to_install_it() -> None:
    """The error has a stable code and names the executable and the command."""
    with pytest.raises(ServerMissing, match=r"'no-such-server'.*apt-get install it") as caught:
        find_executable("no-such-server", install="apt-get install it")
    assert caught.value.code == "server_missing"


def test_a_server_that_ends_while_starting_shows_its_log(tmp_path: Path) -> None:
    """The end of what it printed is in the error, and it is reaped."""
    process = make([sys.executable, "-c", "raise SystemExit('bad port 7')"], tmp_path)
    with pytest.raises(ServerFailed, match=r"ended while it started[\s\S]*bad port 7"):
        process.start()
    assert not process.running


def test_a_server_that_is_never_ready_is_stopped_at_the_deadline(tmp_path: Path) -> None:
    """Waiting has an end, after which the process is gone."""
    command = [sys.executable, "-c", "import signal; print('busy', flush=True); signal.pause()"]
    process = make(command, tmp_path, timeout_s=0.5)
    with pytest.raises(ServerFailed, match=r"not ready in 0.5 s"):
        process.start()
    assert process.pid is None


def test_stop_start_and_restart(sleeper: ServerProcess) -> None:
    """A process can be stopped, twice, and started again as another process."""
    sleeper.start()
    first = sleeper.pid
    assert first is not None
    sleeper.restart()
    assert sleeper.pid not in {None, first}
    sleeper.stop()
    sleeper.stop()
    assert (sleeper.pid, sleeper.running) == (None, False)
    assert not exists(first)


def test_a_suspended_process_can_be_resumed_and_stopped(sleeper: ServerProcess) -> None:
    """Suspended means stopped by the kernel; stopping it then takes no force and no timeout."""
    sleeper.start()
    sleeper.suspend()
    state = Path(f"/proc/{sleeper.pid}/stat").read_text().rpartition(")")[2].split()[0]
    assert state == "T"
    sleeper.resume_process()
    sleeper.suspend()
    sleeper.stop()
    with pytest.raises(ServerFailed, match="does not run"):
        sleeper.suspend()


def test_stop_is_bounded(tmp_path: Path) -> None:
    """A process that ignores SIGTERM is killed after the time given."""
    process = make([sys.executable, "-c", IGNORES_TERM], tmp_path)
    process.start()
    pid = process.pid
    assert pid is not None
    process.stop(timeout_s=0.2)
    assert not exists(pid)


@pytest.mark.parametrize(
    "ending",
    ["sys.exit()", "os._exit(3)", "os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 2)"],
    ids=["exit", "_exit", "SIGKILL", "Ctrl-C"],
)
def test_no_server_outlives_the_interpreter(tmp_path: Path, ending: str) -> None:
    """However an interpreter ends, the servers that it did not stop end with it."""
    script = (
        "import os, sys; from pathlib import Path; from antipode_testing import ServerProcess;"
        f" d = Path({str(tmp_path)!r}); o = d / 'it.out';"
        f" p = ServerProcess('it', {SLEEPS!r}, directory=d,"
        " ready=lambda: o.exists() and 'up' in o.read_text());"
        f" p.start(); print('pid', p.pid, flush=True); {ending}"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    found = re.search(r"pid (\d+)", done.stdout)
    assert found, done.stderr
    pid = int(found[1])
    wait_until(lambda: not exists(pid), what="the server to end", timeout_s=TIMEOUT_S)


def test_a_forked_child_does_not_stop_its_parents_servers(sleeper: ServerProcess) -> None:
    """The exit of a forked process leaves the servers to the one that started them."""
    sleeper.start()
    child = os.fork()
    if child == 0:
        from antipode_testing._guard import GUARD

        GUARD.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert sleeper.running
    assert sleeper.pid is not None
    os.kill(sleeper.pid, signal.SIGCONT)
