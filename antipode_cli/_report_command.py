"""``antipode report``: what the records of a dry run say."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ._exits import CLEAN, FINDINGS, UsageError
from ._paint import put, write
from .report import (
    FORMATS,
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
    import argparse

    from .report import Format, Report

HELP = "show the missing barriers of a dry run"
DESCRIPTION = """\
Merge the records of a dry run, of any number of processes and services, and show which reads
need a barrier, where one would guard them, and what it would have cost."""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to *parser*."""
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="FILE_OR_DIR",
        help="record files, or folders with .jsonl files anywhere below",
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="ids of known findings, which never fail"
    )
    parser.add_argument(
        "--write-baseline",
        type=Path,
        metavar="FILE",
        help="write a baseline of everything found, so that only new findings fail from now on",
    )
    parser.add_argument(
        "--fail-on",
        choices=("none", "confirmed", "unguarded", "lint"),
        default="none",
        help="exit with 1 on new findings: those with a confirmed stale read, all of them, or "
        "lints as well; and where no request is recorded; default: none",
    )
    parser.add_argument(
        "--require",
        metavar="DATASTORES",
        help="exit with 1 where nothing of one of these datastores was judged, in any service or, "
        "as SERVICE:STORE, in that one; separated by commas",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write there and print the summary alone"
    )


def run(given: argparse.Namespace) -> int:
    """Run the command and return its exit status.

    Raises:
        UsageError: the records or the baseline cannot be read, or a file not be written.
    """
    try:
        baseline = read_baseline(given.baseline) if given.baseline else frozenset[str]()
        required = frozenset(filter(None, map(str.strip, (given.require or "").split(","))))
        found = report(
            load(given.paths), baseline=baseline, fail_on=given.fail_on, required=required
        )
        found = accept(found, Path.cwd())
    except RecordsError as error:
        raise UsageError(str(error)) from None
    for note in notes(found):
        sys.stderr.write(f"antipode: {note}\n")
    if given.write_baseline:
        _save(given.write_baseline, baseline_text(found))
    if given.output:
        _save(given.output, render(found, given.format))
        sys.stdout.write(f"{summary(found)}\n")
    else:
        _show(found, given.format)
    return FINDINGS if found.failed else CLEAN


def _show(found: Report, wanted: Format) -> None:
    if wanted == "text":
        write(text_lines(found), sys.stdout)
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # As the formats for programs are.
    put(render(found, wanted), sys.stdout)


def _save(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        msg = f"cannot write {path}: {error.strerror or error}"
        raise UsageError(msg) from None
