"""A native server as a child process: started, ready, frozen, killed, restarted, and never left."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ._errors import ServerFailed, ServerMissing
from ._guard import GUARD, kill_group
from ._interrupt import uninterrupted
from ._wait import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Where Debian puts servers; not on the path of an ordinary user.
SERVER_DIRECTORIES = ("/usr/sbin", "/usr/local/sbin", "/sbin")
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
KILL_TIMEOUT_S = 10.0
LOG_TAIL_BYTES = 2_000
INHERITED = ("LANG", "LC_ALL", "PATH", "TMPDIR", "TZ")


def find_executable(name: str, *, install: str) -> Path:
    """Find a server on PATH or where the system keeps its daemons.

    Args:
        name: of the executable.
        install: the command that installs it, for the error.

    Raises:
        ServerMissing: it is nowhere.
    """
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *SERVER_DIRECTORIES))
    found = shutil.which(name, path=path)
    if found is None:
        raise ServerMissing(f"the executable {name!r} is not on PATH: install it with `{install}`")
    return Path(found)


def inherited() -> dict[str, str]:
    """The variables that a server gets from this process: what configures a user's own does not."""
    return {key: os.environ[key] for key in INHERITED if key in os.environ}


class ServerProcess:
    """One server, started with the same command each time.

    Args:
        name: for messages.
        command: the program and its arguments.
        directory: where it runs, and where its output goes (``<name>.out``).
        ready: asked until it holds; a refused connection, an `OSError`, counts as not ready.
        environment: variables next to those that every program needs; nothing else is inherited.
        timeout_s: seconds within which it must become ready.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        directory: Path,
        ready: Callable[[], bool],
        environment: Mapping[str, str] | None = None,
        timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        self.name = name
        self._command = tuple(command)
        self._directory = directory
        self._ready = ready
        self._environment = dict(environment or {})
        self._timeout_s = timeout_s
        self._output = directory / f"{name}.out"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id while it runs, suspended included; else None."""
        return self._process.pid if self._process is not None and self.running else None

    @property
    def running(self) -> bool:
        """Whether the process exists."""
        return self._process is not None and self._process.poll() is None

    def launch(self) -> None:
        """Start the process without waiting until it is ready. See `await_ready`."""
        if self.running:
            return
        with self._output.open("ab") as output, uninterrupted():
            self._process = subprocess.Popen(
                self._command,
                cwd=self._directory,
                env=inherited() | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the tests, which then stop their servers
            )
            GUARD.add(self._process.pid)

    def await_ready(self) -> None:
        """Return once the server answers.

        Raises:
            ServerFailed: it ended, or did not answer in time; it is then stopped.
        """
        deadline = time.monotonic() + self._timeout_s
        try:
            while not self._is_ready():
                self._check_start(deadline)
                time.sleep(0.01)
        except BaseException:  # an interrupt as well: nothing is left
            self.kill()
            raise

    def start(self) -> None:
        """Start the process and return once the server answers; see `await_ready` for errors."""
        self.launch()
        self.await_ready()

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End the process politely, by force after ``timeout_s`` seconds. Idempotent."""
        if self._process is None:
            return
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.terminate()
                self._process.send_signal(signal.SIGCONT)  # a suspended process cannot end
                self._process.wait(timeout_s)
        finally:
            self.kill()

    def kill(self) -> None:
        """End the process and its group at once, and reap it. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        kill_group(process.pid, signal.SIGKILL)
        process.wait(KILL_TIMEOUT_S)
        GUARD.remove(process.pid)

    def restart(self, *, graceful: bool = True) -> None:
        """Stop, or kill, and start again with the same command, ports and directory."""
        if graceful:
            self.stop()
        else:
            self.kill()
        self.start()

    def suspend(self) -> None:
        """Freeze the process (SIGSTOP): connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)
        wait_until(self._is_stopped, what=f"{self.name} to freeze", timeout_s=KILL_TIMEOUT_S)

    def resume_process(self) -> None:
        """Let a suspended process run again (SIGCONT); a running one is not disturbed."""
        self._signal(signal.SIGCONT)

    def log_tail(self) -> str:
        """The end of what the process printed."""
        if not self._output.exists():
            return ""
        return self._output.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace").strip()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None or not self.running:
            raise ServerFailed(f"{self.name} does not run: start it before it can be signalled")
        self._process.send_signal(number)

    def _is_stopped(self) -> bool:
        """Whether the kernel says so; where it publishes no /proc, the signal is trusted."""
        stat = Path(f"/proc/{self.pid}/stat")
        if not stat.exists():
            return True
        return stat.read_text().rpartition(")")[2].split()[0] in {"T", "t"}

    def _is_ready(self) -> bool:
        try:
            return self._ready()
        except OSError:
            return False

    def _check_start(self, deadline: float) -> None:
        if not self.running:
            raise ServerFailed(self._epitaph("ended while it started"))
        if time.monotonic() >= deadline:
            raise ServerFailed(self._epitaph(f"was not ready in {self._timeout_s:g} s"))

    def _epitaph(self, what: str) -> str:
        tail = self.log_tail() or "(it printed nothing)"
        return f"{self.name} {what}; the end of its output:\n{tail}"
