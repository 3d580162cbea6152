"""MySQL and MariaDB: the table `antipode_kv`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy

from antipode_shims import mysql

from ._open import Client, OpenShim, options
from ._sql import open_sql

if TYPE_CHECKING:
    from collections.abc import Mapping

WRITE = "REPLACE INTO antipode_kv (k, v) VALUES (%s, %s)"


def open_shim(given: Mapping[str, Any]) -> OpenShim:
    """A shim, whose tables are made at the primary."""
    return open_sql(given, mysql, _engine(given), _url(given, "aiomysql"), WRITE)


def open_client(given: Mapping[str, Any]) -> OpenShim:
    """Statements that replace, delete and select a row, each in a transaction of its own."""
    engine = mysql.instrument_engine(_engine(given), datastore=given["datastore"], **options(given))

    def run(sql: str, *values: object) -> Any:
        with engine.begin() as connection:
            cursor = connection.exec_driver_sql(sql, values)
            return cursor.scalar() if cursor.returns_rows else None

    def close() -> None:
        mysql.uninstrument_engine(engine)
        engine.dispose()

    return Client(
        write=lambda key, value: run(WRITE, key, value),
        delete=lambda key: run("DELETE FROM antipode_kv WHERE k = %s", key),
        read=lambda key: run("SELECT v FROM antipode_kv WHERE k = %s", key),
        close=close,
    )


def _engine(given: Mapping[str, Any]) -> Any:
    """Connections; with a time after which a server is given up, each statement is its commit.

    So nobody knows what became of a write whose answer did not come in that time.
    """
    url = _url(given, "pymysql")
    if "timeout_s" in given:
        timeout = {"read_timeout": given["timeout_s"]}
        return sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT", connect_args=timeout)
    return sqlalchemy.create_engine(url, pool_size=8, pool_pre_ping=True)


def _url(given: Mapping[str, Any], driver: str) -> str:
    server = given["server"]
    place = f"{server['user']}:{server['password']}@{server['host']}:{server['port']}"
    return f"mysql+{driver}://{place}/{server['database']}"
