"""``python -m antipode_shims.mysql``: migrations, printed and checked.

Of tables of your own, with whose rows lineages are stored, and of the table of promises.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode_shims._sql.promises import TABLE

from ._position.flavor import Ask, Refused, converse, text
from ._promises.records import promises_ddl, promises_missing, undo_promises
from ._stored.migration import (
    lacks_invisible_columns,
    migration,
    missing,
    primary_key,
    sided,
    triggers_missing,
    undo,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._position.flavor import Rows

PROGRAM = "python -m antipode_shims.mysql"
LACKING = 1
FAILED = 2
_URL = "ANTIPODE_MYSQL_URL"
_SIDE_TABLE = "keep lineages in a table TABLE_ap, for MySQL before 8.0.23: no invisible columns"

_PROMISES = f"the table {TABLE} of promises, in the database at hand"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print or check; the exit status."""
    given = _parser().parse_args(arguments)
    try:
        _check_given(given)
        if given.verb == "undo":
            return _undo(given)
        if given.verb == "migration" and given.promises:
            _print(promises_ddl())
            if not given.tables:
                return 0
        with _Server(given.url) as ask:
            if given.verb == "migration":
                return _migration(ask, given.tables, side_table=given.side_table)
            lacking = _check_promises(ask) if given.promises else 0
            return _check(ask, given.tables) or lacking
    except ConfigurationError as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="What tables of your own need so that rows can have stored lineages, and "
        "the table that promises need. Nothing is ever changed: the statements are printed, for "
        "your migrations.",
        epilog=f"URL is SQLAlchemy's (mysql+pymysql://...), or the environment's {_URL} where it "
        f"is left out. exit status: 0; {LACKING} if a check finds something missing; {FAILED} if "
        "the server or a table cannot be asked",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb, about in (
        ("migration", "print the statements for TABLES, and with --promises for these"),
        ("check", "report what TABLES lack; sees triggers with the privilege TRIGGER alone"),
        ("undo", "print the statements that take it back"),
    ):
        one = verbs.add_parser(verb, help=about, description=about)
        if verb != "undo":
            one.add_argument("--url", default=os.environ.get(_URL), help="of the server")
        if verb != "check":
            one.add_argument("--side-table", action="store_true", help=_SIDE_TABLE)
        one.add_argument("--promises", action="store_true", help=_PROMISES)
        one.add_argument("tables", nargs="*", metavar="TABLE", help="table or schema.table")
    return parser


class _Server:
    """A server that is asked in one block.

    Raises:
        ConfigurationError: it cannot be reached, or SQLAlchemy is missing.
    """

    def __init__(self, url: str | None) -> None:
        if not url:
            raise ConfigurationError(f"which server? give --url, or set {_URL}")
        self._url = url

    def __enter__(self) -> Callable[[Ask], Rows]:
        try:
            import sqlalchemy.exc
        except ImportError as error:
            msg = 'SQLAlchemy is missing: pip install "antipode-xcy[mysql]"'
            raise ConfigurationError(msg) from error
        try:
            self._engine: Any = sqlalchemy.create_engine(self._url)
            self._connection: Any = self._engine.connect()
        except (sqlalchemy.exc.SQLAlchemyError, ImportError, ValueError) as error:
            cause = getattr(error, "orig", None) or error
            raise ConfigurationError(f"no connection: {cause}") from error

        def ask(question: Ask) -> Rows:
            try:
                found = self._connection.exec_driver_sql(question.sql)
            except sqlalchemy.exc.DBAPIError as error:
                raise Refused(str(error.orig)) from error
            return [dict(row) for row in found.mappings()]

        return ask

    def __exit__(self, *error: object) -> None:
        self._connection.close()
        self._engine.dispose()


def _check_given(given: argparse.Namespace) -> None:
    if not (given.tables or given.promises):
        raise ConfigurationError("name tables, or give --promises, or both")


def _undo(given: argparse.Namespace) -> int:
    for table in given.tables:
        _print(undo(table, side_table=given.side_table))
    if given.promises:
        _print(undo_promises())
    return 0


def _migration(ask: Callable[[Ask], Rows], tables: list[str], *, side_table: bool) -> int:
    version = text(ask(Ask("SELECT VERSION() AS version"))[0]["version"])
    if not side_table and lacks_invisible_columns(version):
        raise ConfigurationError(
            f"MySQL {version} has no invisible columns (8.0.23 has): give --side-table"
        )
    for table in tables:
        key = tuple(converse(primary_key(table), ask))
        if not key:
            raise ConfigurationError(f"the table {table!r} does not exist, or has no primary key")
        _print(migration(table, key=key, side_table=side_table))
    return 0


def _check(ask: Callable[[Ask], Rows], tables: list[str]) -> int:
    found = 0
    for table in tables:
        without = converse(missing([table]), ask)
        having = converse(sided(without), ask)
        steps = triggers_missing(table, side_table=bool(having))
        lacking = [f"trigger {name}" for name in converse(steps, ask)]
        if without and not having:
            lacking.insert(0, "the column")
        found |= bool(lacking)
        sys.stdout.write(f"{table}: {'lacks ' + ', '.join(lacking) if lacking else 'ready'}\n")
    return LACKING if found else 0


def _check_promises(ask: Callable[[Ask], Rows]) -> int:
    lacking = converse(promises_missing(TABLE), ask)
    sys.stdout.write(f"{TABLE}: {'lacks a column, or is missing' if lacking else 'ready'}\n")
    return LACKING if lacking else 0


def _print(statements: tuple[str, ...]) -> None:
    for statement in statements:
        sys.stdout.write(f"{statement};\n")


if __name__ == "__main__":
    sys.exit(main())
