"""PyMySQL under the name MySQLdb, whose modules are then loaded a second time."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ._clients import Sql

PROGRAM = """
import asyncio
import sys
import pymysql

pymysql.install_as_MySQLdb()
import MySQLdb.converters  # Loads pymysql.err again, and puts it in the place of the first.

import aiomysql
import antipode
from antipode_shims import mysql

host, _, port = sys.argv[1].rpartition(":")
PLACE = {"host": host, "port": int(port), "user": "app", "password": "app", "autocommit": True}
PLACE |= {"db": "app", "client_flag": 1 << 23}
TWICE = "INSERT INTO notes VALUES (1, 'a')"

def sync(connection):
    mysql.instrument_connection(connection, datastore="notes")
    run(connection.cursor())

def run(cursor):
    cursor.execute(TWICE)
    try:
        cursor.execute(TWICE)
    except pymysql.IntegrityError:
        return
    raise AssertionError

def by_pymysql():
    sync(pymysql.connect(**PLACE))

def by_its_second_module():
    from MySQLdb.connections import Connection

    assert Connection is not sys.modules["pymysql.connections"].Connection
    sync(Connection(**PLACE))

async def by_aiomysql():
    connection = await aiomysql.connect(**PLACE)
    mysql.instrument_connection(connection, datastore="notes")
    async with connection.cursor() as cursor:
        await cursor.execute(TWICE)
        try:
            await cursor.execute(TWICE)
        except pymysql.IntegrityError:
            pass
        else:
            raise AssertionError
    connection.close()

def by_sqlalchemy():
    import sqlalchemy

    url = f"mysql+mysqldb://app:app@{host}:{port}/app"
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    mysql.instrument_engine(engine, datastore="notes")
    with engine.connect() as connection:
        connection.exec_driver_sql(TWICE)
        try:
            connection.exec_driver_sql(TWICE)
        except sqlalchemy.exc.IntegrityError:
            pass
        else:
            raise AssertionError

with antipode.scope() as scope:
    done = globals()[sys.argv[2]]()
    if done is not None:
        asyncio.run(done)
    (write,) = scope.lineage
    assert not write.covering
    assert not scope.lineage.incomplete, scope.lineage
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "client", ["by_pymysql", "by_its_second_module", "by_aiomysql", "by_sqlalchemy"]
)
def test_a_duplicate_key_leaves_no_doubt(sql: Sql, client: str) -> None:
    """The error is the server's answer: what was written before keeps its position, unmarked."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(sql.topology.primary), client],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.stdout == "done\n", found.stderr
