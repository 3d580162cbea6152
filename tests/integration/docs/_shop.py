"""A service that a newcomer has: ``_shop.py LINES WRITES READS``, with the lines of a page first.

It says its port. ``POST /orders`` writes a row at WRITES, and has the service of ``?told=`` read
it: that answers with what it found at READS.
"""

from __future__ import annotations

import sys

exec(sys.argv[1])  # noqa: S102 - the code that the page shows

import psycopg  # noqa: E402 - what a service imports, after the page's lines
import requests  # noqa: E402
from flask import Flask, request  # noqa: E402
from werkzeug.serving import make_server  # noqa: E402

WRITES, READS = sys.argv[2:]
app = Flask("shop")


@app.post("/orders")
def order() -> str:
    """Store an order, and tell who prints its bill."""
    with psycopg.connect(WRITES) as connection:
        row = connection.execute("INSERT INTO orders DEFAULT VALUES RETURNING id").fetchone()
    assert row is not None
    return requests.get(f"{request.args['told']}/bills/{row[0]}", timeout=30).text


@app.get("/bills/<int:number>")
def bill(number: int) -> str:
    """What there is of an order where this service reads."""
    with psycopg.connect(READS) as connection:
        row = connection.execute("SELECT id FROM orders WHERE id = %s", [number]).fetchone()
    return "stale" if row is None else "right"


server = make_server("127.0.0.1", 0, app, threaded=True)
sys.stdout.write(f"{server.server_port}\n")
sys.stdout.flush()
server.serve_forever()
