"""The command line program ``antipode``. Never imported by the core."""

from __future__ import annotations

import argparse
import io
import os
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from . import (
    _calls_command,
    _check_command,
    _doctor_command,
    _explain_command,
    _lab_command,
    _report_command,
)
from ._exits import INTERRUPTED, PIPE_CLOSED, USAGE, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_COMMANDS = {
    "report": _report_command,
    "explain": _explain_command,
    "doctor": _doctor_command,
    "check": _check_command,
    "calls": _calls_command,
    "lab": _lab_command,
}
_DESCRIPTION = "Find the missing barriers of services that use Antipode, and check histories."
_EPILOG = "Exit status: 0 clean, 1 findings, 2 usage or an input that cannot be read."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status.

    Args:
        arguments: those after the program's name; default the process's own.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # Names in any script, on any terminal.
            stream.reconfigure(errors="backslashreplace")
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except UsageError as error:
        sys.stderr.write(f"antipode: {error}\n")
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read has gone (`| head`); the interpreter must not fail on it again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    return status


def _run(arguments: Sequence[str] | None) -> int:
    given = _parser().parse_args(arguments)
    status: int = given.run(given)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="antipode", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"antipode {_version()}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, module in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=module.HELP,
            description=module.DESCRIPTION,
            epilog=getattr(module, "EPILOG", _EPILOG),
        )
        module.options(command)
        command.set_defaults(run=module.run)
    return parser


def _version() -> str:
    try:
        return version("antipode-xcy")
    except PackageNotFoundError:  # Run from a copy that was never installed.
        return "of an unknown version"
