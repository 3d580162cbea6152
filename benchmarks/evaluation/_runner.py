"""Runs the plan: one program after another, what is finished already taken again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from antipode_testing import uninterrupted
from benchmarks._machine import ROOT, code, machine

from ._plan import APPLICATION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ._plan import Run

#: Statuses that leave a result: no violation, some, too many requests without an answer to tell.
FINISHED = (0, 1, 3)
_END_S = 60.0


@dataclass(frozen=True, slots=True)
class Record:
    """What is written beside a result, once it is there.

    Attributes:
        command: what was typed.
        code: a digest of what ran.
        machine: where.
        began: when, in UTC.
        took_s: seconds, servers and services included.
        status: of the program: one of `FINISHED`.
    """

    command: tuple[str, ...]
    code: str
    machine: dict[str, Any]
    began: str
    took_s: float
    status: int


class RunFailedError(Exception):
    """A run left no result; the message is one line that says why."""


class Runner:
    """Runs programs and keeps what they found in a folder."""

    def __init__(
        self, folder: Path, *, fresh: bool = False, of: Callable[[], str] | None = None
    ) -> None:
        """Keep results in *folder*.

        Args:
            folder: for the results.
            fresh: none of an earlier call is taken.
            of: a digest of the code that runs execute; None: that of the evaluation.
        """
        self._folder = folder
        self._fresh = fresh
        self._of = of
        folder.mkdir(parents=True, exist_ok=True)

    def result(self, run: Run) -> Path:
        """Where the result of a run is, or will be."""
        return self._folder / f"{run.name}.json"

    def record(self, run: Run) -> Record | None:
        """What is known of a finished run of these options, this code and this machine."""
        try:
            fields = json.loads(self._beside(run).read_text(encoding="utf-8"))
            record = Record(**{**fields, "command": tuple(fields["command"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None
        wanted = (run.command, self._digest(), machine())
        same = (record.command, record.code, record.machine) == wanted
        return record if same and self.result(run).is_file() else None

    def measure(self, run: Run) -> bool:
        """Run it unless it has been; whether it was run.

        Raises:
            RunFailedError: there is no result.
        """
        if not self._fresh and self.record(run) is not None:
            return False
        self._beside(run).unlink(missing_ok=True)
        began, began_s = datetime.now(timezone.utc), time.monotonic()
        status = self._call(run)
        if status not in FINISHED or not self.result(run).is_file():
            raise RunFailedError(f"{run.name}: status {status}: {self._why(run)}")
        took_s = round(time.monotonic() - began_s, 1)
        began_text = began.isoformat(timespec="seconds")
        record = Record(run.command, self._digest(), machine(), began_text, took_s, status)
        unfinished = self._beside(run).with_suffix(".part")
        unfinished.write_text(json.dumps(asdict(record), indent=1) + "\n", encoding="utf-8")
        unfinished.replace(self._beside(run))
        return True

    def _call(self, run: Run) -> int:
        """Call the program; an interrupt ends it in order before it goes on."""
        command = [sys.executable, "-m", run.module, *run.arguments]
        command += ["--json", str(self.result(run).resolve())]
        if run.module == APPLICATION:
            command += ["--history", str(self._folder.resolve() / "history" / run.name)]
        paths = [str(ROOT), str(ROOT / "shims"), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        process = None
        with self._log(run).open("wb") as log:
            try:
                with uninterrupted():
                    process = subprocess.Popen(
                        command,
                        cwd=ROOT,
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        # Ctrl-C is for this program, which then ends the other one.
                        start_new_session=True,
                    )
                return process.wait()
            except BaseException:
                if process is not None:
                    _end(process)
                raise

    def _why(self, run: Run) -> str:
        lines = self._log(run).read_text(encoding="utf-8", errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")

    def _digest(self) -> str:
        return code() if self._of is None else self._of()

    def _beside(self, run: Run) -> Path:
        return self._folder / f"{run.name}.run.json"

    def _log(self, run: Run) -> Path:
        return self._folder / f"{run.name}.log"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end, and wait; a second interrupt waits as well.

    By SIGTERM: a program that was started in the background may have been told to ignore SIGINT.
    """
    process.terminate()
    deadline_s = time.monotonic() + _END_S
    while process.poll() is None:
        with suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
            process.wait(max(deadline_s - time.monotonic(), 0.1))
        if time.monotonic() > deadline_s:
            process.kill()


def run_all(runner: Runner, runs: Sequence[Run]) -> list[str]:
    """Run all of them in order, whatever becomes of each; why there is no result of some."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    failures = []
    # A bar that moves too often would compete with what is measured.
    with Progress(*columns, console=console, transient=True, refresh_per_second=1) as bar:
        task = bar.add_task("", total=sum(run.expected_s for run in runs))
        for number, run in enumerate(runs, start=1):
            bar.update(task, description=f"{number} of {len(runs)}: {run.name}")
            began_s = time.monotonic()
            try:
                measured = runner.measure(run)
            except RunFailedError as failure:
                failures.append(str(failure))
                console.print(f"FAILED {failure}")
            else:
                took = f"{time.monotonic() - began_s:.0f} s" if measured else "finished before"
                console.print(f"{run.name}: {took}")
            bar.advance(task, run.expected_s)
    return failures
