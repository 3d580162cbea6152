"""``antipode calls``: what a database knows of calls that happen once."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from antipode.shim import decode

from ._exits import CLEAN, FINDINGS, UsageError
from ._explain import explanation
from ._paint import write
from .report import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine

    from antipode.calls import KnownCall

    from .report import Line

HELP = "show what is known of a call, make the table of calls, remove old replies"
DESCRIPTION = """\
Calls that happen once (antipode.calls) leave a row each in their database, PostgreSQL, MySQL or
MariaDB. `show` says what is known of one: its state, whose it is, how old, and what its request
depended on. Arguments and replies are not shown. `create` makes the table where it is missing;
`sweep` removes replies that nobody asks for any more."""
EPILOG = "Exit status: 0 done, 1 no such call, 2 usage or a database that cannot be asked."
_DAY_S = 86_400.0
_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": _DAY_S}
_STATES = {"done": "replied", "running": "in doubt: committed without a reply, never run again"}
_DECLINED = 400


def options(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to *parser*."""
    verbs = parser.add_subparsers(metavar="VERB", required=True, dest="verb")
    show = verbs.add_parser("show", help="what is known of a call")
    show.add_argument("name", metavar="NAME", help="its name, Idempotency-Key or message id")
    create = verbs.add_parser("create", help="make the table of calls, where it is missing")
    sweep = verbs.add_parser("sweep", help="remove replies that nobody asks for any more")
    sweep.add_argument(
        "--older-than",
        type=_seconds,
        required=True,
        metavar="AGE",
        help="as 7d, 12h, 30m or 90s: longer than any caller tries again",
    )
    for each in (show, create, sweep):
        each.add_argument(
            "--database",
            required=True,
            metavar="URL",
            help="of SQLAlchemy, as postgresql+psycopg://user@host/database",
        )


def run(given: argparse.Namespace) -> int:
    """Run the command and return its exit status.

    Raises:
        UsageError: the database cannot be asked.
    """
    if find_spec("sqlalchemy") is None:
        msg = "antipode calls needs SQLAlchemy and the database's driver: pip install sqlalchemy"
        raise UsageError(msg)
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError

    try:
        from sqlalchemy import create_engine

        engine = create_engine(given.database)
    except (ArgumentError, ImportError) as error:
        msg = f"the database cannot be reached: {error}"
        raise UsageError(msg) from None
    try:
        return _done(given, engine)
    except SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).strip()
        msg = f"the database cannot be asked: {cause}"
        raise UsageError(msg) from None
    finally:
        engine.dispose()


def _done(given: argparse.Namespace, engine: Engine) -> int:
    from antipode import calls

    if given.verb == "create":
        calls.create_table(engine)
        sys.stdout.write("the table of calls is there\n")
        return CLEAN
    if given.verb == "sweep":
        removed = calls.sweep(engine, older_than_s=given.older_than)
        sys.stdout.write(f"{removed} replies removed\n")
        return CLEAN
    found = calls.known(engine, given.name)
    if not found:
        sys.stdout.write(
            f"no call {given.name!r} is known: it was never made, rolled back, runs still, or was "
            "removed\n"
        )
        return FINDINGS
    for each in found:
        write(_lines(each), sys.stdout)
    return CLEAN


def _lines(one: KnownCall) -> Iterator[Line]:
    """One effect, for a person."""
    state = _STATES.get(one.state, one.state)
    yield (Span(f"{one.name}  {one.effect}", "bold"),)
    yield (Span(f"  {'declined' if one.status == _DECLINED else state}, {_age(one.age_s)} ago"),)
    yield (Span(f"  caller: {one.caller or 'nobody said'}"),)
    yield (Span(f"  arguments: {one.digest}"),)
    if one.lineage:
        yield from explanation(decode(one.lineage), len(one.lineage))


def _age(seconds: float) -> str:
    for unit in ("d", "h", "m"):
        if seconds >= 2 * _UNITS[unit]:
            return f"{seconds / _UNITS[unit]:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def _seconds(text: str) -> float:
    """An age in seconds.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    try:
        seconds = float(text[:-1]) * _UNITS[text[-1:]]
    except (KeyError, ValueError):
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        msg = f"{text!r} is no age: 7d, 12h, 30m or 90s"
        raise argparse.ArgumentTypeError(msg)
    return seconds
