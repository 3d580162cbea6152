"""PostgreSQL: the table `antipode_kv`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy

from antipode_shims import postgresql

from ._sql import open_sql

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._open import OpenShim

WRITE = (
    "INSERT INTO antipode_kv (k, v) VALUES (%s, %s) ON CONFLICT (k) DO UPDATE SET v = excluded.v"
)


def open_shim(given: Mapping[str, Any]) -> OpenShim:
    """A shim, whose tables are made at the primary."""
    server = given["server"]
    place = f"{server['user']}:{server['password']}@{server['host']}:{server['port']}"
    url = f"postgresql+psycopg://{place}/{server['database']}"
    engine = sqlalchemy.create_engine(url, pool_size=8, pool_pre_ping=True)
    return open_sql(given, postgresql, engine, url.replace("psycopg:", "psycopg_async:"), WRITE)
