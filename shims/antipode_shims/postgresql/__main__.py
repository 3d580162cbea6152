"""``python -m antipode_shims.postgresql``: migrations, printed.

Of the table of promises, and of the function by which a plain user reads histories of timelines.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ._position import history_ddl, undo_history
from ._promises import promises_ddl, undo_promises

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "python -m antipode_shims.postgresql"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print; the exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if not (given.promises or given.history):
        parser.error("give --promises, or --history, or both")
    made = given.verb == "migration"
    statements: list[str] = []
    if given.promises:
        statements += promises_ddl() if made else undo_promises()
    if given.history:
        statements += history_ddl() if made else undo_history()
    for statement in statements:
        sys.stdout.write(f"{statement};\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="What promises, and plain users after a fail-over, need in a database. Nothing "
        "is ever changed: the statements are printed, for your migrations.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb, about in (
        ("migration", "print the statements"),
        ("undo", "print the statements that take it back"),
    ):
        one = verbs.add_parser(verb, help=about, description=about)
        one.add_argument("--promises", action="store_true", help="the table of promises")
        one.add_argument(
            "--history",
            action="store_true",
            help="the function antipode_history(); it has to be made by a superuser",
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
