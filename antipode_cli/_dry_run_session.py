"""A dry run of a pytest session: each process records, and one of them reports at the end."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from opentelemetry import context as otel_context

from antipode import AntipodeError, configure
from antipode.diagnostics import exchange_config, settle
from antipode.shim import config

from ._pytest_options import BASELINE, FAIL_ON, REPORT, REQUIRE
from .report import (
    FORMATS,
    Records,
    RecordsError,
    accept,
    baseline_text,
    load,
    notes,
    read_baseline,
    render,
    report,
    summary,
    text_lines,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from .report import FailOn, Report
    from .report._records import Record

#: What a worker process of pytest-xdist is given.
WORKER_KEY = "antipode_dry_run_dir"
#: Seconds after a test that its reads are observed at least, while its stores still run.
SETTLE_S = 0.5
#: The files of a report that are not named after their format.
_NAMES = {"junit": "junit.xml", "text": "report.txt"}


def begin_session(pytest_config: pytest.Config, started: Path) -> None:
    """Begin the dry run of this process; it ends with the session.

    Raises:
        pytest.UsageError: a setting, the baseline or the folder of the report cannot be used.
    """
    worker: dict[str, Any] | None = getattr(pytest_config, "workerinput", None)
    with ExitStack() as undo:
        try:
            if worker is not None:
                folder = Path(worker[WORKER_KEY])
                plugin: Recorder = Recorder(folder)
            else:
                baseline = pytest_config.getoption(BASELINE)
                known = read_baseline(started / baseline) if baseline else frozenset[str]()
                folder = _folder(pytest_config.getoption(REPORT), started, undo)
                plugin = Reporter(folder, pytest_config, started, known)
            undo.callback(plugin.end)
            plugin.begin()
        except (AntipodeError, OSError) as error:
            raise pytest.UsageError(f"antipode: {error}") from None
        pytest_config.pluginmanager.register(plugin, "antipode-dry-run")
        pytest_config.add_cleanup(undo.pop_all().close)


def _folder(wanted: str | None, started: Path, undo: ExitStack) -> Path:
    """An empty folder for the records."""
    if wanted is None:
        folder = Path(tempfile.mkdtemp(prefix="antipode-dry-run-"))
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder
    folder = started / wanted / "records"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.jsonl"):
        old.unlink()
    return folder


class Recorder:
    """The dry run of this process, and of those that it starts."""

    def __init__(self, folder: Path) -> None:
        """Record into *folder*."""
        self.folder = folder
        self._settings = {"ANTIPODE_MODE": "dry-run", "ANTIPODE_DRY_RUN_DIR": str(folder)}
        self._undo = ExitStack()

    def begin(self) -> None:
        """Begin, and remember what was in force.

        Raises:
            ConfigurationError: the environment has a value that its setting does not take.
        """
        held = exchange_config(None)
        self._undo.callback(exchange_config, held)
        for name, value in self._settings.items():
            self._undo.callback(_set_variable, name, os.environ.get(name))
            os.environ[name] = value
        if held is not None:
            exchange_config(replace(held, mode="dry-run", dry_run_dir=str(self.folder)))
        self._ensure()

    def _ensure(self) -> None:
        """Be in a dry run, whatever the application or an earlier test configured."""
        now = config()
        if now.mode != "dry-run" or now.dry_run_dir != str(self.folder):
            configure(mode="dry-run", dry_run_dir=self.folder)

    def end(self) -> None:
        """Close this process's file, and put back what was in force. Idempotent."""
        self._undo.close()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Begin each test in a dry run."""
        self._ensure()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        """Keep a scope that a test leaves open from the next; let evidence begin."""
        token = otel_context.attach(otel_context.get_current())
        try:
            return (yield)
        finally:
            otel_context.detach(token)
            settle(SETTLE_S)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:  # noqa: ARG002 - for Reporter
        """Write nothing any more, before the process that reports reads."""
        self.end()


class Reporter(Recorder):
    """Reports, where no other process does it."""

    def __init__(
        self, folder: Path, pytest_config: pytest.Config, started: Path, baseline: frozenset[str]
    ) -> None:
        """Report what is new over *baseline*.

        Args:
            folder: where all processes record.
            pytest_config: has the options.
            started: the folder that pytest was started in, which files are relative to.
            baseline: the ids of known findings.
        """
        super().__init__(folder)
        self._fail_on: FailOn = cast("FailOn", pytest_config.getoption(FAIL_ON))
        self._wanted: str | None = pytest_config.getoption(REPORT)
        self._started = started
        self._baseline = baseline
        names = (pytest_config.getoption(REQUIRE) or "").split(",")
        self._required = frozenset(filter(None, map(str.strip, names)))
        self._found: Report | None = None
        self._error = ""

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Inform a worker process of pytest-xdist where to record."""
        node.workerinput[WORKER_KEY] = str(self.folder)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Merge the records of all processes, once, and fail the run where that is asked for."""
        super().pytest_sessionfinish(session)
        try:
            self._found = self._judged()
            if self._wanted is not None:
                self._write(self._found, self._started / self._wanted)
        except (RecordsError, OSError) as error:
            self._error = str(error)
        failed = self._error or (self._found is not None and self._found.failed)
        if failed and session.exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _judged(self) -> Report:
        # Without a single scope or lint in all tests there is no file.
        recorded = load([self.folder]) if any(self.folder.glob("*.jsonl")) else Records({}, ())
        found = report(
            _attributed(recorded),
            baseline=self._baseline,
            fail_on=self._fail_on,
            required=self._required,
        )
        return accept(found, self._started)

    def _write(self, found: Report, folder: Path) -> None:
        for wanted in FORMATS:
            if wanted != "github":  # Commands for the log of one system, not a file.
                name = _NAMES.get(wanted, f"report.{wanted}")
                (folder / name).write_text(render(found, wanted), encoding="utf-8")
        (folder / "baseline.txt").write_text(baseline_text(found), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what is new or accepted; of a clean run what it saw, in one line."""
        found = self._found
        if self._error:
            terminalreporter.section("antipode")
            terminalreporter.write_line(f"antipode: no report: {self._error}", red=True)
        if found is None:
            return
        if not _speaks(found):
            terminalreporter.write_line(summary(found))
            return
        terminalreporter.section("antipode")
        # A run of some tests says nothing of the rest of the baseline.
        for line in text_lines(replace(found, gone=())):
            for span in line:
                terminalreporter.write(span.text, **_markup(span.style))
            terminalreporter.write_line("")
        for note in notes(found):
            terminalreporter.write_line(f"antipode: {note}")
        if self._wanted is not None:
            terminalreporter.write_line(f"antipode: report in {self._wanted}")
        for why in self._failures(found):
            terminalreporter.write_line(f"antipode: {why}", red=True)

    def _failures(self, found: Report) -> Iterator[str]:
        """Why the run fails."""
        if found.unseen:
            yield f"{FAIL_ON}={self._fail_on} fails: no request was recorded"
        if found.missing:
            yield f"{REQUIRE} fails: nothing was judged of {', '.join(found.missing)}"
        if failing := [one.id for one in found.everything if found.fails(one)]:
            yield f"{FAIL_ON}={self._fail_on} fails on {', '.join(failing)}"


def _attributed(recorded: Records) -> Records:
    """*recorded*, with the test that made a request in what other processes record of it.

    A service that a test started goes on with that test's name in its environment.
    """
    opened = [line for line in recorded.lines if line.kind == "scope" and line.opened == "here"]
    made = {line.request: line for line in sorted(opened, key=lambda line: -line.t)}

    def attributed(line: Record) -> str | None:
        maker = made.get(line.request)
        return line.test if maker is None or maker.process == line.process else maker.test

    lines = (replace(line, test=attributed(line)) for line in recorded.lines)
    return replace(recorded, lines=tuple(lines))


def _speaks(found: Report) -> bool:
    """Whether there is anything to say; also where something was written, and nothing judged."""
    if found.new or found.new_lints or found.accepted or found.unreasoned:
        return True
    if found.missing or found.unseen:
        return True
    reads = any(line.kind == "read" for line in found.records.lines)
    return bool(notes(found) or (found.unread and not reads))


def _markup(style: str) -> dict[str, bool]:
    """A style of the report as pytest's terminal has it."""
    return {"light" if word == "dim" else word: True for word in style.split()}


def _set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
