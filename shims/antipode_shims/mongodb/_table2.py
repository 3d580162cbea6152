"""What writing and reading with the lineage stored with the value mean, without I/O."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from antipode import ConfigurationError, Lineage, Status, WriteId, current
from antipode.shim import (
    Floor,
    Observation,
    StaleRead,
    count,
    floor,
    mark_incomplete,
    record_read,
    record_write,
    tell_of_stored,
)

from ._clients.pymongo import in_doubt, known_set_name, pymongo_module
from ._endpoint.wait import SLICE_S
from ._format.document import FIELD, Match, added, birth_of, found, whole
from ._format.numbers import Numbers
from ._format.tombstones import Births, birth_mark, born_in, buried, bury, search
from ._position.reply import ASK, check_member, state_of_hello, state_of_reply
from ._position.timestamps import log_key, version_of
from ._promises.records import found_in
from ._promises.records import search as search_promises
from ._shim.base import BaseMongoShim

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import Promise

    from ._look import Conversation, Question
    from ._position.reply import Reply, ServerState

    #: A document, if any, what was deleted before it, and the last reply.
    Answer = tuple[Any, Lineage, Reply]

#: A read concern's time that the server has not heard of.
_UNHEARD = 72
#: Read concerns that go with ``afterClusterTime``; None is the server's default, ``local``.
_LEVELS = (None, "local", "majority")


@dataclass(frozen=True)
class Kept:
    """Promises that have a record, as some server showed.

    Attributes:
        statuses: what the records say.
        covering: what another server has to show before the records show there, too.
    """

    statuses: Mapping[Promise, Status]
    covering: frozenset[WriteId]

    def beside(self, shown: Observation) -> Observation:
        """*shown* with the promises, which are met where it shows what covers their records."""
        met = all(shown.statuses.get(each) is Status.VISIBLE for each in self.covering)
        return replace(shown, promises=self.statuses if met else {})


class MongoTable2(BaseMongoShim):
    """What the synchronous and the asyncio shim share."""

    def __init__(
        self,
        datastore: str,
        collection: Any,
        *,
        field: str,
        promise_database: str | None,
        **options: Any,
    ) -> None:
        """Store values in the field *field* of the documents of *collection*.

        Raises:
            ConfigurationError: its read concern cannot wait.
        """
        if (level := collection.read_concern.level) not in _LEVELS:
            msg = f"read concern {level!r} cannot wait for a position: use 'local' or 'majority'"
            raise ConfigurationError(msg)
        database = collection.database.name
        super().__init__(
            datastore,
            **options,
            read_concern=level,
            wait_in=(database, collection.name),
            promise_database=promise_database or database,
        )
        self._database = database
        self._collection = collection
        self.keyspace = collection.full_name
        self._name: str = collection.name
        self._field = field
        self._numbers = Numbers()
        self._births = Births()
        self._slots = itertools.count()

    def learned(self) -> bool:
        """Whether the client knows the replica set's name, which replies do not have.

        Raises:
            ConfigurationError: it found a mongos, or a server that is no member of a set.
        """
        self.set_name = known_set_name(self._collection.database.client)
        return bool(self.set_name)

    def learn(self, reply: Any) -> None:
        """Take the replica set's name from a reply to ``hello``.

        Raises:
            ConfigurationError: as :meth:`learned`.
        """
        self.set_name = check_member(_sound(reply))

    def _write(self, key: Any, value: Any, base: Lineage) -> Question:
        codec = self._collection.codec_options
        document = {"_id": key, self._field: value, FIELD: whole(value, base, codec)}
        return self._update({"q": {"_id": key}, "u": document, "upsert": True})

    def _change(self, key: Any, changes: Mapping[str, Any], base: Lineage) -> Question:
        """A partial update.

        Raises:
            ValueError: nothing is changed, or a name is no plain field name.
        """
        if not changes or not all(_plain(name) for name in changes):
            msg = f"changes need plain field names of the value, joined by dots: {list(changes)}"
            raise ValueError(msg)
        values = {f"{self._field}.{name}": {"$literal": each} for name, each in changes.items()}
        tell_of_stored()
        merged = added(base, self._numbers.of(base), birth_mark(self._name))
        stage = {"$set": {**values, FIELD: merged}}
        return self._update({"q": {"_id": key}, "u": [stage], "upsert": True})

    def _bury(self, key: Any, base: Lineage) -> Question:
        """The tombstone of a deletion, written first: a reader that finds nothing finds it."""
        tell_of_stored()
        merged = added(base, self._numbers.of(base))
        return self._acknowledged(bury(self._name, [key], next(self._slots), merged))

    def _remove(self, key: Any) -> Question:
        deletes = [{"q": {"_id": key}, "limit": 1}]
        return self._acknowledged({"delete": self._name, "deletes": deletes})

    def _update(self, update: dict[str, Any]) -> Question:
        return self._acknowledged({"update": self._name, "updates": [update]})

    def _acknowledged(self, command: dict[str, Any]) -> Question:
        concern = self._collection.write_concern.document
        if concern:
            command["writeConcern"] = concern
        return self._database, {**command, **ASK}

    def written(self, reply: Reply, base: Lineage) -> Lineage:
        """*base* with the write in it, which enters the scope as well.

        Raises:
            pymongo.errors.WriteError: the server refused the write.
            pymongo.errors.WriteConcernError: it is done at the primary, but its write concern
                was not met.
        """
        concern = self._collection.write_concern
        if not concern.acknowledged:
            mark_incomplete(self.datastore, "in_doubt")
            return base.marked((self.datastore, "in_doubt"))
        if errors := reply.get("writeErrors"):
            _refused(errors[0])
        unmet = reply.get("writeConcernError")
        write = self.minted(reply, majority=concern.document.get("w") == "majority" and not unmet)
        if write is not None:
            record_write(write)
        if unmet:
            _unmet(unmet)
        if write is None:
            return base.marked((self.datastore, "unsampled"))
        return base.append(write)

    def within(self, question: Question) -> dict[str, Any]:
        """The command of *question* as a transaction takes it: that has the write concern."""
        return {name: value for name, value in question[1].items() if name != "writeConcern"}

    def taken(self, reply: Reply) -> Reply:
        """The reply to a write of a transaction.

        Raises:
            pymongo.errors.WriteError: the server refused the write.
        """
        if errors := reply.get("writeErrors"):
            _refused(errors[0])
        return reply

    def committed(self, told: Reply, operation: Any, now: Any, base: Lineage) -> Lineage:
        """*base* with the write of a transaction in it, which enters the scope as well.

        A commit's reply is PyMongo's own. Its timestamp is the session's; its term is that of the
        primary that took the write, if it is the same after the commit.

        Args:
            told: the reply to a write of the transaction, which asked with ``ASK``.
            operation: the session's ``operation_time`` after the commit.
            now: the reply to ``hello`` after it, None where there was none.
            base: what the value depends on.
        """
        before, after = state_of_reply(told, self.set_name), None if now is None else _state(now)
        version = version_of(operation)
        key: str | None = None
        if self._collection.write_concern.document.get("w") == "majority":
            key = log_key(self.set_name, None)
        elif _same_primary(before, after):
            key = log_key(self.set_name, before.applied.term if before else None)
        if key is None:
            mark_incomplete(self.datastore, "unsampled")
            return base.marked((self.datastore, "unsampled"))
        write = WriteId(self.datastore, key, version, self.clock.hour())
        record_write(write)
        return base.append(write)

    def failed(self, error: BaseException) -> None:
        """Take in that a write ended without an acknowledgement."""
        if in_doubt(error):
            mark_incomplete(self.datastore, "in_doubt")

    def commit_failed(self, error: BaseException) -> None:
        """Take in that a commit ended without an acknowledgement."""
        labelled: Any = getattr(error, "has_error_label", None)
        # With this label the server vouches for it that nothing was committed.
        if labelled is None or not labelled("TransientTransactionError"):
            mark_incomplete(self.datastore, "in_doubt")

    def base(self, lineage: Lineage | None) -> Lineage:
        """What a write stores: *lineage*, default the current one."""
        return current() if lineage is None else lineage

    def floor(self, stale: StaleRead) -> Floor | None:
        """What the read that *stale* is of must see now."""
        return floor(self, stale=stale)

    def _find(self, find: dict[str, Any], after: Any = None) -> Question:
        concern = dict(self._collection.read_concern.document)
        if after is not None:
            concern["afterClusterTime"] = after
        command: dict[str, Any] = {**find, "singleBatch": True, **ASK}
        if concern:
            command["readConcern"] = concern
        return self._database, command

    def _read(self, key: Any, after: Any = None) -> Conversation[Answer]:
        """The document of *key*, and the lineages of deletions where these are part of it.

        Tombstones are asked for at the same time or later, on whatever server answers.
        """
        find = {"find": self._name, "filter": {"_id": key}, "limit": 1}
        reply = _sound((yield self._find(find, after)))
        (document,) = reply["cursor"]["firstBatch"] or [None]
        birth = None if document is None else birth_of(document.get(FIELD))
        if document is not None and birth is None:
            return document, Lineage(), reply
        known = None if birth is None else self._births.get(birth)
        if known is not None:
            return document, known, reply
        # A view's documents were inserted in its source, maybe with other ids.
        name = self._name if birth is None else born_in(birth)
        tombstones = search(name, [key] if name == self._name else None)
        reply = _sound((yield self._find(tombstones, reply.get("operationTime", after))))
        dead = buried(reply, self.datastore)
        if birth is not None and not dead.incomplete:
            self._births.learn([birth], dead)
        return document, dead, reply

    def _held(
        self, held: Floor, key: Any, answers: list[Answer], kept: list[Kept]
    ) -> Conversation[Observation]:
        """Read where and when *held* is met, and report what the server showed at the read.

        The read carries the wait: the server holds it back. Where it cannot, not having heard of
        the position yet, a poll shows whether waiting is of any use, and waits if it is. Promises
        are asked for first; the server that reads then has to show what covers their records.
        """
        if held.promises and not kept:
            found = yield from self._records(held)
            if any(found.statuses.get(each) is not Status.VISIBLE for each in held.promises):
                return Observation("", {}, promises=found.statuses)
            kept.append(found)
        covering = kept[0].covering if kept else frozenset[WriteId]()
        if not held.block_s(SLICE_S):
            shown = yield from self.observe(held.writes, majority=self.majority, wait_s=0.0)
            if any(shown.statuses.get(each) is not Status.VISIBLE for each in held.writes):
                return shown
        try:
            answer = yield from self._read(key, self.after({*held.writes, *covering}))
        except pymongo_module().errors.OperationFailure as error:
            if error.code != _UNHEARD:
                raise
            look = self.observe(held.writes, majority=self.majority, wait_s=SLICE_S)
            return _unread((yield from look))
        answers[:] = [answer]
        shown = yield from self.shown(answer[-1], {*held.writes, *covering})
        return kept[0].beside(shown) if kept else shown

    def _records(self, held: Floor) -> Conversation[Kept]:
        """The records of the promises of *held*, on whatever server answers."""
        where, promises = self.promised_in, held.promises
        database, command = search_promises(where, promises, majority=self.majority)
        reply = yield database, {**command, **ASK}
        found = found_in(reply, database, promises)
        lineage = Lineage() if isinstance(reply, Exception) else self.covering(reply)
        if lineage.incomplete:
            return Kept({}, frozenset())
        return Kept(found, frozenset(lineage))

    def seen(self, answer: Answer) -> tuple[Any, Lineage]:
        """The value and what is known of it: its stored lineage and a covering position."""
        document, dead, reply = answer
        value, stored = None, Lineage()
        if document is not None:
            value, beside = document.get(self._field), document.get(FIELD)
            codec = self._collection.codec_options
            stored, match = found(value, beside, self.datastore, codec)
            if match in (Match.ABSENT, Match.FOREIGN):
                count(match.value, self.datastore)
        lineage = stored.merge(dead, self.covering(reply))
        if self.on_read == "merge":
            record_read(lineage)
        return value, lineage


def late(error: Exception, writes: frozenset[WriteId]) -> Observation:
    """What a held read has shown that the server did not answer in its time."""
    causes = dict.fromkeys(writes, str(error))
    return Observation("", dict.fromkeys(writes, Status.NOT_YET), causes=causes)


def slice_s(timeout_s: float) -> float:
    """How long a server may hold one read back."""
    return min(timeout_s, SLICE_S)


def _unread(shown: Observation) -> Observation:
    """A poll without a read: what it proves about the past holds, what it showed must be read."""
    statuses = {
        write: Status.NOT_YET if status is Status.VISIBLE else status
        for write, status in shown.statuses.items()
    }
    return Observation(shown.server, statuses, causes=shown.causes)


def _same_primary(before: ServerState | None, after: ServerState | None) -> bool:
    """Whether one primary was there all the time: a term has one."""
    if before is None or after is None or not (before.primary and after.primary):
        return False
    return before.applied.term == after.applied.term


def _state(reply: Any) -> ServerState | None:
    return None if isinstance(reply, Exception) else state_of_hello(reply)


def _sound(reply: Any) -> Any:
    if isinstance(reply, Exception):
        raise reply
    return reply


def _plain(name: str) -> bool:
    return all(part and not part.startswith("$") for part in name.split("."))


def _refused(error: Any) -> NoReturn:
    """Raise what PyMongo raises for a refused write."""
    errors = pymongo_module().errors
    code = error.get("code")
    kind = errors.DuplicateKeyError if code in (11000, 11001, 12582) else errors.WriteError
    raise kind(error.get("errmsg"), code, error)


def _unmet(error: Any) -> NoReturn:
    """Raise what PyMongo raises for a write concern that was not met."""
    errors = pymongo_module().errors
    timed_out = error.get("errInfo", {}).get("wtimeout")
    kind = errors.WTimeoutError if timed_out else errors.WriteConcernError
    raise kind(error.get("errmsg"), error.get("code"), error)
