"""Table 2 over PyMongo: values with their stored lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, Lineage
from antipode.shim import StaleRead, recorded, register
from antipode_shims.mongodb._clients.pymongo import (
    ServerSettings,
    is_async,
    pymongo_module,
    refusals,
    slow_errors,
)
from antipode_shims.mongodb._format.document import FIELD
from antipode_shims.mongodb._instrument import plain_client
from antipode_shims.mongodb._look import HELLO, converse
from antipode_shims.mongodb._promises.fulfil import fulfil
from antipode_shims.mongodb._table2 import MongoTable2, late, slice_s

from .async_shim import MongoAsyncShim

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from antipode import Promise
    from antipode.shim import Floor, Observation, OnRead, ReadsFrom
    from antipode_shims.mongodb._look import Question
    from antipode_shims.mongodb._position.reply import Reply
    from antipode_shims.mongodb._table2 import Answer, Kept


class MongoShim(MongoTable2):
    """Table 2 of one collection, synchronous. Made by :func:`shim`."""

    def __init__(
        self, datastore: str, client: Any, collection: Any, *, owned: bool, **options: Any
    ) -> None:
        """Use *client*; an *owned* one is closed with the shim."""
        super().__init__(datastore, collection, **options)
        self._client = client
        self._owned = owned

    @recorded("write")
    def write(
        self,
        key: Any,
        value: Any,
        lineage: Lineage | None = None,
        *,
        fulfils: Promise | str | None = None,
    ) -> Lineage:
        """Set the document *key* to *value*, with its lineage, in one round trip.

        Whatever else was in the document goes.

        Args:
            key: its ``_id``.
            value: what BSON can hold.
            lineage: what the value depends on; default the current lineage.
            fulfils: a promise, or its ``token``, that is fulfilled in the same transaction; four
                round trips in place of one.

        Returns:
            The lineage with this write in it; it enters the current scope as well.

        Raises:
            pymongo.errors.PyMongoError: as PyMongo does; without an acknowledgement the scope
                becomes ``incomplete``. It is not retried; with *fulfils* as ``with_transaction``
                does, for two minutes at most, or ``pymongo.timeout()``.
            ConfigurationError: the server is a mongos, or no member of a replica set. With
                *fulfils* also as :func:`fulfil`.
            PromiseAbandoned: nobody waits for the promise any more; nothing is written.
        """
        base = self.base(lineage)
        return self._send(self._write(key, value, base), base, fulfils)

    def update(
        self,
        key: Any,
        changes: Mapping[str, Any],
        lineage: Lineage | None = None,
        *,
        fulfils: Promise | str | None = None,
    ) -> Lineage:
        """Set some fields of the value of *key*, and add the lineage to the stored one.

        Args:
            key: the ``_id``; a document is made where there is none.
            changes: the value's fields, by their names joined by dots.
            lineage: what the changes depend on; default the current lineage.
            fulfils: as of :meth:`write`.

        Raises:
            ValueError: a name is no plain field name.
            pymongo.errors.PyMongoError: as :meth:`write`.
            PromiseAbandoned: as :meth:`write`.
        """
        base = self.base(lineage)
        return self._send(self._change(key, changes, base), base, fulfils)

    @recorded("delete")
    def delete(
        self, key: Any, lineage: Lineage | None = None, *, fulfils: Promise | str | None = None
    ) -> Lineage:
        """Delete *key*; a tombstone keeps the lineage for who finds nothing. Two round trips.

        Raises:
            pymongo.errors.PyMongoError: as :meth:`write`.
            PromiseAbandoned: as :meth:`write`.
        """
        base = self.base(lineage)
        self._send(self._bury(key, base), base)
        return self._send(self._remove(key), base, fulfils)

    def _send(
        self, question: Question, base: Lineage, fulfils: Promise | str | None = None
    ) -> Lineage:
        self._prepare()
        if fulfils is not None:
            return self._keep(question, base, fulfils)
        database, command = question
        try:
            reply = self._client[database].command(command)
        except BaseException as error:
            self.failed(error)
            raise
        return self.written(reply, base)

    def _keep(self, question: Question, base: Lineage, promise: Promise | str) -> Lineage:
        """Write in a transaction that fulfils *promise*."""
        client = self._client
        written = False

        def write(session: Any) -> Reply:
            nonlocal written
            written = False
            fulfil(client[self.promised_in], promise, session=session)
            command = self.within(question)
            told = self.taken(client[question[0]].command(command, session=session))
            written = True
            return told

        with client.start_session() as session:
            try:
                told = session.with_transaction(write, write_concern=self._collection.write_concern)
            except BaseException as error:
                if written:  # It was the commit.
                    self.commit_failed(error)
                raise
            operation = session.operation_time
        try:
            now: Reply | None = client.admin.command(HELLO[1])
        except pymongo_module().errors.PyMongoError:
            now = None
        return self.committed(told, operation, now, base)

    def _prepare(self) -> None:
        """Know the replica set's name, which replies do not have."""
        if not (self.set_name or self.learned()):
            self.learn(self._ask(HELLO))

    @recorded("read")
    def read(self, key: Any) -> tuple[Any, Lineage]:
        """The value of *key*, None when there is none, and what it depends on.

        One round trip; two where there is no document. Under a floor, the server holds the read
        back until the floor is met.

        Returns:
            The value, and its stored lineage with a covering position; merged into
            the current scope unless ``on_read="ignore"``.

        Raises:
            UnmetError: a floor was not met.
            pymongo.errors.PyMongoError: as PyMongo does.
        """
        self._prepare()
        stale = StaleRead()
        answers: list[Answer] = []
        if (held := self.floor(stale)) is not None:
            held.hold(self._observing(held, key, answers, []))
        if not answers:  # Nothing holds it back, or it was not shown what it depends on.
            answers.append(converse(self._ask, self._read(key)))
        stale.answered()
        return self.seen(answers[0])

    def _observing(
        self, held: Floor, key: Any, answers: list[Answer], kept: list[Kept]
    ) -> Callable[[float], Observation]:
        def observe(timeout_s: float) -> Observation:
            try:
                with pymongo_module().timeout(slice_s(timeout_s)):
                    return converse(self._ask, self._held(held, key, answers, kept))
            except slow_errors() as error:
                return late(error, held.writes)

        return observe

    def _ask(self, question: Question) -> Reply | Exception:
        database, command = question
        try:
            reply: Reply = self._client[database].command(
                dict(command),
                read_preference=self._collection.read_preference,
                codec_options=self._collection.codec_options,
            )
        except slow_errors():
            raise
        except refusals() as error:
            return error
        return reply

    def close(self) -> None:
        """Unregister and release every connection of the shim's own. Idempotent."""
        super().close()
        if self._owned:
            self._client.close()


def shim(
    datastore: str,
    client: Any,
    *,
    database: str,
    collection: Any,
    field: str = "value",
    reads_from: ReadsFrom = "primary",
    on_read: OnRead = "merge",
    one_server: bool | None = None,
    promise_database: str | None = None,
) -> MongoShim:
    """Register Table 2's ``write``, ``read`` and ``wait`` for one collection.

    Args:
        datastore: the name that every service spells alike.
        client: a ``pymongo.MongoClient``, or the URL of a replica set or of one of its members.
        database: the database's name.
        collection: the collection's name, or a collection with options of its own.
        field: of the documents in which values are.
        reads_from: whether reads go to the primary or to a replica.
        on_read: ``merge`` adds what a read finds to the current scope; ``ignore`` does not.
        one_server: whether every read goes to one server, where ``at="now"`` can poll. None: so
            for the primary, and for a client with ``directConnection=True``.
        promise_database: where promises are recorded; None: in *database*.

    Raises:
        ConfigurationError: an asyncio client, a bad option, or PyMongo is missing.
    """
    owned = isinstance(client, str)
    used = plain_client(client, pymongo_module().MongoClient)
    if is_async(used):
        _refuse("shim", "shim_async", "an asyncio")
    made = MongoShim(
        datastore,
        used,
        _collection(used, database, collection, field),
        field=field,
        owned=owned,
        settings=ServerSettings.of(used),
        reads_from=reads_from,
        on_read=on_read,
        one_server=one_server,
        promise_database=promise_database,
    )
    register(made)
    return made


def shim_async(
    datastore: str,
    client: Any,
    *,
    database: str,
    collection: Any,
    field: str = "value",
    reads_from: ReadsFrom = "primary",
    on_read: OnRead = "merge",
    one_server: bool | None = None,
    promise_database: str | None = None,
) -> MongoAsyncShim:
    """The asyncio twin of :func:`shim`: ``write``, ``read`` and the like are coroutines.

    Close it with ``await aclose()``.

    Raises:
        ConfigurationError: as :func:`shim`.
    """
    owned = isinstance(client, str)
    used = plain_client(client, pymongo_module().AsyncMongoClient)
    if not is_async(used):
        _refuse("shim_async", "shim", "a synchronous")
    made = MongoAsyncShim(
        datastore,
        used,
        _collection(used, database, collection, field),
        field=field,
        owned=owned,
        settings=ServerSettings.of(used),
        reads_from=reads_from,
        on_read=on_read,
        one_server=one_server,
        promise_database=promise_database,
    )
    register(made)
    return made


def _collection(client: Any, database: str, collection: Any, field: str) -> Any:
    """The collection, with its options.

    Raises:
        ConfigurationError: *field* is no plain field name, or one that documents need.
    """
    if not field or "." in field or field.startswith("$") or field in ("_id", FIELD):
        msg = f"field must be a plain field name other than '_id' and {FIELD!r}, not {field!r}"
        raise ConfigurationError(msg)
    return client[database][collection] if isinstance(collection, str) else collection


def _refuse(called: str, other: str, what: str) -> None:
    msg = f"mongodb.{called}() got {what} client: use mongodb.{other}()"
    raise ConfigurationError(msg)
