"""MySQL and MariaDB: positions of their binary logs, stored lineages, instrumented clients.

Needs PyMySQL (``pip install "antipode-xcy[mysql]"``), imported when first used, and MySQL from 8.0
or MariaDB from 10.6 on, with GTIDs. See docs/guides/mysql.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._clients.django import instrument_django, uninstrument_django
from ._clients.process_wide import instrument, uninstrument
from ._clients.sqlalchemy import instrument_engine, uninstrument_engine
from ._events import lineage
from ._instrument import instrument_connection, uninstrument_connection
from ._promises.fulfil import fulfil, fulfil_async
from ._promises.records import promises_ddl
from ._shim.shim import MySQLAsyncShim, MySQLShim, shim, shim_async
from ._table2 import Layout, ddl

if TYPE_CHECKING:
    from ._stored.migration import migration
    from ._stored.sqlalchemy_orm import LineageMixin

__all__ = [
    "Layout",
    "LineageMixin",
    "MySQLAsyncShim",
    "MySQLShim",
    "ddl",
    "fulfil",
    "fulfil_async",
    "instrument",
    "instrument_connection",
    "instrument_django",
    "instrument_engine",
    "lineage",
    "migration",
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


def __getattr__(name: str) -> Any:
    """Import what stores lineages with rows when it is first used."""
    if name == "LineageMixin":
        from ._stored.sqlalchemy_orm import LineageMixin

        return LineageMixin
    if name == "migration":
        from ._stored.migration import migration

        return migration
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
