"""Shims of SQL databases, over SQLAlchemy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._open import OpenShim, Table2, options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import Promise


def open_sql(given: Mapping[str, Any], shims: Any, engine: Any, url: str, write: str) -> OpenShim:
    """A shim, whose tables are made at the primary.

    Args:
        given: the request.
        shims: the database's module.
        engine: of its server.
        url: the same for asyncio.
        write: a plain client's statement, which sets the value of a key.
    """
    made = shims.shim(given["datastore"], engine, **options(given))
    if given.get("reads_from", "primary") == "primary":
        with engine.begin() as connection:
            for statement in (*made.ddl(), *shims.promises_ddl()):
                once = statement.replace("CREATE TABLE `", "CREATE TABLE IF NOT EXISTS `")
                connection.exec_driver_sql(once)

    def roll_back(key: str, value: bytes, promise: Promise) -> None:
        with engine.connect() as connection, connection.begin() as transaction:
            shims.fulfil(connection, promise)
            connection.exec_driver_sql(write, (key.encode(), value))
            transaction.rollback()

    return Table2(
        made,
        lambda: shims.shim_async(given["datastore"], url, **options(given)),
        roll_back,
        engine.dispose,
    )
