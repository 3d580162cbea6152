"""``fulfil``: keep a promise in the transaction of its data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, Promise, PromiseAbandoned
from antipode.shim import shims_of
from antipode_shims.mongodb._clients.pymongo import is_async, pymongo_module
from antipode_shims.mongodb._shim.base import BaseMongoShim

from .records import COLLECTION, recorded

if TYPE_CHECKING:
    from collections.abc import Mapping


def fulfil(database: Any, promise: Promise | str, *, session: Any) -> None:
    """Record in the transaction of *session* that *promise* is fulfilled: one round trip.

    With the commit the record becomes visible together with the transaction's data, at each
    member; an abort takes it along. A second fulfilment, of a message that was delivered again,
    changes nothing.

    Args:
        database: where the datastore's clients ask for promises, a PyMongo ``Database``.
        promise: the promise, or its ``token``.
        session: in a transaction.

    Raises:
        PromiseAbandoned: nobody waits for it any more. The server has aborted the transaction.
        ConfigurationError: no transaction is open, clients of the datastore ask elsewhere, or
            the client is asyncio's.
        pymongo.errors.PyMongoError: as PyMongo does: with the label ``TransientTransactionError``
            where another transaction writes the record now, which ``with_transaction`` repeats.
        LineageDecodeError: *promise* is a text and no token.
    """
    given = _checked(database, promise, session)
    if is_async(database.client):
        msg = "this is an asyncio client: use fulfil_async()"
        raise ConfigurationError(msg)
    records = database[COLLECTION]
    try:
        records.update_one(*recorded(given, fulfilled=True), upsert=True, session=session)
    except pymongo_module().errors.DuplicateKeyError as error:
        _judge(given, _of_primary(records).find_one({"_id": given.id}), error)


async def fulfil_async(database: Any, promise: Promise | str, *, session: Any) -> None:
    """The asyncio twin of :func:`fulfil`.

    Raises:
        PromiseAbandoned: as :func:`fulfil`.
        ConfigurationError: as :func:`fulfil`.
        pymongo.errors.PyMongoError: as :func:`fulfil`.
        LineageDecodeError: as :func:`fulfil`.
    """
    given = _checked(database, promise, session)
    if not is_async(database.client):
        msg = "this is a synchronous client: use fulfil()"
        raise ConfigurationError(msg)
    records = database[COLLECTION]
    try:
        await records.update_one(*recorded(given, fulfilled=True), upsert=True, session=session)
    except pymongo_module().errors.DuplicateKeyError as error:
        _judge(given, await _of_primary(records).find_one({"_id": given.id}), error)


def _checked(database: Any, promise: Promise | str, session: Any) -> Promise:
    given = Promise.parse(promise) if isinstance(promise, str) else promise
    if session is None or not session.in_transaction:
        msg = (
            "the session is in no transaction: the promise would be fulfilled without its data; "
            "write and fulfil it in session.start_transaction(), or in with_transaction()"
        )
        raise ConfigurationError(msg)
    _check_datastore(database, given)
    return given


def _check_datastore(database: Any, promise: Promise) -> None:
    """Refuse to record a promise where nobody asks for it.

    Raises:
        ConfigurationError: the client is another datastore's, or its clients ask elsewhere.
    """
    hooks = getattr(database.client, "_antipode", None)
    if hooks is not None and hooks.shim.datastore != promise.datastore:
        msg = (
            f"{promise} would be recorded on {hooks.shim.datastore!r}, where nobody asks for it: "
            f"fulfil it with a client of {promise.datastore!r}"
        )
        raise ConfigurationError(msg)
    shims = [one for one in shims_of(promise.datastore) if isinstance(one, BaseMongoShim)]
    places = sorted({one.promise_database for one in shims if one.promise_database})
    if places and places != [database.name]:
        msg = (
            f"clients of {promise.datastore!r} ask for promises in {' and '.join(places)}, not in "
            f"{database.name}: give all of them the same promise_database="
        )
        raise ConfigurationError(msg)


def _of_primary(records: Any) -> Any:
    from pymongo import ReadPreference

    return records.with_options(read_preference=ReadPreference.PRIMARY)


def _judge(promise: Promise, record: Mapping[str, Any] | None, error: Exception) -> None:
    """Say why the record could not be inserted.

    Raises:
        PromiseAbandoned: another one says so.
        pymongo.errors.DuplicateKeyError: the promise was fulfilled, meanwhile: try again.
    """
    if record is None or record.get("fulfilled") is True:
        raise error
    msg = f"{promise} was abandoned: nobody waits for its data any more; nothing was written"
    raise PromiseAbandoned(msg) from error
