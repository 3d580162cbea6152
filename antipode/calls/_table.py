"""The table of calls in an SQL database: a row a name, beside the rows that a call writes.

The version of its columns is a part of its name: a library that needs others finds no table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    Column,
    DateTime,
    Index,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    func,
)
from sqlalchemy.dialects import mysql

from ._conversation import TABLE
from ._names import MAX_NAME

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


def _name(length: int) -> Any:  # noqa: ANN401 - a type of SQLAlchemy's, with variants
    """A column of names: MySQL's usual collations take 'a' for 'A'."""
    exact = mysql.VARCHAR(length, charset="ascii", collation="ascii_bin")
    return String(length).with_variant(exact, "mysql", "mariadb")


def table(metadata: MetaData | None = None) -> Table:
    """The table of calls, for migrations: add it to your *metadata*, or run ``create_table()``."""
    text = Text().with_variant(mysql.MEDIUMTEXT(charset="ascii"), "mysql", "mariadb")
    return Table(
        TABLE,
        MetaData() if metadata is None else metadata,
        Column("caller", _name(MAX_NAME), primary_key=True),
        Column("name", _name(MAX_NAME), primary_key=True),
        Column("effect", _name(MAX_NAME), primary_key=True),
        Column("digest", _name(22), nullable=False),
        Column("state", _name(16), nullable=False),
        Column("status", SmallInteger),
        Column("body", text),
        Column("lineage", text),
        Column("began_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
        Index(f"{TABLE}_age", "began_at"),
    )


CALLS = table()


def create_table(bind: Engine | Connection) -> None:
    """Create the table of calls, where it is missing."""
    CALLS.create(bind, checkfirst=True)
