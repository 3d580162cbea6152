"""Lineages in the documents of named collections: one exchange with a server, without I/O."""

from __future__ import annotations

import itertools
import logging
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from antipode import Lineage, current
from antipode.shim import (
    count,
    lineage_not_read,
    mark_incomplete,
    record_read,
    tell_of_stored,
)
from antipode_shims.mongodb._format.document import FIELD, Match, birth_of, held_in
from antipode_shims.mongodb._format.numbers import Numbers
from antipode_shims.mongodb._format.tombstones import Births, born_in, buried, bury, search
from antipode_shims.mongodb._position.reply import ASK

from .bson import ARRAY, DOCUMENT, Element, Message, array, decoded, join, split
from .compact import compact
from .request import Names, Request, Rewriter, Written
from .rewrite import take_field

if TYPE_CHECKING:
    from antipode_shims.mongodb._clients.call import Rules
    from antipode_shims.mongodb._look import Conversation
    from antipode_shims.mongodb._position.reply import Reply

logger = logging.getLogger("antipode")

_MOST_CURSORS = 10_000
_MOST_CACHED = 1_000
_DUPLICATE = 11000
_BATCHES = (b"firstBatch", b"nextBatch")
_ASKED = {name.encode("ascii") for name in ASK}


class StoredLineages:
    """What one client knows of the lineages in its collections. Thread-safe."""

    def __init__(self, rules: Rules, names: tuple[str, ...]) -> None:
        """Store lineages in the documents of the collections *names*."""
        self.rules = rules
        self.shim = rules.shim
        self.names = Names(names)
        self.numbers = Numbers()
        self.births = Births()
        self._cursors: OrderedDict[int, Request] = OrderedDict()
        self._lineages: OrderedDict[bytes, tuple[Lineage, str | None]] = OrderedDict()
        self._slots = itertools.count()
        self._lock = threading.Lock()

    def slot(self) -> int:
        """Which of several tombstones to add to."""
        return next(self._slots)

    def opened(self, cursor: int, request: Request) -> None:
        """Remember what the next batch of a cursor is like."""
        with self._lock:
            self._cursors.pop(cursor, None)
            self._cursors[cursor] = request
            while len(self._cursors) > _MOST_CURSORS:
                self._cursors.popitem(last=False)

    def cursor(self, cursor: int) -> Request | None:
        """What is known of a cursor."""
        with self._lock:
            return self._cursors.get(cursor)

    def closed(self, cursor: int) -> None:
        """Forget a cursor."""
        with self._lock:
            self._cursors.pop(cursor, None)

    def lineage_in(self, taken: Element) -> tuple[Lineage, str | None]:
        """The lineage in the field of one document, and its insertion mark."""
        key = bytes((taken.kind,)) + taken.value
        with self._lock:
            if (known := self._lineages.get(key)) is not None:
                return known
        value = decoded(join([taken]))[FIELD]
        lineage, birth = held_in(value, self.shim.datastore)[0], birth_of(value)
        if not lineage.incomplete:  # What cannot be read is counted each time.
            with self._lock:
                self._lineages[key] = lineage, birth
                while len(self._lineages) > _MOST_CACHED:
                    self._lineages.popitem(last=False)
        return lineage, birth


class Exchange:
    """What goes out on one connection, and what comes back, during one operation."""

    def __init__(self, stored: StoredLineages) -> None:
        """Nothing was sent yet."""
        self._stored = stored
        self._shim = stored.shim
        self._request: Request | None = None

    @property
    def awaits(self) -> bool:
        """Whether the next reply is observed."""
        request = self._request
        return request is not None and (request.reads or request.asked)

    def expect(self, database: str, collection: str, cursor: int) -> None:
        """Take what the server sends next, unasked, for a batch of *cursor*."""
        names = database.encode("utf-8"), collection.encode("utf-8")
        if self._stored.names.has(*names):
            self._request = Request(*names, asked=True, reads=True, least=0, exhaust=True)
            self._go_on(self._request, cursor)

    def _go_on(self, request: Request, cursor: int) -> None:
        """Expect what the batch of *cursor* before was like, and what it has yet to show."""
        request.cursor = cursor
        opened = self._stored.cursor(cursor)
        if opened is not None:
            request.keep, request.blind = opened.keep, opened.blind
            request.streams, request.majority = opened.streams, opened.majority
            request.ids, request.least, request.ends = opened.ids, opened.least, opened.ends

    def outgoing(self, message: bytes) -> Conversation[bytes]:
        """What is sent instead of *message*, after the tombstones of what it deletes.

        Raises:
            Exception: the server refused a tombstone; nothing was deleted then.
        """
        self._request = None
        try:
            sent = Message.of(message)
            request = None if sent is None else self._rewritten(sent)
            changed = message if sent is None or request is None else sent.encoded()
        except Exception as error:  # noqa: BLE001 - the application's command goes on
            self._broken(error)
            return message
        if request is not None and request.deletes:
            yield from self._bury(request)
        if request is not None and request.compacts:
            yield from self._compact(request)
        self._request = request
        return changed

    def _rewritten(self, sent: Message) -> Request | None:
        written: list[Written] = []

        def what() -> Written:
            if not written:
                # In a transaction of the session's the document is of the same.
                inside = sent.get(b"autocommit") is not None
                tell_of_stored(within=self._shim.datastore if inside else None)
                made = Written.of(current(), self._stored.numbers, self._shim.datastore)
                written.append(made)
            return written[0]

        request = Rewriter(sent, what, self._stored.names).request()
        if request is not None and sent.body[0].name == b"getMore":
            self._go_on(request, int.from_bytes(sent.body[0].value, "little", signed=True))
        return request

    def _bury(self, request: Request) -> Conversation[None]:
        """Leave tombstones first: who finds nothing finds them."""
        tell_of_stored(within=self._shim.datastore)
        written = Written.of(current(), self._stored.numbers, self._shim.datastore)
        collection = request.collection.decode("utf-8")
        command = bury(collection, request.deleted, self._stored.slot(), written.expression())
        # Whoever has the deletion has what comes before it in the log.
        command["writeConcern"] = {"w": 1}
        database = request.database.decode("utf-8")
        for last in (False, True):
            reply = _sound((yield database, dict(command)))
            errors = reply.get("writeErrors")
            if not errors:
                return
            # Two upserts of one tombstone at the same time: one of them has to be repeated.
            if last or any(each.get("code") != _DUPLICATE for each in errors):
                raise _write_error(errors[0])

    def _compact(self, request: Request) -> Conversation[None]:
        """Have what documents have too much of dropped; the update goes on in any case."""
        command = compact(request.collection.decode("utf-8"), request.compacts)
        reply = yield request.database.decode("utf-8"), command
        if isinstance(reply, Exception) or reply.get("writeErrors"):
            logger.debug("documents of %r are not compacted: %r", self._shim.datastore, reply)

    def incoming(self, payload: bytes) -> Conversation[bytes]:
        """What the application gets to see of a reply; what it depends on enters the scope."""
        request = self._request
        if request is None:
            return payload
        try:
            shown = Shown(self._stored, request, payload)
        except Exception as error:  # noqa: BLE001 - the application gets its reply
            self._broken(error)
            return payload
        if not shown.sound or (request.streams and not shown.documents):
            return shown.payload
        if self._shim.on_read == "merge":
            lineages = [shown.lineage]
            if shown.missed:
                lineages.append((yield from self._dead(request, request.collection.decode())))
            lineages.append((yield from self._before(request, shown)))
            record_read(Lineage().merge(*lineages))
        return shown.payload

    def _before(self, request: Request, shown: Shown) -> Conversation[Lineage]:
        """What was deleted before documents that updates made."""
        births, lineages = self._stored.births, list[Lineage]()
        known = {mark: births.get(mark) for mark in shown.births}
        unknown = {born_in(mark) for mark, lineage in known.items() if lineage is None}
        for collection in sorted(unknown):
            if shown.more and request.exhaust:  # Nothing can be asked before the last reply.
                found = self._unsampled(None)
            else:
                found = yield from self._dead(request, collection)
            lineages.append(found)
            if not found.incomplete:
                births.learn((one for one in known if born_in(one) == collection), found)
        return Lineage().merge(*lineages, *(each for each in known.values() if each is not None))

    def _dead(self, request: Request, collection: str) -> Conversation[Lineage]:
        """What the tombstones of *collection* say of documents that *request* asked for."""
        ids = request.ids if collection == request.collection.decode() else None
        reply = yield request.database.decode("utf-8"), search(collection, ids)
        if isinstance(reply, Exception):
            return self._unsampled(reply)
        return buried(reply, self._shim.datastore)

    def _unsampled(self, error: Exception | None) -> Lineage:
        """Say that tombstones could not be read."""
        datastore = self._shim.datastore
        logger.warning("tombstones of %r cannot be read", datastore, exc_info=error)
        count("unsampled_read", datastore)
        return Lineage(incomplete=[(datastore, "unsampled")])

    def _broken(self, error: Exception) -> None:
        """What cannot be understood may have been a read, or a write without its lineage."""
        datastore = self._shim.datastore
        mark_incomplete(datastore, "unsampled")
        logger.warning("an exchange with %r was not understood", datastore, exc_info=error)


class Shown:
    """What a reply shows of a named collection.

    Attributes:
        payload: the reply as the application gets it.
        sound: whether the command succeeded.
        documents: how many it shows.
        lineage: what it depends on.
        missed: whether documents were asked for and not found.
        births: the insertion marks of those that it shows.
    """

    def __init__(self, stored: StoredLineages, request: Request, payload: bytes) -> None:
        """Take *payload* apart."""
        self._stored = stored
        self._request = request
        self._lineages: list[Lineage] = []
        self.births: set[str] = set()
        self.documents = 0
        self._cursor = 0
        kept = [self._element(each) for each in split(payload)]
        told = [each for each in kept if each.name not in (b"cursor", b"value", b"values")]
        reply = decoded(join(told))
        if request.asked:
            kept = [each for each in kept if each.name not in _ASKED]
        self.payload = join(kept)
        self.sound = reply.get("ok") == 1
        if self.sound:
            self._judge(reply)

    @property
    def more(self) -> bool:
        """Whether its cursor has more to show."""
        return self._cursor != 0

    def _judge(self, reply: Reply) -> None:
        request, shim = self._request, self._stored.shim
        shim.set_name = shim.set_name or self._stored.rules.found_set_name()
        goes_on = self._cursor and request.ends
        self.missed = self.documents < request.least and not (goes_on or request.streams)
        if self._cursor:
            request.least = max(0, request.least - self.documents)
            self._stored.opened(self._cursor, request)
        elif request.cursor:
            self._stored.closed(request.cursor)
        lineages = [shim.covering(reply, majority=request.majority), *self._lineages]
        self.lineage = Lineage().merge(*lineages)
        if request.blind:
            lineage_not_read(
                shim.datastore, f"a count or an aggregate of {request.collection.decode()}"
            )

    def _element(self, each: Element) -> Element:
        if each.name == b"value" and each.kind == DOCUMENT:
            return Element(DOCUMENT, each.name, self._document(each.value))
        if each.name != b"cursor" or each.kind != DOCUMENT:
            return each
        inner = [self._batch(one) for one in split(each.value)]
        held = {one.name: one.value for one in inner}
        self._cursor = int.from_bytes(held[b"id"], "little", signed=True)
        return Element(DOCUMENT, each.name, join(inner))

    def _batch(self, each: Element) -> Element:
        if each.name not in _BATCHES or each.kind != ARRAY:
            return each
        batch = [Element(one.kind, b"", self._document(one.value)) for one in split(each.value)]
        return Element(ARRAY, each.name, array(batch))

    def _document(self, document: bytes) -> bytes:
        self.documents += 1
        if self._request.streams:
            return document
        left, taken = take_field(document)
        if taken is not None:
            lineage, birth = self._stored.lineage_in(taken)
            self._lineages.append(lineage)
            if birth is not None:
                self.births.add(birth)
        elif not self._request.blind:
            count(Match.ABSENT.value, self._stored.shim.datastore)
        return document if self._request.keep else left


def _sound(reply: Reply | Exception) -> Reply:
    if isinstance(reply, Exception):
        raise reply
    return reply


def _write_error(error: Any) -> Exception:
    from pymongo.errors import WriteError

    return WriteError(error.get("errmsg"), error.get("code"), error)
