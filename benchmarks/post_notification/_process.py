"""Services as processes that end with the program that started them, however that ends."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any

from antipode_testing import uninterrupted

from ._options import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Self

Record = dict[str, Any]

READY_S = 30.0
END_S = 5.0
_COMMAND = (sys.executable, "-m", "benchmarks.post_notification._serve")
#: No server here has a certificate of the system's authorities, and each connection that encrypts
#: reads them all: 20 ms of a processor.
_AUTHORITIES = dict.fromkeys(("SSL_CERT_FILE", "SSL_CERT_DIR"), os.devnull)


class ServiceProcess:
    """One service.

    It reads its configuration from the first line of its input, says its port in the first line
    of its output, writes a record a line from then on, and ends when its input does. It has a
    session of its own, so that Ctrl-C reaches the program alone, which ends it in order.
    """

    def __init__(
        self,
        role: str,
        take: Callable[[Record], None],
        modules: Sequence[str] = (),
        *,
        command: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Begin to start *role*; *take* gets its records, from a thread.

        Args:
            role: which, for messages.
            take: gets each record.
            modules: that it imports before it is configured.
            command: another program than this benchmark's services.
            environment: more of it.
        """
        self.role = role
        self.port = 0
        self._take = take
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            [*(command or (*_COMMAND, role, *modules))],
            env={**os.environ, **_AUTHORITIES, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, name=f"read-{role}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def configure(self, config: dict[str, Any]) -> int:
        """Tell it what to do; its port, once it listens.

        Raises:
            BenchmarkError: it ended, or is not ready in time.
        """
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        try:
            self._process.stdin.write(json.dumps(config).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # It ended; what follows tells why.
        deadline_s = time.monotonic() + READY_S
        while not self._ready.wait(0.05):
            self.check()
            if time.monotonic() > deadline_s:
                raise BenchmarkError(f"{self.role} was not ready in {READY_S:.0f} s{self._why()}")
        self.check()
        return self.port

    def check(self) -> None:
        """Make sure that it runs.

        Raises:
            BenchmarkError: it ended.
        """
        if self._process.poll() is not None:
            status = self._process.returncode
            raise BenchmarkError(f"{self.role} ended with status {status}{self._why()}")

    def kill(self) -> None:
        """End it at once, as a machine that fails."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End it: politely, then not. Idempotent."""
        self.release()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(END_S)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

    def release(self) -> None:
        """Close its input, which asks it to end; `close` waits for that. Idempotent."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            # It may have ended before it read everything.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

    def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        for line in self._process.stdout:
            record = json.loads(line)
            if "port" in record:
                self.port = int(record["port"])
                self._ready.set()
            else:
                self._take(record)

    def _why(self) -> str:
        """The last line of its log, for a message of one line."""
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f": {last}" if last else ""


class Processes:
    """Several services, ended together in the reverse order of their start."""

    def __init__(self, take: Callable[[Record], None]) -> None:
        """Hand every record of every service to *take*."""
        self._take = take
        self._running: list[ServiceProcess] = []

    def start(
        self, *roles: str, modules: Mapping[str, Sequence[str]] | None = None
    ) -> list[ServiceProcess]:
        """Begin to start services side by side; each waits for its configuration.

        Args:
            roles: which.
            modules: that a role imports meanwhile, so that its configuration need not wait for it.
        """
        started = []
        for role in roles:
            with uninterrupted():
                process = ServiceProcess(role, self._take, (modules or {}).get(role, ()))
                self._running.append(process)
            started.append(process)
        return started

    def check(self) -> None:
        """Make sure that all run.

        Raises:
            BenchmarkError: one ended.
        """
        for process in self._running:
            process.check()

    def __enter__(self) -> Self:
        """Use as a context manager: all are ended at its end."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End all."""
        for process in reversed(self._running):
            process.release()
        for process in reversed(self._running):
            process.close()
        self._running.clear()
