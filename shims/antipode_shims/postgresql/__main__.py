"""``python -m antipode_shims.postgresql``: migrations, printed and checked.

Of tables of your own, with whose rows lineages are stored; of the table of promises, and of the
function by which a plain user reads histories of timelines.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from antipode import ConfigurationError
from antipode.shim import Unreachable

from ._endpoint import ServerSettings, psycopg_module
from ._look import Refused, converse
from ._position import history_ddl, undo_history
from ._promises import promises_ddl, undo_promises
from ._stored.migration import described, migration, undo, usable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._stored.table import Table

PROGRAM = "python -m antipode_shims.postgresql"
LACKING = 1
FAILED = 2
_URL = "ANTIPODE_POSTGRESQL_URL"
_TIMEOUT_S = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print or check; the exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    shared = given.verb != "check" and (given.promises or given.history)
    if not (given.tables or shared):
        parser.error("name tables, or give --promises, or --history")
    made = given.verb == "migration"
    statements: list[str] = []
    try:
        tables = _described(given.url, given.tables) if given.tables else []
        if given.verb == "check":
            return _check(tables)
        for name, table in tables:
            if made:
                statements += migration(usable(name, table))
            else:
                statements += undo(usable(name, table))
    except ConfigurationError as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return FAILED
    if given.promises:
        statements += promises_ddl() if made else undo_promises()
    if given.history:
        statements += history_ddl() if made else undo_history()
    for statement in statements:
        sys.stdout.write(f"{statement};\n")
    return 0


def _described(url: str | None, names: Sequence[str]) -> list[tuple[str, Table | None]]:
    """The tables of these names, as the server of *url* describes them.

    Raises:
        ConfigurationError: it cannot be asked.
    """
    if not url:
        raise ConfigurationError(f"give --url, or set {_URL}: the tables' keys are asked for")
    psycopg = psycopg_module()
    try:
        arguments = psycopg.conninfo.conninfo_to_dict(url)
        line = ServerSettings.of(arguments).connect(timeout_s=_TIMEOUT_S)
    except (psycopg.Error, Unreachable, Refused) as error:
        cause = " ".join(str(error).split())
        raise ConfigurationError(f"no connection to the server of --url: {cause}") from error
    try:
        return [(name, converse(described(name), line.ask)) for name in names]
    except (Unreachable, Refused) as error:
        raise ConfigurationError(f"the server cannot be asked: {error}") from error
    finally:
        line.close()


def _check(tables: Sequence[tuple[str, Table | None]]) -> int:
    found = 0
    for name, table in tables:
        if table is None:
            lacking = "does not exist"
        elif table.refused:
            lacking = f"cannot keep lineages: {table.refused}"
        else:
            lacking = f"lacks {', '.join(table.lacks)}" if table.lacks else ""
        found |= bool(lacking)
        sys.stdout.write(f"{name}: {lacking or 'ready'}\n")
    return LACKING if found else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="What tables of your own need so that rows can have stored lineages; what "
        "promises, and plain users after a fail-over, need in a database. Nothing is ever "
        "changed: the statements are printed, for your migrations.",
        epilog=f"URL is libpq's (postgresql://...), or the environment's {_URL} where it is left "
        f"out. exit status: 0; {LACKING} if a check finds something missing; {FAILED} if the "
        "server cannot be asked, or a table cannot keep lineages",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb, about in (
        ("migration", "print the statements"),
        ("check", "report what TABLES lack, for the user of URL"),
        ("undo", "print the statements that take it back"),
    ):
        one = verbs.add_parser(verb, help=about, description=about)
        one.add_argument("--url", default=os.environ.get(_URL), help="of the server, for TABLES")
        one.add_argument("tables", nargs="*", metavar="TABLE", help="table or schema.table")
        if verb == "check":
            continue
        one.add_argument("--promises", action="store_true", help="the table of promises")
        one.add_argument(
            "--history",
            action="store_true",
            help="antipode_history() and antipode_received(); a superuser has to make them",
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
