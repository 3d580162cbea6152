"""Lineages in the documents of named collections: one exchange with a server, without I/O."""

from __future__ import annotations

import itertools
import logging
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from antipode import Lineage, current, mark_incomplete
from antipode.shim import count, record_read, unread

from ._bson import ARRAY, DOCUMENT, Element, Message, array, decoded, join, split
from ._document import FIELD, Match, held_in, tombstone
from ._numbers import Numbers
from ._reply import ASK
from ._request import Names, Request, Rewriter, Written
from ._rewrite import take_field

if TYPE_CHECKING:
    from ._call import Rules
    from ._look import Conversation, Question
    from ._reply import Reply

logger = logging.getLogger("antipode")

#: Tombstones that a collection has for documents whose ids are not known. Several, so that
#: concurrent deletes do not wait for each other.
_SLOTS = 8
#: Of deletes whose ids were not known, and of all others.
_UNKNOWN, _KNOWN = "unknown", "known"
_MOST_CURSORS = 10_000
_MOST_CACHED = 1_000
_DUPLICATE = 11000
_BATCHES = (b"firstBatch", b"nextBatch")
_ASKED = {name.encode("ascii") for name in ASK}


class Beside:
    """What one client knows of the lineages in its collections. Thread-safe."""

    def __init__(self, rules: Rules, names: tuple[str, ...]) -> None:
        """Store lineages in the documents of the collections *names*."""
        self.rules = rules
        self.shim = rules.shim
        self.names = Names(names)
        self.numbers = Numbers()
        self._cursors: OrderedDict[int, Request] = OrderedDict()
        self._lineages: OrderedDict[bytes, Lineage] = OrderedDict()
        self._slots = itertools.count()
        self._lock = threading.Lock()

    def slot(self) -> int:
        """Which of several tombstones to add to."""
        return next(self._slots) % _SLOTS

    def opened(self, cursor: int, request: Request) -> None:
        """Remember what further batches of a cursor are like."""
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

    def lineage_in(self, taken: Element) -> Lineage:
        """The lineage in the field of one document."""
        key = bytes((taken.kind,)) + taken.value
        with self._lock:
            if (known := self._lineages.get(key)) is not None:
                return known
        value = decoded(join([taken]))[FIELD]
        lineage, _ = held_in(value, self.shim.datastore)
        if not lineage.incomplete:  # What cannot be read is counted each time.
            with self._lock:
                self._lineages[key] = lineage
                while len(self._lineages) > _MOST_CACHED:
                    self._lineages.popitem(last=False)
        return lineage


class Exchange:
    """What goes out on one connection, and what comes back, during one operation."""

    def __init__(self, beside: Beside) -> None:
        """Nothing was sent yet."""
        self._beside = beside
        self._shim = beside.shim
        self._request: Request | None = None

    @property
    def awaits(self) -> bool:
        """Whether the next reply is looked at."""
        request = self._request
        return request is not None and (request.reads or request.asked)

    def expect(self, database: str, collection: str, cursor: int) -> None:
        """Take what the server sends next, unasked, for a batch of *cursor*."""
        names = database.encode("utf-8"), collection.encode("utf-8")
        if self._beside.names.has(*names):
            self._request = Request(*names, asked=True, reads=True, least=0)
            self._go_on(self._request, cursor)

    def _go_on(self, request: Request, cursor: int) -> None:
        """Expect what the first batch of *cursor* was like."""
        request.cursor = cursor
        opened = self._beside.cursor(cursor)
        if opened is not None:
            request.keep, request.blind = opened.keep, opened.blind
            request.streams, request.majority = opened.streams, opened.majority

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
        self._request = request
        return changed

    def _rewritten(self, sent: Message) -> Request | None:
        written: list[Written] = []

        def what() -> Written:
            if not written:
                made = Written.of(current(), self._beside.numbers, self._shim.datastore)
                written.append(made)
            return written[0]

        request = Rewriter(sent, what, self._beside.names).request()
        if request is not None and sent.body[0].name == b"getMore":
            self._go_on(request, int.from_bytes(sent.body[0].value, "little", signed=True))
        return request

    def _bury(self, request: Request) -> Conversation[None]:
        """Leave tombstones first: who finds nothing finds them."""
        shim = self._shim
        written = Written.of(current(), self._beside.numbers, shim.datastore)
        stage = {"$set": {FIELD: written.expression(), "at": "$$NOW"}}
        kind = _UNKNOWN if request.deleted is None else _KNOWN
        graves = [*(request.deleted or ()), {"antipode": kind, "n": self._beside.slot()}]
        updates = [{"q": {"_id": each}, "u": [stage], "upsert": True} for each in graves]
        command = {
            "update": _graves(request),
            "updates": updates,
            "ordered": False,
            # Whoever has the deletion has what comes before it in the log.
            "writeConcern": {"w": 1},
        }
        database = request.database.decode("utf-8")
        for last in (False, True):
            reply = _sound((yield database, dict(command)))
            errors = reply.get("writeErrors")
            if not errors:
                return
            # Two upserts of one tombstone at the same time: one of them has to be repeated.
            if last or any(each.get("code") != _DUPLICATE for each in errors):
                raise _write_error(errors[0])

    def incoming(self, payload: bytes) -> Conversation[bytes]:
        """What the application gets to see of a reply; what it depends on enters the scope."""
        request = self._request
        if request is None:
            return payload
        try:
            shown = Shown(self._beside, request, payload)
        except Exception as error:  # noqa: BLE001 - the application gets its reply
            self._broken(error)
            return payload
        if not shown.sound or (request.streams and not shown.documents):
            return shown.payload
        lineage = shown.lineage
        if shown.missed and self._shim.on_read == "merge":
            lineage = lineage.merge((yield from self._dead(request)))
        if self._shim.on_read == "merge":
            record_read(lineage)
        return shown.payload

    def _dead(self, request: Request) -> Conversation[Lineage]:
        """What the tombstones say of documents that were not found."""
        reply = yield self._search(request)
        if isinstance(reply, Exception):
            logger.warning("tombstones of %r cannot be read", self._shim.datastore, exc_info=reply)
            count("unsampled_read", self._shim.datastore)
            return Lineage(incomplete=[(self._shim.datastore, "unsampled")])
        graves = reply["cursor"]["firstBatch"]
        return Lineage().merge(
            *(tombstone(each.get(FIELD), self._shim.datastore) for each in graves)
        )

    def _search(self, request: Request) -> Question:
        kinds = (_UNKNOWN,) if request.ids is not None else (_UNKNOWN, _KNOWN)
        slots = [{"antipode": kind, "n": number} for kind in kinds for number in range(_SLOTS)]
        graves = [*(request.ids or ()), *slots]
        return request.database.decode("utf-8"), {
            "find": _graves(request),
            "filter": {"_id": {"$in": graves}},
            "projection": {FIELD: 1},
            "batchSize": len(graves),
            "singleBatch": True,
        }

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
        missed: whether documents were looked for and not found.
    """

    def __init__(self, beside: Beside, request: Request, payload: bytes) -> None:
        """Take *payload* apart."""
        self._beside = beside
        self._request = request
        self._lineages: list[Lineage] = []
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

    def _judge(self, reply: Reply) -> None:
        request, shim = self._request, self._beside.shim
        shim.set_name = shim.set_name or self._beside.rules.found_set_name()
        self.missed = self.documents < request.least and not request.streams
        if self._cursor and not request.streams:
            self.missed = self.missed and not self.documents
        lineages = [shim.covering(reply, majority=request.majority), *self._lineages]
        self.lineage = Lineage().merge(*lineages)
        if request.blind:
            unread(shim.datastore, f"a count or an aggregate of {request.collection.decode()}")

    def _element(self, each: Element) -> Element:
        if each.name == b"value" and each.kind == DOCUMENT:
            return Element(DOCUMENT, each.name, self._document(each.value))
        if each.name != b"cursor" or each.kind != DOCUMENT:
            return each
        inner = [self._batch(one) for one in split(each.value)]
        self._remember(inner)
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
            self._lineages.append(self._beside.lineage_in(taken))
        elif not self._request.blind:
            count(Match.ABSENT.value, self._beside.shim.datastore)
        return document if self._request.keep else left

    def _remember(self, cursor: list[Element]) -> None:
        held = {each.name: each.value for each in cursor}
        self._cursor = int.from_bytes(held[b"id"], "little", signed=True)
        if b"firstBatch" in held and self._cursor:
            self._beside.opened(self._cursor, self._request)
        if self._request.cursor and not self._cursor:
            self._beside.closed(self._request.cursor)


def _graves(request: Request) -> str:
    return f"{request.collection.decode('utf-8')}.antipode"


def _sound(reply: Reply | Exception) -> Reply:
    if isinstance(reply, Exception):
        raise reply
    return reply


def _write_error(error: Any) -> Exception:
    from pymongo.errors import WriteError

    return WriteError(error.get("errmsg"), error.get("code"), error)
