"""Commands about named collections: what each becomes, and what is expected of its reply."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from antipode.shim import lineage_not_stored
from antipode_shims.mongodb._clients.known import COMMITTED
from antipode_shims.mongodb._format.document import (
    FIELD,
    added,
    born,
    part,
    pushed,
    raised,
    whole_document,
)
from antipode_shims.mongodb._format.tombstones import birth_mark
from antipode_shims.mongodb._position.reply import ASK

from .bson import (
    ARRAY,
    DOCUMENT,
    STRING,
    Element,
    array,
    decoded,
    documents,
    element,
    fields,
    join,
    split,
)
from .compact import sampled, statement
from .rewrite import (
    Pipeline,
    asks_field,
    ids_of,
    is_operators,
    with_field,
    with_operators,
    with_projection,
    with_stage,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode import Lineage
    from antipode_shims.mongodb._format.numbers import Numbers

    from .bson import Message

#: How many documents of one statement are deleted or asked for by their ids.
MOST_IDS = 100


class Names:
    """The collections that have lineages in their documents."""

    def __init__(self, names: tuple[str, ...]) -> None:
        """Take names of collections, with or without that of their database."""
        self._names = frozenset(name.encode("utf-8") for name in names)

    def has(self, database: bytes, collection: bytes) -> bool:
        """Whether *collection* is one of them."""
        return collection in self._names or database + b"." + collection in self._names


@dataclass
class Written:
    """What one write stores of a lineage, however many documents it is about."""

    lineage: Lineage
    numbers: dict[str, dict[str, Any]] | None
    datastore: str

    @classmethod
    def of(cls, lineage: Lineage, numbers: Numbers, datastore: str) -> Written:
        """Store *lineage*, as numbers where they say all of it."""
        return cls(lineage, numbers.of(lineage), datastore)

    def beside(self) -> Element:
        """The field of a whole document."""
        return element(FIELD, whole_document(self.lineage, self.numbers))

    def operators(self, birth: str | None) -> dict[str, dict[str, Any]]:
        """What adds the lineage to whatever an update by operators finds.

        A document that it makes gets the mark *birth*.
        """
        made = {} if birth is None else {"$setOnInsert": born(birth)}
        if self.numbers:
            made["$max"] = raised(self.numbers)
        elif not self.lineage.empty:
            made["$push"] = pushed(part(self.lineage))
        return made

    def expression(self, birth: str | None = None) -> dict[str, Any]:
        """The same for a pipeline."""
        return added(self.lineage, self.numbers, birth)


@dataclass
class Request:
    """One command about a named collection.

    Attributes:
        database: where the collection is.
        collection: its name.
        keep: whether the application wants the field itself.
        blind: whether the reply may not show what it depends on.
        streams: whether it reports changes, rather than showing documents.
        asked: whether the reply has positions because this library asked.
        majority: whether it reads what a majority has.
        ids: of the documents it asks for, where that is known.
        least: as many documents as it has yet to show if none is missing.
        ends: whether its cursor ends when it has shown all; one that tails a collection does not.
        reads: whether the application learns from it what is stored.
        deleted: the ids of the documents that go; None where they are not known.
        deletes: whether any go.
        cursor: which cursor it goes on with; 0 for none.
        exhaust: whether the server may send further replies unasked.
        compacts: statements to be sent before it.
    """

    database: bytes
    collection: bytes
    keep: bool = False
    blind: bool = False
    streams: bool = False
    asked: bool = False
    majority: bool = False
    ids: list[Any] | None = None
    least: int = 1
    ends: bool = True
    reads: bool = False
    deleted: list[Any] | None = field(default_factory=list[Any])
    deletes: bool = False
    cursor: int = 0
    exhaust: bool = False
    compacts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


class Rewriter:
    """Takes one message to what is sent instead."""

    def __init__(self, message: Message, written: Callable[[], Written], names: Names) -> None:
        """Rewrite *message*; *written* says what its writes store."""
        self._message = message
        self._written = written
        self._names = names
        self._database = _text(message.get(b"$db"))

    def request(self) -> Request | None:
        """Rewrite; None where the message is about no named collection."""
        name, command = self._message.body[0].name, self._message.body[0]
        if name == b"bulkWrite":
            self._count_unstored()
            return None
        where = self._message.get(b"collection") if name == b"getMore" else command
        collection = _text(where)
        if name == b"aggregate":
            return self._aggregate(collection)
        if not self._names.has(self._database, collection):
            return None
        request = Request(self._database, collection, exhaust=self._message.exhaust)
        act = _ACTS.get(name.lower())
        if act is None or self._is_own(name):
            return None
        act(self, request)
        return request

    def _is_own(self, name: bytes) -> bool:
        """Whether it is of a Table 2 shim, which stores and finds lineages itself."""
        return name in _TABLE2 and self._message.get(_asked()[0].name) is not None

    def _count_unstored(self) -> None:
        for each in documents(self._message.sequences.get(b"nsInfo", b"")):
            database, _, collection = _text(split(each)[0]).partition(b".")
            if self._names.has(database, collection):
                lineage_not_stored(self._written().datastore, "bulkWrite")
                return

    def _each(self, name: bytes, change: Callable[[bytes], bytes]) -> None:
        """Change every document that lies in the command, or next to it."""
        sequences = self._message.sequences
        if name in sequences:
            sequences[name] = b"".join(map(change, documents(sequences[name])))
        elif (held := self._message.get(name)) is not None:
            made = [Element(each.kind, b"", change(each.value)) for each in split(held.value)]
            self._message.put(Element(ARRAY, name, array(made)))

    def insert(self, _request: Request) -> None:
        """New documents carry the lineage."""
        beside = self._written().beside()
        self._each(b"documents", lambda document: with_field(document, beside))

    def update(self, request: Request) -> None:
        """Replaced documents carry the lineage, others have it added."""

        def change(document: bytes) -> bytes:
            parts = split(document)
            return join(
                self._changed(each, parts, request) if each.name == b"u" else each for each in parts
            )

        self._each(b"updates", change)

    def _changed(self, update: Element, parts: list[Element], request: Request) -> Element:
        """The update of one statement, with the lineage."""
        written = self._written()
        upsert = any(each.name == b"upsert" and each.value != b"\0" for each in parts)
        birth = birth_mark(request.collection.decode("utf-8")) if upsert else None
        if update.kind == ARRAY:
            stage = {"$set": {FIELD: written.expression(birth)}}
            return Element(ARRAY, update.name, with_stage(update.value, stage))
        if not is_operators(update.value):
            return Element(DOCUMENT, update.name, with_field(update.value, written.beside()))
        # A transaction may hold what a statement outside of it would wait for.
        alone = self._message.get(b"autocommit") is None
        if alone and written.numbers and sampled() and (one := statement(parts)) is not None:
            request.compacts.append(one)
        changed = with_operators(update.value, written.operators(birth))
        return Element(DOCUMENT, update.name, changed)

    def delete(self, request: Request) -> None:
        """What goes leaves a tombstone."""
        request.deletes = True

        def look(statement: bytes) -> bytes:
            parts = {each.name: each for each in split(statement)}
            _deleting(request, parts.get(b"q"), collated=b"collation" in parts)
            return statement

        self._each(b"deletes", look)

    def drop(self, request: Request) -> None:
        """Everything goes."""
        request.deletes, request.deleted = True, None

    def find_and_modify(self, request: Request) -> None:
        """Change or delete one document, and show it."""
        message = self._message
        query, update = message.get(b"query"), message.get(b"update")
        self._reading(request)
        self._project(request, b"fields")
        collated = message.get(b"collation") is not None
        if query is not None and not collated:
            request.ids = _ids(query.value)
        if update is not None:
            message.put(self._changed(update, message.body, request))
        else:
            request.deletes = True
            _deleting(request, query, collated=collated)

    def find(self, request: Request) -> None:
        """Show documents with the field."""
        self._reading(request)
        self._project(request, b"projection")
        keys = self._message.get(b"returnKey")
        request.blind = keys is not None and keys.value != b"\0"
        tails = self._message.get(b"tailable")
        request.ends = tails is None or tails.value == b"\0"
        query = self._message.get(b"filter")
        if query is None or any(self._message.get(each) for each in (b"skip", b"collation")):
            return
        request.ids = _ids(query.value)
        if request.ids is not None and self._message.get(b"limit") is None:
            request.least = len(request.ids)

    def get_more(self, request: Request) -> None:
        """Show more of them."""
        self._reading(request)
        request.least = 0

    def count(self, request: Request) -> None:
        """Show something else than documents."""
        self._reading(request)
        request.blind = True
        request.least = 0

    def _aggregate(self, collection: bytes) -> Request | None:
        held, named = self._message.get(b"pipeline"), self._names.has(self._database, collection)
        if held is None or held.kind != ARRAY:
            return None
        pipeline = Pipeline(held.value, lambda name: self._names.has(self._database, name))
        if pipeline.target is not None and self._targets(pipeline.target):
            lineage_not_stored(self._written().datastore, "$out or $merge")
        if not named and not pipeline.joins:
            return None
        request = Request(self._database, collection, blind=pipeline.blind or not named)
        if pipeline.streams:
            request.streams = request.blind = True
        elif self._message.get(b"explain") is None:
            self._message.put(Element(ARRAY, b"pipeline", pipeline.encoded()))
        self._reading(request)
        return request

    def _targets(self, target: bytes) -> bool:
        database, _, collection = target.partition(b".")
        return self._names.has(self._database, target) or self._names.has(database, collection)

    def _project(self, request: Request, name: bytes) -> None:
        held = self._message.get(name)
        if held is not None and held.kind == DOCUMENT:
            request.keep = asks_field(held.value)
            self._message.put(Element(DOCUMENT, name, with_projection(held.value)))

    def _reading(self, request: Request) -> None:
        message = self._message
        request.reads = True
        concern = message.get(b"readConcern")
        if concern is not None:
            request.majority = decoded(concern.value).get("level") in COMMITTED
        asked = _asked()
        if message.get(asked[0].name) is None:
            request.asked = True
            message.body += asked


#: What is rewritten, ``aggregate`` besides.
_ACTS: dict[bytes, Callable[[Rewriter, Request], None]] = {
    b"count": Rewriter.count,
    b"delete": Rewriter.delete,
    b"distinct": Rewriter.count,
    b"drop": Rewriter.drop,
    b"find": Rewriter.find,
    b"findandmodify": Rewriter.find_and_modify,
    b"getmore": Rewriter.get_more,
    b"insert": Rewriter.insert,
    b"mapreduce": Rewriter.count,
    b"update": Rewriter.update,
}
#: Commands of Table 2, which ask for their position themselves; native ones of these do not.
_TABLE2 = frozenset({b"delete", b"find", b"update"})


def _deleting(request: Request, query: Element | None, *, collated: bool) -> None:
    """Note which documents a statement deletes."""
    ids = None if query is None or collated else _ids(query.value)
    if ids is None or request.deleted is None or len(request.deleted) + len(ids) > MOST_IDS:
        request.deleted = None
    else:
        request.deleted += ids


def _ids(query: bytes) -> list[Any] | None:
    chosen = ids_of(query, most=MOST_IDS)
    return None if chosen is None else [*decoded(array(chosen)).values()]


@lru_cache(maxsize=1)
def _asked() -> list[Element]:
    return fields(ASK)


def _text(value: Element | None) -> bytes:
    return value.value[4:-1] if value is not None and value.kind == STRING else b""
