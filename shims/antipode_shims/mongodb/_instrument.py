"""``instrument_client``: existing code keeps its client and its calls."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from antipode import ConfigurationError
from antipode.shim import (
    adopt,
    disown,
    named_client,
    own_client,
    register,
    shims_of,
    stored_names,
    switchable,
)

from ._clients.hooks import AsyncHooks, SyncHooks
from ._clients.pymongo import ServerSettings, is_async, known_set_name, pymongo_module
from ._shim.base import BaseMongoShim

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from antipode.shim import Barriers, OnRead, ReadsFrom

ClientT = TypeVar("ClientT")


class InstrumentedShim(BaseMongoShim):
    """What an instrumented client registers."""


#: Clients that are instrumented because of their address: a call for one of them is new.
implied: weakref.WeakSet[Any] = weakref.WeakSet()


@switchable
def instrument_client(
    client: ClientT,
    *,
    datastore: str,
    reads_from: ReadsFrom = "primary",
    lineage: Literal["none", "beside"] = "none",
    on_read: OnRead = "merge",
    collections: Collection[str] = (),
    one_server: bool | None = None,
    promise_database: str | None = None,
    barriers: Barriers | None = None,
) -> ClientT:
    """Let the writes of *client* enter the current lineage, and its reads wait for floors.

    It works for databases, collections, cursors and sessions of the client whenever they were
    made. Covered writes (:data:`COVERED_WRITES`) cost no round trip: the position is in their
    reply. Those of a transaction enter at its commit. A read under a floor is preceded by a
    question on its own connection, until the server has shown the floor once. Commands that are
    in no table are taken for writes.

    Args:
        client: a ``MongoClient`` or ``AsyncMongoClient`` of PyMongo 4.9 or later.
        datastore: the name that every service spells alike.
        reads_from: where its reads go.
        lineage: ``none``, or ``beside``: store lineages in documents.
        on_read: ``merge`` adds what a read of the named collections finds, and a position that
            covers it, to the current scope; ``ignore`` does not.
        collections: names, also with that of the database (``app.posts``), for ``beside``.
        one_server: whether all its reads go to one server, where ``at="now"`` can poll; None: so
            for the primary, and for a client with ``directConnection=True``.
        promise_database: where promises are recorded; None: the database that its URL names.
        barriers: ``auto`` or ``explicit``, for this client; None: as configured.

    Returns:
        The same object. Instrumenting it again changes nothing.

    Raises:
        ConfigurationError: a client that has found a mongos or a server outside of a replica set
            (one that has not connected yet raises it at its first use), ``beside`` or
            *collections* alone, another datastore than before, or PyMongo is missing or older.
    """
    hooks = AsyncHooks if is_async(client) else SyncHooks
    names = stored_names(lineage, collections, datastore=datastore, option="collections")
    if _instrumented(client, datastore):
        return client
    known_set_name(client)
    plain: Any = client
    shim = InstrumentedShim(
        datastore,
        ServerSettings.of(client),
        reads_from=reads_from,
        on_read=on_read,
        read_concern=plain.read_concern.level,
        one_server=one_server,
        promise_database=_promised_in(plain, promise_database),
    )
    shim.wait_by(barriers)
    register(shim)
    named_client(client)
    return adopt(client, hooks.client, hooks(shim, client, names))


def _promised_in(client: Any, named: str | None) -> str:
    """The database of promises; empty where nobody says."""
    if named is not None:
        return named
    try:
        return str(client.get_default_database().name)
    except pymongo_module().errors.ConfigurationError:
        return ""


def _instrumented(client: Any, datastore: str) -> bool:
    """Whether *client* is instrumented for *datastore*; not for a shim that was unregistered.

    Raises:
        ConfigurationError: it is, for another one.
    """
    if client in implied:
        uninstrument_client(client)
    held = getattr(client, "_antipode", None)
    if held is not None and held.shim.datastore != datastore:
        msg = f"this client is instrumented as {held.shim.datastore!r} already"
        raise ConfigurationError(msg)
    if held is not None and held.shim not in shims_of(datastore):
        uninstrument_client(client)
        return False
    return held is not None


def uninstrument_client(client: Any) -> None:
    """Undo :func:`instrument_client`. A client that is not instrumented stays as it is."""
    hooks = getattr(client, "_antipode", None)
    if hooks is None:
        return
    implied.discard(client)
    disown(client, hooks.client)
    hooks.shim.close()


def plain_client(client: Any, make: Callable[[str], Any]) -> Any:
    """The client of a Table 2 shim, made of a URL by *make* or given: it needs no hooks."""
    if isinstance(client, str):
        return own_client(lambda: make(client))
    if client in implied:
        uninstrument_client(client)
    named_client(client)
    return client
