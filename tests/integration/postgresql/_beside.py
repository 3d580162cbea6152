"""What the tests of lineages beside rows share: a migrated table, and causes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import antipode
from antipode import Lineage, WriteId
from antipode.telemetry import Metric, metrics
from antipode_shims.postgresql.__main__ import main
from tests.integration.postgresql._clients import DATASTORE

if TYPE_CHECKING:
    import pytest

    from tests.integration.postgresql._clients import Clients

BESIDE: dict[str, Any] = {"lineage": "beside", "tables": ["orders"]}
INSERT = "INSERT INTO orders VALUES (%s, %s)"
READ = "SELECT * FROM orders WHERE id = 1"
CAUSE = WriteId("elsewhere", "log", 7, written_hour=490_000)
OTHER = WriteId("elsewhere", "log2", 9, written_hour=490_000)


def moving(number: int) -> WriteId:
    """A position of one log."""
    return WriteId("elsewhere", "log", number, written_hour=490_000)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """The statements that the program prints."""
    capsys.readouterr()
    assert main(arguments) == 0, capsys.readouterr().err
    return [each for each in capsys.readouterr().out.split(";\n") if each.strip()]


def run_all(connection: Any, script: str) -> None:
    """Run several statements at once."""
    with contextlib.closing(connection.cursor()) as cursor:
        cursor.execute(script.encode())


def make_table(
    clients: Clients, capsys: pytest.CaptureFixture[str], columns: str, name: str = "orders"
) -> None:
    """Make a migrated table whose owner, and that of its lineages, is not the service's user."""
    topology = clients.topology
    for statement in (
        f"DROP TABLE IF EXISTS {name}, {name}_ap CASCADE",
        f"DROP FUNCTION IF EXISTS {name}_ap()",
        "DROP TABLE IF EXISTS antipode_tombstone",
        f"CREATE TABLE {name} ({columns})",
        f"GRANT ALL ON {name} TO {topology.user}",
    ):
        topology.execute(statement)
    for statement in printed_by(clients, capsys, "migration", name):
        topology.execute(statement)
    topology.execute(f"GRANT SELECT ON {name}_ap, antipode_tombstone TO {topology.user}")
    topology.wait_replicated()


def printed_by(clients: Clients, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """What the program prints for the primary of *clients*."""
    verb, *names = arguments
    script = printed(capsys, verb, "--url", clients.topology.url(), *names)
    return _statements(";\n".join(script))


def _statements(script: str) -> list[str]:
    """The statements of a script, whose functions have semicolons in them."""
    parts = script.split("$antipode$")
    ends = [part.replace(";\n", "\0") if at % 2 == 0 else part for at, part in enumerate(parts)]
    return "$antipode$".join(ends).split("\0")


def texts(connection: Any, key: object = 1, table: str = "orders") -> list[str]:
    """What lies beside a row."""
    sql = f"SELECT l FROM {table}_ap WHERE k = %s"  # noqa: S608 - a test's own name
    rows = connection.execute(sql, (str(key).encode(),)).fetchall()
    return rows[0][0].split(",") if rows else []


def grave(connection: Any, key: object = 1, table: str = "orders") -> list[str]:
    """What its deletion left."""
    sql = "SELECT l FROM antipode_tombstone WHERE t = %s AND k = %s"
    rows = connection.execute(sql, (table, str(key).encode())).fetchall()
    return rows[0][0].split(",") if rows else []


def write(connection: Any, statement: str = INSERT, values: Any = (1, "x"), *causes: Any) -> None:
    """Write what depends on *causes*, in a transaction unless there are none."""
    with antipode.scope(Lineage(causes or (CAUSE,))):
        connection.execute(statement, values)
        connection.commit()


def found(connection: Any, statement: Any = READ, values: Any = None, **options: Any) -> Lineage:
    """What a reader depends on afterwards; the position that covers the read is left out."""
    with antipode.scope() as scope:
        connection.execute(statement, values, **options).fetchall()
        connection.commit()
        seen = scope.lineage
    covering = [each for each in seen if each.datastore == DATASTORE]
    assert len(covering) == 1, seen
    assert covering[0].covering
    return Lineage([each for each in seen if each not in covering], incomplete=seen.incomplete)


def unread() -> int:
    """How many statements did not show their rows' lineages."""
    return metrics().get(Metric("unread_lineage", DATASTORE), 0)
