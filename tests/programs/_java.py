"""Java's programs of JDBC: the random steps of `io.antipode.programs`, on servers of this process.

They need the agent that ``make java`` builds; ``ANTIPODE_AGENT_JAVA`` names another one.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antipode_testing import MariaDBTopology, MySQLTopology, PostgreSQLTopology

from ._line import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ._line import Client

AGENT = Path(__file__).parents[2] / "java" / "antipode-agent" / "target" / "antipode-agent.jar"
LAG_MS = 50
#: What a superuser makes first: a foreign table of this very server, and a function that writes by
#: dblink what no rollback undoes.
AWAY = (
    "CREATE EXTENSION dblink",
    "CREATE EXTENSION postgres_fdw",
    "CREATE SCHEMA away AUTHORIZATION {user}",
    (
        "CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw"
        " OPTIONS (host '{host}', port '{port}', dbname '{database}')"
    ),
    "CREATE USER MAPPING FOR {user} SERVER here OPTIONS (user '{user}', password '{password}')",
    (
        "CREATE FOREIGN TABLE away.noted (id bigint, body text) SERVER here"
        " OPTIONS (schema_name 'public', table_name 'noted')"
    ),
    "GRANT ALL ON away.noted TO {user}",
    (
        "CREATE FUNCTION away.noting() RETURNS text LANGUAGE sql AS $$ SELECT dblink_exec("
        "'host={host} port={port} dbname={database} user={user} password={password}',"
        " 'INSERT INTO noted (body) VALUES (''n'')') $$"
    ),
)


def _make_away(topology: Any) -> None:
    known = topology.execute("SELECT name FROM pg_available_extensions")
    if not {"dblink", "postgres_fdw"} <= {row["name"] for row in known}:
        return
    for statement in AWAY:
        topology.execute(
            statement.format(
                user=topology.user,
                password=topology.password,
                database=topology.database,
                host=topology.primary.host,
                port=topology.primary.port,
            )
        )


_STORES: Mapping[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    # Else a reader's old snapshot keeps the standby from replaying what prunes its rows.
    "postgresql": (
        lambda: PostgreSQLTopology(config={"hot_standby_feedback": "on"}),
        _make_away,
    ),
    "mysql": (MySQLTopology, lambda _: None),
    "mariadb": (MariaDBTopology, lambda _: None),
}


def _program(store: str, options: str, pool: str, steps: int, seed: int) -> Line:
    """Play one pool of one driver."""
    make, prepare = _STORES[store]
    began_s = time.monotonic()
    with make() as topology:
        prepare(topology)
        topology.set_lag(LAG_MS)
        urls = [
            f"jdbc:{store}://{place.host}:{place.port}/{topology.database}"
            for place in (topology.primary, topology.replica)
        ]
        jar = os.environ.get("ANTIPODE_AGENT_JAVA") or str(AGENT)
        # By its stack a program knows an error of the driver's own: the compiler may leave it out.
        java = ["java", "-XX:TieredStopAtLevel=1", "-XX:-OmitStackTraceInFastThrow", "-cp", jar]
        arguments = [store, *urls, options, pool, str(steps), str(seed)]
        played = subprocess.run(
            [*java, "io.antipode.programs.RandomJdbc", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
    if played.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended: {played.returncode}\n{played.stderr}")
    found = json.loads(played.stdout.splitlines()[-1])
    return Line(
        found["steps"] if found["judged"] else 0,
        {"lost": found["lost"], "early": found["early"]},
        time.monotonic() - began_s,
        alarms=found["alarms"],
        seed=seed,
        notes=tuple(found["notes"]),
    )


CLIENTS: dict[str, Client] = {
    "postgresql": partial(_program, "postgresql", "tcpKeepAlive=true", "hikari"),
    "postgresql-manual": partial(_program, "postgresql", "tcpKeepAlive=true", "hikari-manual"),
    "postgresql-simple": partial(_program, "postgresql", "preferQueryMode=simple", "hikari"),
    "postgresql-autosave": partial(_program, "postgresql", "autosave=always", "hikari"),
    "mysql": partial(_program, "mysql", "trackSessionState=false", "hikari"),
    "mysql-tracked": partial(_program, "mysql", "trackSessionState=true", "hikari-manual"),
    "mysql-prepared": partial(_program, "mysql", "useServerPrepStmts=true", "hikari"),
    "mysql-cursors": partial(_program, "mysql", "useCursorFetch=true&defaultFetchSize=2", "hikari"),
    "mariadb": partial(_program, "mariadb", "tcpKeepAlive=true", "hikari"),
    "mariadb-manual": partial(_program, "mariadb", "tcpKeepAlive=true", "hikari-manual"),
    "mariadb-prepared": partial(_program, "mariadb", "useServerPrepStmts=true", "hikari"),
}
