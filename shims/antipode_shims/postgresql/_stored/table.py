"""A table whose rows have stored lineages: what a server says of it, and names in SQL. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What the name of a side table, of its function and of its triggers has after the table's.
SUFFIX = "_ap"
BOOLEAN, UUID = 16, 2950
INTEGERS: Final = frozenset({20, 21, 23})
#: The types of a key's columns, by their numbers: their text is the same whatever a session sets.
TYPES: Final[Mapping[int, str]] = {
    BOOLEAN: "boolean",
    20: "bigint",
    21: "smallint",
    23: "integer",
    25: "text",
    1043: "character varying",
    UUID: "uuid",
}


class Table(NamedTuple):
    """One table as a server describes it.

    Attributes:
        schema: its schema.
        name: its own name.
        oid: its number, which results name for their columns.
        columns: of its primary key, in their order.
        numbers: the numbers of these columns, which results name, too.
        types: the numbers of their types.
        refused: why it cannot keep lineages; empty where it can.
        lacks: what of the migration is not there, or may not be read by this user.
    """

    schema: str
    name: str
    oid: int = 0
    columns: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    types: tuple[int, ...] = ()
    refused: str = ""
    lacks: tuple[str, ...] = ()

    def beside(self, name: str) -> str:
        """Something else in its schema."""
        return f"{identifier(self.schema)}.{identifier(name)}"

    @property
    def full_name(self) -> str:
        """Its name in SQL."""
        return self.beside(self.name)

    @property
    def side_name(self) -> str:
        """The name in SQL of its side table, and of the function of its triggers."""
        return self.beside(self.name + SUFFIX)


def identifier(name: str) -> str:
    """A name in quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text; of names alone, which have no backslash that some setting would read otherwise."""
    return "'" + text.replace("'", "''") + "'"
