"""PostgreSQL with psycopg2: a pool of instrumented connections."""

import sys

from psycopg2.pool import ThreadedConnectionPool

import antipode
from antipode_shims import postgresql

factory = postgresql.connection_factory(datastore="native")
pool = ThreadedConnectionPool(1, 2, sys.argv[1], connection_factory=factory)
connection = pool.getconn()
with antipode.scope() as scope, connection.cursor() as cursor:
    cursor.execute("CREATE TABLE IF NOT EXISTS extras_native (id int PRIMARY KEY)")
    cursor.execute("INSERT INTO extras_native VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 1")
    connection.commit()
    antipode.barrier(timeout=5, at="read")
    cursor.execute("SELECT id FROM extras_native")
    assert cursor.fetchall() == [(1,)]
    assert scope.lineage
    assert not scope.lineage.incomplete
pool.putconn(connection)
pool.closeall()
