"""Java's programs: the random steps of `io.antipode.programs`, on servers of this process.

They need what ``make java`` builds: the classes, and the list of what these need. Those in Kotlin
need what ``tools/build_java.sh ci`` builds.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antipode_testing import (
    DynamoDBTopology,
    MariaDBTopology,
    MySQLTopology,
    PostgreSQLTopology,
    S3Topology,
)

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


def _jdbc(
    store: str, options: str, pools: str, steps: int, seed: int, *, kotlin: bool = False
) -> Line:
    """Play some pools, or mappers, of one driver: so many steps of each, on the same servers.

    With *kotlin* each call is made in a coroutine.
    """
    make, prepare = _STORES[store]
    began_s = time.monotonic()
    with make() as topology:
        prepare(topology)
        topology.set_lag(LAG_MS)
        urls = [
            f"jdbc:{store}://{place.host}:{place.port}/{topology.database}"
            for place in (topology.primary, topology.replica)
        ]
        main = "RandomCoroutinesKt" if kotlin else "RandomJdbc"
        arguments = [store, *urls, options, pools, str(steps), str(seed)]
        found = _played(main, arguments, pools.split(","), kotlin=kotlin)
    return _line(found, time.monotonic() - began_s, seed)


def _futures(make: Callable[..., Any], steps: int, seed: int) -> Line:
    """Play the asynchronous client of a store of AWS's, over two regions of an emulator."""
    began_s = time.monotonic()
    with make(lag_ms=LAG_MS) as topology:
        arguments = [topology.store, *topology.urls, str(steps), str(seed)]
        found = _played("RandomFutures", arguments, [topology.store])
    return _line(found, time.monotonic() - began_s, seed)


def _played(
    main: str, arguments: Sequence[str], clients: Sequence[str], *, kotlin: bool = False
) -> Sequence[Mapping[str, Any]]:
    """What a program prints: a line for each of its clients."""
    needed = BUILT / ("classpath-kotlin" if kotlin else "classpath")
    path = [str(BUILT / "classes"), needed.read_text(encoding="utf-8")]
    if kotlin:
        path.insert(0, str(BUILT / "test-classes"))
    # By its stack a program knows an error of the driver's own: the compiler may leave it out.
    java = ["java", "-XX:TieredStopAtLevel=1", "-XX:-OmitStackTraceInFastThrow"]
    played = subprocess.run(
        [*java, "-cp", os.pathsep.join(path), f"io.antipode.programs.{main}", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if played.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended: {played.returncode}\n{played.stderr}")
    found = [json.loads(each) for each in played.stdout.splitlines() if each.startswith("{")]
    if [each["client"] for each in found] != list(clients):
        raise RuntimeError(f"{' '.join(arguments)}: some lines are missing\n{played.stdout}")
    return found


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
    "postgresql": partial(_jdbc, "postgresql", "tcpKeepAlive=true", "hikari"),
    "postgresql-manual": partial(_jdbc, "postgresql", "tcpKeepAlive=true", "hikari-manual"),
    "postgresql-simple": partial(_jdbc, "postgresql", "preferQueryMode=simple", "hikari"),
    "postgresql-autosave": partial(_jdbc, "postgresql", "autosave=always", "hikari"),
    "postgresql-pools": partial(_jdbc, "postgresql", "tcpKeepAlive=true", POOLS),
    "postgresql-mappers": partial(_jdbc, "postgresql", "tcpKeepAlive=true", MAPPERS),
    "postgresql-coroutines": partial(
        _jdbc, "postgresql", "tcpKeepAlive=true", "hikari", kotlin=True
    ),
    "mysql": partial(_jdbc, "mysql", "trackSessionState=false", "hikari"),
    "mysql-tracked": partial(_jdbc, "mysql", "trackSessionState=true", "hikari-manual"),
    "mysql-prepared": partial(_jdbc, "mysql", "useServerPrepStmts=true", "hikari"),
    "mysql-cursors": partial(_jdbc, "mysql", "useCursorFetch=true&defaultFetchSize=2", "hikari"),
    "mysql-pools": partial(_jdbc, "mysql", "trackSessionState=true", POOLS),
    "mysql-mappers": partial(_jdbc, "mysql", "trackSessionState=true", MAPPERS),
    "mysql-coroutines": partial(_jdbc, "mysql", "trackSessionState=true", "hikari", kotlin=True),
    "mariadb": partial(_jdbc, "mariadb", "tcpKeepAlive=true", "hikari"),
    "mariadb-manual": partial(_jdbc, "mariadb", "tcpKeepAlive=true", "hikari-manual"),
    "mariadb-prepared": partial(_jdbc, "mariadb", "useServerPrepStmts=true", "hikari"),
    "mariadb-pools": partial(_jdbc, "mariadb", "tcpKeepAlive=true", POOLS),
    "mariadb-mappers": partial(_jdbc, "mariadb", "tcpKeepAlive=true", MAPPERS),
    "dynamodb-futures": partial(_futures, DynamoDBTopology),
    "s3-futures": partial(_futures, S3Topology),
}
