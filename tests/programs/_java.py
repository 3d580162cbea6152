"""Java's programs of JDBC: the random steps of `io.antipode.programs`, on servers of this process.

They need what ``make java`` builds: the classes, and the list of what these need.
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
    from collections.abc import Callable, Mapping, Sequence

    from ._line import Client

BUILT = Path(__file__).parents[2] / "java" / "antipode-programs" / "target"
#: What a client has beside HikariCP, each on its own: pools and what decorates one, and mappers.
POOLS = "dbcp,tomcat,druid,c3p0,p6spy"
MAPPERS = "hibernate,jooq,mybatis"
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


def _program(store: str, options: str, pools: str, steps: int, seed: int) -> Line:
    """Play some pools, or mappers, of one driver: so many steps of each, on the same servers."""
    make, prepare = _STORES[store]
    began_s = time.monotonic()
    with make() as topology:
        prepare(topology)
        topology.set_lag(LAG_MS)
        urls = [
            f"jdbc:{store}://{place.host}:{place.port}/{topology.database}"
            for place in (topology.primary, topology.replica)
        ]
        path = (BUILT / "classpath").read_text(encoding="utf-8")
        # By its stack a program knows an error of the driver's own: the compiler may leave it out.
        java = ["java", "-XX:TieredStopAtLevel=1", "-XX:-OmitStackTraceInFastThrow"]
        arguments = [store, *urls, options, pools, str(steps), str(seed)]
        played = subprocess.run(
            [
                *(*java, "-cp", f"{BUILT / 'classes'}{os.pathsep}{path}"),
                *("io.antipode.programs.RandomJdbc", *arguments),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    if played.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended: {played.returncode}\n{played.stderr}")
    found = [json.loads(each) for each in played.stdout.splitlines() if each.startswith("{")]
    if [each["client"] for each in found] != pools.split(","):
        raise RuntimeError(f"{' '.join(arguments)}: some lines are missing\n{played.stdout}")
    return _line(found, time.monotonic() - began_s, seed)


def _line(found: Sequence[Mapping[str, Any]], seconds: float, seed: int) -> Line:
    """One line of all: no steps where one of them found nothing to judge."""
    notes = [note for each in found for note in each["notes"]]
    if len(found) > 1:
        parts = ("steps", "lost", "early", "alarms")
        notes += [
            f"{each['client']}: {', '.join(f'{each[p]} {p}' for p in parts)}" for each in found
        ]
    return Line(
        sum(each["steps"] for each in found) if all(each["judged"] for each in found) else 0,
        {fault: sum(each[fault] for each in found) for fault in ("lost", "early")},
        seconds,
        alarms=sum(each["alarms"] for each in found),
        seed=seed,
        notes=tuple(notes),
    )


CLIENTS: dict[str, Client] = {
    "postgresql": partial(_program, "postgresql", "tcpKeepAlive=true", "hikari"),
    "postgresql-manual": partial(_program, "postgresql", "tcpKeepAlive=true", "hikari-manual"),
    "postgresql-simple": partial(_program, "postgresql", "preferQueryMode=simple", "hikari"),
    "postgresql-autosave": partial(_program, "postgresql", "autosave=always", "hikari"),
    "postgresql-pools": partial(_program, "postgresql", "tcpKeepAlive=true", POOLS),
    "postgresql-mappers": partial(_program, "postgresql", "tcpKeepAlive=true", MAPPERS),
    "mysql": partial(_program, "mysql", "trackSessionState=false", "hikari"),
    "mysql-tracked": partial(_program, "mysql", "trackSessionState=true", "hikari-manual"),
    "mysql-prepared": partial(_program, "mysql", "useServerPrepStmts=true", "hikari"),
    "mysql-cursors": partial(_program, "mysql", "useCursorFetch=true&defaultFetchSize=2", "hikari"),
    "mysql-pools": partial(_program, "mysql", "trackSessionState=true", POOLS),
    "mysql-mappers": partial(_program, "mysql", "trackSessionState=true", MAPPERS),
    "mariadb": partial(_program, "mariadb", "tcpKeepAlive=true", "hikari"),
    "mariadb-manual": partial(_program, "mariadb", "tcpKeepAlive=true", "hikari-manual"),
    "mariadb-prepared": partial(_program, "mariadb", "useServerPrepStmts=true", "hikari"),
    "mariadb-pools": partial(_program, "mariadb", "tcpKeepAlive=true", POOLS),
    "mariadb-mappers": partial(_program, "mariadb", "tcpKeepAlive=true", MAPPERS),
}
