"""What transactions change of temporary tables, alone and with something else."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import PostgreSQLTopology

MADE = (
    "CREATE TABLE lasting (a int)",
    "CREATE SEQUENCE numbers",
    """CREATE FUNCTION kept(int) RETURNS int LANGUAGE sql AS
    'INSERT INTO lasting VALUES ($1) RETURNING a'""",
    """CREATE FUNCTION copied() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO lasting VALUES (NEW.a); RETURN NEW; END'""",
    "CREATE VIEW keeping AS SELECT kept(2) AS a",
    "GRANT ALL ON lasting, numbers, keeping TO {user}",
    "GRANT CREATE ON SCHEMA public TO {user}",
)
DROPPED = (
    "DROP SCHEMA IF EXISTS made",
    "DROP VIEW IF EXISTS keeping",
    "DROP FUNCTION IF EXISTS copied, copied_late, kept",
    "DROP TABLE IF EXISTS lasting, own",
    "DROP SEQUENCE IF EXISTS numbers",
)
OWN = "INSERT INTO own VALUES (1)"
#: What changes temporary tables, one transaction each.
TEMPORARY: tuple[tuple[str, ...], ...] = (
    (OWN,),
    ("UPDATE own SET a = 2", "SELECT count(*) FROM lasting", "DELETE FROM own WHERE a = 2"),
    (OWN, "SAVEPOINT s", OWN, "ROLLBACK TO SAVEPOINT s"),
    ("INSERT INTO own SELECT a FROM lasting", "TRUNCATE own", OWN),
    ("CREATE TEMP TABLE more (a serial PRIMARY KEY, b text)", "INSERT INTO more (b) VALUES ('b')"),
    ("CREATE TEMP TABLE brief ON COMMIT DROP AS SELECT 1 AS a", "INSERT INTO brief VALUES (2)"),
)
#: What changes something else besides, although its texts name temporary tables alone.
LASTING: tuple[tuple[str, ...], ...] = (
    (OWN, "INSERT INTO lasting VALUES (1)"),
    (OWN, "SELECT kept(1)"),
    (OWN, "SELECT a FROM keeping"),
    ("INSERT INTO own SELECT a FROM keeping",),
    ("INSERT INTO own VALUES (nextval('numbers'))",),
    (OWN, "SELECT lo_create(0)"),
    (OWN, "SELECT lo_from_bytea(0, 'a')"),
    (OWN, "TRUNCATE lasting"),
    ("INSERT INTO triggered VALUES (1)",),
    ("INSERT INTO defaulting DEFAULT VALUES",),
    ("INSERT INTO public.own VALUES (1)",),
)
#: What a session makes first, and what its rows change besides.
SESSION = (
    "CREATE TEMPORARY TABLE own (a int)",
    "CREATE TEMPORARY TABLE triggered (a int)",
    "CREATE TRIGGER t AFTER INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION copied()",
    "CREATE TEMPORARY TABLE defaulting (a int DEFAULT kept(3))",
)


@contextmanager
def changing(topology: PostgreSQLTopology) -> Iterator[PostgreSQLTopology]:
    """Servers with what a temporary table's rows may change besides."""
    for statement in (*DROPPED, *MADE):
        topology.execute(statement.format(user=topology.user))
    yield topology
    for statement in DROPPED:
        topology.execute(statement)
