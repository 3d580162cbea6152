"""A database in which an application's functions have names of the server's own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import PostgreSQLTopology

#: Functions of the application's that have names of the server's own, of its grammar, or that stand
#: for an attribute, in a schema that is dropped afterwards.
FUNCTIONS = (
    "DROP SCHEMA IF EXISTS named CASCADE",
    "CREATE SCHEMA named",
    "CREATE TABLE named.notes (id serial, body text)",
    """CREATE FUNCTION named.log(text) RETURNS text LANGUAGE sql AS
    $$ INSERT INTO named.notes (body) VALUES ($1) RETURNING body $$""",
    "CREATE FUNCTION named.key(text) RETURNS text LANGUAGE sql AS 'SELECT named.log($1)'",
    "CREATE FUNCTION named.date(text) RETURNS text LANGUAGE sql AS 'SELECT named.log($1)'",
    "CREATE FUNCTION named.bump(posts) RETURNS text LANGUAGE sql AS $$ SELECT named.log('b') $$",
    "GRANT ALL ON named.notes TO {user}",
    "GRANT ALL ON SEQUENCE named.notes_id_seq TO {user}",
    "GRANT USAGE, CREATE ON SCHEMA named TO {user}",
    "ALTER ROLE {user} SET search_path = named, public",
)
#: Relations and types that use one.
RELATIONS = (
    "CREATE FUNCTION named.limited() RETURNS int LANGUAGE sql STABLE AS 'SELECT 10'",
    "CREATE FUNCTION named.plus(int, int) RETURNS int LANGUAGE sql AS 'SELECT $1'",
    "CREATE AGGREGATE named.total(int) (SFUNC = named.plus, STYPE = int)",
    "CREATE VIEW named.post AS SELECT named.log('v') AS body",
    "CREATE VIEW named.summed AS SELECT named.total(id) FROM posts",
    "CREATE TABLE named.tenants (id int)",
    "CREATE POLICY p ON named.tenants USING (id < named.limited())",
    "CREATE VIEW named.tenancy AS SELECT id FROM named.tenants",
    "CREATE DOMAIN named.small AS int CHECK (VALUE < named.limited())",
    "CREATE TABLE named.sizes (size named.small)",
    "GRANT ALL ON ALL TABLES IN SCHEMA named TO {user}",
)
#: What may write, for all that the server says: by functions,
CALLING = (
    "SELECT log('x')",
    "SELECT log /* of ours */ ('x')",
    "SELECT key('x')",
    "SELECT date('x'::text)",
    "SELECT p.bump FROM posts p",
    'SELECT "p"."bump" FROM posts p',
    "SELECT (p).bump FROM posts p",
    "SELECT 1; SELECT log('x')",
    "BEGIN; SELECT log('x'); COMMIT",
    "SELECT nextval('notes_id_seq')",
)
#: and by what uses them.
USING = (
    "SELECT body FROM post",
    "SELECT 1; SELECT body FROM post",
    "SELECT * FROM summed",
    "SELECT * FROM tenants",
    "SELECT * FROM tenancy",
    "SELECT 1::small",
    "SELECT json_populate_record(NULL::sizes, '{}')",
)
#: What writes nothing, for all that the server says.
READING = (
    "SELECT int4range(1, 5)",
    "SELECT isempty(int4range(1, 5)), to_jsonb(1)",
    "WITH x(a) AS (SELECT 1) SELECT a FROM x",
    "SELECT a FROM unnest(ARRAY[1]) u(a)",
    "SELECT * FROM posts TABLESAMPLE bernoulli (10)",
    "SELECT max(id), count(*) FROM posts",
    "SELECT body FROM posts",
    "SELECT body AS log FROM posts",
)


@contextmanager
def having_functions(topology: PostgreSQLTopology) -> Iterator[PostgreSQLTopology]:
    """Servers with these functions, which the user's search path finds before the server's."""
    for statement in FUNCTIONS:
        topology.execute(statement.format(user=topology.user))
    yield topology
    topology.execute(f"ALTER ROLE {topology.user} RESET search_path")
    topology.execute("DROP SCHEMA named CASCADE")
