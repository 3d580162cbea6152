# ruff: noqa: E402 - what is imported first covers the rest
"""Writes invoices: Flask with psycopg."""

import antipode

antipode.setup()

import os

import psycopg
from flask import Flask, request

app = Flask("web")
INSERT = "INSERT INTO invoices (ordered) VALUES (%s) RETURNING id"


@app.post("/invoices")
def write_invoice() -> str:
    """Read the order, and write its invoice."""
    number = int(request.args["order"])
    with psycopg.connect(os.environ["STANDBY"]) as near:
        near.execute("SELECT 1 FROM orders WHERE id = %s", (number,)).fetchone()
    with psycopg.connect(os.environ["PRIMARY"]) as connection:
        connection.execute(INSERT, (number,)).fetchone()
    return "written"
