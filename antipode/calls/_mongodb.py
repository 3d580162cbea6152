"""Calls in MongoDB, with its transactions: PyMongo, of threads and of asyncio.

A name that another transaction has taken and not committed is a write conflict at once: nobody
waits on a document, so a duplicate asks again until its deadline. There is no savepoint: what a
declined call wrote is taken back by aborting, and name and reply are written in a transaction of
their own.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import CollectionInvalid, DuplicateKeyError, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import ReadPreference
from pymongo.write_concern import WriteConcern

from ._conversation import DONE, RUNNING, TABLE, Found, Key, Verdict
from ._errors import TransactionEnded
from ._replies import Reply

if TYPE_CHECKING:
    from pymongo.database import Database

_WRITE_CONFLICT = 112
_CONCERNS: dict[str, Any] = {
    "read_concern": ReadConcern("snapshot"),
    "write_concern": WriteConcern("majority"),
    "read_preference": ReadPreference.PRIMARY,
}
_TRANSIENT = ("TransientTransactionError", "UnknownTransactionCommitResult")


def _id(key: Key) -> dict[str, str]:
    """One document a key; the order of its members counts."""
    return {"caller": key.caller, "name": key.name, "effect": key.effect}


def _taken(key: Key) -> dict[str, Any]:
    return {
        "_id": _id(key),
        "digest": key.digest,
        "state": RUNNING,
        "began_at": datetime.now(timezone.utc),
    }


def _kept(reply: Reply) -> dict[str, Any]:
    return {
        "$set": {
            "state": DONE,
            "status": reply.status,
            "body": reply.body,
            "lineage": reply.lineage,
        }
    }


def _found(document: dict[str, Any] | None) -> Found:
    if document is None:  # It was swept, or rolled back, in between.
        raise _Gone
    if document["state"] != DONE:
        return Found(document["digest"], None)
    reply = Reply(document["status"], document["body"], document["lineage"])
    return Found(document["digest"], reply)


class _Gone(Exception):  # noqa: N818 - it ends nothing
    """Who had the name has it no more."""


class _Held:
    """A session while a function has it."""

    __slots__ = ("key", "session")

    def __init__(self, session: Any) -> None:  # noqa: ANN401 - of threads or of asyncio
        """Its transaction began."""
        self.session = session
        self.key: Key | None = None

    def give(self) -> Any:  # noqa: ANN401 - as above
        """The session, for a function that must not end its transaction."""
        return self.session

    def returned(self) -> None:
        """The function is over, however it ended."""

    def check(self) -> None:
        """The function did not fail.

        Raises:
            TransactionEnded: it committed or aborted its transaction.
        """
        if not self.session.in_transaction:
            msg = (
                "a function of calls.once ended its transaction: its name and its reply belong to "
                "it, and are committed after the function returns"
            )
            raise TransactionEnded(msg)


class _Mongo:
    """What the stores of threads and of asyncio share."""

    def __init__(self, database: Any) -> None:  # noqa: ANN401 - of threads or of asyncio
        self._database = database
        self._client = database.client
        #: Whether the collection is there: two transactions that make it do not see each other.
        self._made = False
        self._calls = database.get_collection(
            TABLE,
            read_concern=ReadConcern("majority"),
            read_preference=ReadPreference.PRIMARY,
        )

    def verdict(self, error: BaseException) -> Verdict:
        """See :class:`Store`."""
        if isinstance(error, _Gone | DuplicateKeyError) and not _is_the_functions(error):
            return Verdict.REPEAT
        if not isinstance(error, PyMongoError):
            return Verdict.RAISE
        if getattr(error, "code", None) == _WRITE_CONFLICT:
            return Verdict.CONFLICT
        return Verdict.REPEAT if any(map(error.has_error_label, _TRANSIENT)) else Verdict.RAISE


def _is_the_functions(error: BaseException) -> bool:
    """Whether a key that is there already is one of the application's."""
    return isinstance(error, DuplicateKeyError) and TABLE not in str(error)


class MongoStore(_Mongo):
    """Calls of threads."""

    def begin(self) -> _Held:
        """See :class:`Store`."""
        if not self._made:
            with suppress(CollectionInvalid):
                self._database.create_collection(TABLE)
            self._made = True
        session = self._client.start_session()
        session.start_transaction(**_CONCERNS)
        return _Held(session)

    def take(self, handle: _Held, key: Key, wait_s: float) -> Found | None:  # noqa: ARG002 - nothing waits there
        """See :class:`Store`."""
        handle.key = key
        try:
            self._calls.insert_one(_taken(key), session=handle.session)
        except DuplicateKeyError:
            return _found(self._calls.find_one({"_id": _id(key)}))
        return None

    def savepoint(self, handle: _Held) -> None:
        """See :class:`Store`."""

    def back(self, handle: _Held) -> None:
        """See :class:`Store`."""
        assert handle.key is not None  # noqa: S101 - it was taken
        handle.session.abort_transaction()
        handle.session.start_transaction(**_CONCERNS)
        self._calls.insert_one(_taken(handle.key), session=handle.session)

    def keep(self, handle: _Held, key: Key, reply: Reply) -> None:
        """See :class:`Store`."""
        self._calls.update_one({"_id": _id(key)}, _kept(reply), session=handle.session)

    def commit(self, handle: _Held) -> None:
        """See :class:`Store`."""
        with handle.session:
            handle.session.commit_transaction()

    def rollback(self, handle: _Held) -> None:
        """See :class:`Store`."""
        handle.session.end_session()


class AsyncMongoStore(_Mongo):
    """Calls of asyncio."""

    async def begin(self) -> _Held:
        """See :class:`Store`."""
        if not self._made:
            with suppress(CollectionInvalid):
                await self._database.create_collection(TABLE)
            self._made = True
        session = self._client.start_session()
        await session.start_transaction(**_CONCERNS)
        return _Held(session)

    async def take(self, handle: _Held, key: Key, wait_s: float) -> Found | None:  # noqa: ARG002 - as above
        """See :class:`Store`."""
        handle.key = key
        try:
            await self._calls.insert_one(_taken(key), session=handle.session)
        except DuplicateKeyError:
            return _found(await self._calls.find_one({"_id": _id(key)}))
        return None

    async def savepoint(self, handle: _Held) -> None:
        """See :class:`Store`."""

    async def back(self, handle: _Held) -> None:
        """See :class:`Store`."""
        assert handle.key is not None  # noqa: S101 - as above
        await handle.session.abort_transaction()
        await handle.session.start_transaction(**_CONCERNS)
        await self._calls.insert_one(_taken(handle.key), session=handle.session)

    async def keep(self, handle: _Held, key: Key, reply: Reply) -> None:
        """See :class:`Store`."""
        await self._calls.update_one({"_id": _id(key)}, _kept(reply), session=handle.session)

    async def commit(self, handle: _Held) -> None:
        """See :class:`Store`."""
        async with handle.session:
            await handle.session.commit_transaction()

    async def rollback(self, handle: _Held) -> None:
        """See :class:`Store`."""
        await handle.session.end_session()


def mongo_store(target: Database[Any] | AsyncDatabase[Any]) -> MongoStore | AsyncMongoStore:
    """The calls of a database, of threads or of asyncio."""
    return AsyncMongoStore(target) if isinstance(target, AsyncDatabase) else MongoStore(target)
