"""PostgreSQL: positions of its log by timelines, stored lineages, instrumented clients.

Needs psycopg 3 (``pip install "antipode-xcy[postgresql]"``), imported when first used, also where
the application has another client, and PostgreSQL 14 or later. See docs/guides/postgresql.md.
"""

from __future__ import annotations

from ._clients.django import instrument_django, uninstrument_django
from ._clients.fulfil import fulfil, fulfil_async
from ._clients.process_wide import instrument, uninstrument
from ._clients.sqlalchemy import instrument_engine, uninstrument_engine
from ._events import lineage
from ._instrument import connection_factory, instrument_connection, uninstrument_connection
from ._promises import promises_ddl
from ._shim.shim import PostgreSQLAsyncShim, PostgreSQLShim, shim, shim_async
from ._table2 import Layout, ddl

__all__ = [
    "Layout",
    "PostgreSQLAsyncShim",
    "PostgreSQLShim",
    "connection_factory",
    "ddl",
    "fulfil",
    "fulfil_async",
    "instrument",
    "instrument_connection",
    "instrument_django",
    "instrument_engine",
    "lineage",
    "promises_ddl",
    "shim",
    "shim_async",
    "uninstrument",
    "uninstrument_connection",
    "uninstrument_django",
    "uninstrument_engine",
]


def __dir__() -> list[str]:
    return __all__
