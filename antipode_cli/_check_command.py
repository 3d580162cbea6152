"""``antipode check``: whether a recorded history is consistent."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from antipode.checker import BUDGET_STEPS, ExhaustedError, HistoryError, Verdict, check, load

from ._exits import CLEAN, FINDINGS, UNKNOWN, UsageError
from ._paint import put

if TYPE_CHECKING:
    import argparse

HELP = "check a recorded history for cross-service causal consistency"
DESCRIPTION = """\
Check a history of writes, reads and messages by three readings of the paper's definition: causal
memory, what lineages carry, and whole lineages. Name the weakest that is violated, and explain it
by the smallest cycle of what must come before what. ANTIPODE_HISTORY_DIR=history in each service
records one, where Table 2 shims of Python write and read; then: antipode check history"""
EPILOG = """\
Exit status: 0 ok, 1 violation, 3 unknown, 2 usage, or a history that is malformed, contradictory
or cut off."""
#: When a terminal sees progress first, and then how often; how often anything else does.
FIRST_S, LIVE_S, LINE_S = 1.0, 0.2, 10.0
_STATUS = {Verdict.OK: CLEAN, Verdict.VIOLATION: FINDINGS, Verdict.UNKNOWN: UNKNOWN}


def options(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to *parser*."""
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="HISTORY",
        help="files of one history, or folders with its .jsonl files anywhere below",
    )
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw the explanation there")
    parser.add_argument(
        "--budget",
        type=_count,
        default=BUDGET_STEPS,
        metavar="STEPS",
        help="how many comparisons the search for serializations may take before the answer is "
        "unknown; default: %(default)s",
    )
    parser.add_argument(
        "--memory-limit",
        type=_count,
        metavar="MIB",
        help="how much memory the program may have before the answer is unknown; default: any",
    )


def run(given: argparse.Namespace) -> int:
    """Run the command and return its exit status.

    Raises:
        UsageError: the history cannot be read, or the picture not be written.
    """
    progress = _Progress(sys.stderr)
    limit = given.memory_limit
    try:
        history = load(given.paths, memory_limit_mib=limit, progress=progress)
        result = check(
            history, budget_steps=given.budget, memory_limit_mib=limit, progress=progress
        )
    except HistoryError as error:
        raise UsageError(str(error)) from None
    except ExhaustedError as error:
        put(f"unknown: {error}\n", sys.stdout)
        return UNKNOWN
    finally:
        progress.clear()
    put(result.text(), sys.stdout)
    if given.svg and result.explanation:
        _save(given.svg, result.explanation.svg())
    return _STATUS[result.verdict]


def _count(text: str) -> int:
    if (count := int(text)) < 1:
        raise ValueError
    return count


def _save(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None


class _Progress:
    """How far a long check is: on a terminal in one line that is erased, else now and then."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._live = stream, stream.isatty()
        self._every_s = LIVE_S if self._live else LINE_S
        self._next_s = time.monotonic() + (FIRST_S if self._live else LINE_S)
        self._drawn = 0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Say that *done* of *total* are done."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + self._every_s
        said = f"antipode: {done:,} of {total:,} {what}" if total else f"antipode: {done:,} {what}"
        if self._live:
            self._stream.write(f"\r{said.ljust(self._drawn)}")
            self._drawn = len(said)
        else:
            self._stream.write(f"{said}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Erase the line."""
        if self._drawn:
            self._stream.write(f"\r{' ' * self._drawn}\r")
            self._stream.flush()
