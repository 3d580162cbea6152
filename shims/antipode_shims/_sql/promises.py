"""What promises are in every SQL database: their records, and whose transaction fulfils them."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from antipode import ConfigurationError, Promise, PromiseAbandoned
from antipode.shim import shims_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from antipode import Status

ShimT = TypeVar("ShimT")

#: The table, where a connection finds it without a schema.
TABLE = "antipode_promises"
#: How many records whose time is over go at once, and at one of how many fulfilments.
SWEEP, SWEEP_EVERY = 32, 16

WRONG_API = "use fulfil() with synchronous handles, and fulfil_async() with asyncio's"
NO_TRANSACTION = (
    "no transaction is open, and autocommit is on: the promise would be fulfilled without "
    "its data; begin a transaction, write, and fulfil the promise within it"
)


@dataclass(frozen=True)
class Records:
    """What one search for promises showed.

    Attributes:
        statuses: of those that have a record.
        cause: for a person, why others may have none.
    """

    statuses: Mapping[Promise, Status] = field(default_factory=dict)
    cause: str = ""

    def causes(self, promises: Collection[Promise]) -> dict[Promise, str]:
        """The cause of each of *promises* that has no record."""
        without = (each for each in promises if each not in self.statuses)
        return dict.fromkeys(without, self.cause) if self.cause else {}


def no_table(datastore: str, table: str, migration: str) -> ConfigurationError:
    """The error of a fulfilment where there is no table; *migration* says how it is made."""
    return ConfigurationError(f"{datastore!r} has no table {table!r} for its promises; {migration}")


def denied(datastore: str, table: str, cause: str) -> ConfigurationError:
    """The error of a fulfilment by a user who may not write to the table."""
    return ConfigurationError(
        f"{datastore!r} lets this user not write to {table!r}: who fulfils promises needs "
        f"INSERT, SELECT, UPDATE and DELETE there ({cause})"
    )


def abandoned(promise: Promise) -> PromiseAbandoned:
    """The error of a fulfilment that came too late."""
    return PromiseAbandoned(
        f"{promise} was abandoned: nobody waits for its data any more; let the transaction "
        "roll back"
    )


def table_of(promise: Promise, kind: type[ShimT], own: Callable[[ShimT], str]) -> str:
    """Where the record of *promise* belongs, if the application does not say it.

    Args:
        promise: that is fulfilled.
        kind: of the shims that have a table.
        own: the table of one; empty where it is not known.

    Raises:
        ConfigurationError: its clients disagree.
    """
    shims = [one for one in shims_of(promise.datastore) if isinstance(one, kind)]
    found = sorted({table for one in shims if (table := own(one))})
    if len(found) > 1:
        msg = (
            f"clients of {promise.datastore!r} ask for promises in {' and '.join(found)}: give "
            "all of them the same promise_table='schema.table'"
        )
        raise ConfigurationError(msg)
    return found[0] if found else TABLE


def check_datastore(connection: Any, promise: Promise) -> None:
    """Refuse to fulfil *promise* elsewhere.

    Raises:
        ConfigurationError: the client's *connection* is instrumented as another datastore's.
    """
    tap = getattr(connection, "_antipode", None)
    if tap is not None and tap.shim.datastore != promise.datastore:
        msg = (
            f"{promise} would be recorded on {tap.shim.datastore!r}, where nobody asks for it: "
            f"fulfil it with a connection to {promise.datastore!r}"
        )
        raise ConfigurationError(msg)


def sweeper(promise: Promise, kind: type[ShimT]) -> ShimT | None:
    """Who deletes records whose time is over, at some fulfilments; None at the others.

    Never the application's transaction, which would hold locks for that.
    """
    if random.randrange(SWEEP_EVERY):  # noqa: S311 - spreads work
        return None
    shims = (one for one in shims_of(promise.datastore) if one.abandons)
    return next((one for one in shims if isinstance(one, kind)), None)


def sqlalchemy_connection(handle: Any, store: str, dialects: Collection[str]) -> Any:
    """The SQLAlchemy connection that is meant; None where *handle* is none of SQLAlchemy's.

    Raises:
        ConfigurationError: it is of another database than *store*, whose are *dialects*.
    """
    orm, core = sys.modules.get("sqlalchemy.orm"), sys.modules.get("sqlalchemy")
    if orm is not None and isinstance(handle, (orm.Session, orm.scoped_session)):
        handle = handle.connection()
    if core is None or not isinstance(handle, core.Connection):
        return None
    if handle.dialect.name not in dialects:
        msg = f"a connection to {handle.dialect.name} is none to {store}"
        raise ConfigurationError(msg)
    return handle


def driver_connection(handle: Any, vendor: str) -> Any:
    """The client's connection that is meant: of Django's *vendor*, of a cursor, or *handle*.

    Raises:
        ConfigurationError: it is SQLAlchemy's, of asyncio.
    """
    if getattr(handle, "vendor", "") == vendor:
        handle.ensure_connection()
        return handle.connection
    if hasattr(handle, "run_sync"):
        raise ConfigurationError(WRONG_API)
    if hasattr(handle, "fetchone") and hasattr(handle, "connection"):
        return handle.connection
    return handle


def client_error(error: BaseException) -> BaseException:
    """The client's error within SQLAlchemy's."""
    cause: BaseException | None = getattr(error, "orig", None)
    return error if cause is None else cause
