"""The SQL that Java's jar brings is what Python prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from antipode_shims.postgresql._position import history_ddl
from antipode_shims.postgresql._promises import promises_ddl
from antipode_shims.postgresql._stored.migration import migration
from antipode_shims.postgresql._stored.table import Table
from antipode_shims.postgresql._stored.triggers import key_of

RESOURCES = (
    Path(__file__)
    .parents[2]
    .joinpath("java/antipode-postgresql/src/main/resources/io/antipode/postgresql")
)


def rows() -> list[str]:
    """The migration of a table, with names in place of its own and of the keys of its rows."""
    statements = list(migration(Table("@schema@", "@table@", columns=("@key@",))))
    for row in ("NEW", "OLD"):
        key = key_of([f'{row}."@key@"::text'])
        statements = [each.replace(key, f"@{row.lower()}_key@") for each in statements]
    return statements


@pytest.mark.parametrize(
    ("name", "statements"),
    [("rows", rows()), ("promises", promises_ddl()), ("history", history_ddl())],
)
def test_the_jar_brings_what_python_prints(name: str, statements: list[str]) -> None:
    """Statement by statement, with an empty line between them."""
    text = "\n\n".join(f"{each};" for each in statements) + "\n"
    assert (RESOURCES / f"{name}.sql").read_text() == text
