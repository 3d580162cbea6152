"""The SQL that Java's jars bring is what Python prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from antipode_shims.mysql._promises import records
from antipode_shims.mysql._stored import migration as mysql
from antipode_shims.mysql._stored import triggers
from antipode_shims.postgresql._position import history_ddl
from antipode_shims.postgresql._promises import promises_ddl
from antipode_shims.postgresql._stored.migration import migration
from antipode_shims.postgresql._stored.table import Table
from antipode_shims.postgresql._stored.triggers import key_of

JAVA = Path(__file__).parents[2] / "java"


def rows() -> list[str]:
    """The migration of a table, with names in place of its own and of the keys of its rows."""
    statements = list(migration(Table("@schema@", "@table@", columns=("@key@",))))
    for row in ("NEW", "OLD"):
        key = key_of([f'{row}."@key@"::text'])
        statements = [each.replace(key, f"@{row.lower()}_key@") for each in statements]
    return statements


def mysql_rows() -> list[str]:
    """The same of MySQL, where the schema's name comes with the dot after it, or is left out."""
    key = triggers.key_of(["OLD.`@key@`"])
    return [
        each.replace("`@schema@`.", "@schema@").replace(key, "@old_key@")
        for each in mysql.migration("@schema@.@table@", key=["@key@"])
    ]


@pytest.mark.parametrize(
    ("store", "name", "statements"),
    [
        ("postgresql", "rows", rows()),
        ("postgresql", "promises", promises_ddl()),
        ("postgresql", "history", history_ddl()),
        ("mysql", "rows", mysql_rows()),
        ("mysql", "promises", records.promises_ddl()),
    ],
)
def test_the_jar_brings_what_python_prints(store: str, name: str, statements: list[str]) -> None:
    """Statement by statement, with an empty line between them."""
    found = JAVA / f"antipode-{store}/src/main/resources/io/antipode/{store}/{name}.sql"
    assert found.read_text() == "\n\n".join(f"{each};" for each in statements) + "\n"
