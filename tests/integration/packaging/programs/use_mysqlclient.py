"""MySQL with mysqlclient alone: an instrumented connection."""

import sys
from urllib.parse import urlsplit

import MySQLdb

import antipode
from antipode_shims import mysql

url = urlsplit(sys.argv[1])
plain = MySQLdb.connect(
    host=url.hostname,
    port=url.port,
    user=url.username,
    password=url.password or "",
    database=url.path.strip("/"),
    autocommit=True,
)
connection = mysql.instrument_connection(plain, datastore="native")
with antipode.scope() as scope:
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE IF NOT EXISTS extras_native (id INT PRIMARY KEY)")
    cursor.execute("REPLACE INTO extras_native VALUES (1)")
    antipode.barrier(timeout=5, at="read")
    cursor.execute("SELECT id FROM extras_native")
    assert [*cursor.fetchall()] == [(1,)]
    assert scope.lineage
    assert not scope.lineage.incomplete
connection.close()
