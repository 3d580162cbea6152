"""What a command becomes on its way to the server, where it is about a named collection.

Pure: bytes in, bytes out. What the application holds is never touched; its ids are made by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode_shims.mongodb._format.document import FIELD

from .bson import (
    ARRAY,
    DOCUMENT,
    NULL,
    REGEX,
    STRING,
    Element,
    appended,
    array,
    decoded,
    element,
    fields,
    join,
    split,
    take,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NAME = FIELD.encode("ascii")
_MARK = _NAME + b"\0"
_HEAD = bytes((DOCUMENT,)) + _MARK
_TRUTHLESS = {b"\0" * 8, b"\0" * 4, b"\0"}
_NUMBERS = {1, 8, 16, 18}
_ON = element(FIELD, 1)
_EMPTY = 5
#: Excludes nothing: a stage must name something.
_OFF = element(f"{FIELD}.none", 0)
_NOWHERE = element("", f"{FIELD}.none")
#: Stages that have pipelines of their own within.
_NESTING = {b"$facet", b"$lookup", b"$unionWith"}
_JOINS = frozenset({"$lookup", "$graphLookup", "$unionWith"})
#: Stages after which a document is the one that was stored, with its field.
_KEEPING = frozenset(
    """
    $addFields $fill $geoNear $graphLookup $limit $lookup $match $merge $out $redact $sample
    $search $set $setWindowFields $skip $sort $unionWith $unset $unwind $vectorSearch
    """.encode("ascii").split()
)
_STORING = {b"$out", b"$merge"}
#: Stages that can be made to keep the field.
_KEPT = {b"$project", b"$replaceRoot", b"$replaceWith", b"$unset"}
_JOINING = {b"$lookup", b"$graphLookup"}


def with_field(document: bytes, beside: Element) -> bytes:
    """*document* with the field set to *beside*."""
    plain = join(without_field(document)) if _MARK in document else document
    return appended(plain, beside)


def without_field(document: bytes) -> list[Element]:
    """The fields of *document* but the lineage's."""
    return [each for each in split(document) if each.name != _NAME]


def take_field(document: bytes) -> tuple[bytes, Element | None]:
    """*document* without the lineage's field, and that."""
    if _MARK not in document:
        return document, None
    if (found := take(document, _HEAD)) is not None:
        return found
    elements = split(document)
    taken = next((each for each in elements if each.name == _NAME), None)
    if taken is None:
        return document, None
    elements.remove(taken)
    return join(elements), taken


def is_operators(update: bytes) -> bool:
    """Whether an update changes parts of a document, rather than replacing it."""
    return update[4] != 0 and update[5:6] == b"$"


def with_operators(update: bytes, added: Mapping[str, Mapping[str, Any]]) -> bytes:
    """An update by operators that also does what *added* says."""
    left = {name.encode("ascii"): value for name, value in added.items()}
    elements: list[Element] = []
    for each in split(update):
        inner = each.value
        if each.kind == DOCUMENT:
            kept = [one for one in split(inner) if not _ours(one.name)] if _NAME in inner else None
            inner = inner if kept is None else join(kept)
            if (more := left.pop(each.name, None)) is not None:
                inner = join([*split(inner), *fields(more)])
            if kept == [] and len(inner) == _EMPTY:
                continue
        elements.append(Element(each.kind, each.name, inner))
    elements += [element(name.decode("ascii"), dict(value)) for name, value in left.items()]
    return join(elements)


def _ours(path: bytes) -> bool:
    return path == _NAME or path.startswith(_NAME + b".")


def with_stage(pipeline: bytes, stage: dict[str, Any]) -> bytes:
    """An update pipeline that keeps the field to its end, where *stage* changes it."""
    stages = [_keeping(each) for each in split(pipeline)]
    return array([*stages, element("", stage)])


def _keeping(stage: Element) -> Element:
    """A stage that keeps the field, where it can be made to."""
    parts = split(stage.value) if stage.kind == DOCUMENT else []
    if len(parts) != 1:
        return stage
    name, value = parts[0].name, parts[0]
    if name == b"$project" and value.kind == DOCUMENT:
        shown = with_projection(value.value)
        value = Element(DOCUMENT, name, join([_OFF]) if len(shown) == _EMPTY else shown)
    elif name == b"$unset" and _NAME in value.value:
        names = split(value.value) if value.kind == ARRAY else [value]
        others = [each for each in names if not _ours(_string(each))]
        value = Element(ARRAY, name, array(others or [_NOWHERE]))
    elif name == b"$replaceWith":
        value = _with_ours(value)
    elif name == b"$replaceRoot" and value.kind == DOCUMENT:
        roots = [_with_ours(each) for each in split(value.value)]
        value = Element(DOCUMENT, name, join(roots))
    return Element(DOCUMENT, stage.name, join([value]))


def _with_ours(root: Element) -> Element:
    ours = element("", {FIELD: f"${FIELD}"})
    merged = Element(ARRAY, b"$mergeObjects", array([root, ours]))
    return Element(DOCUMENT, root.name, join([merged]))


def asks_field(projection: bytes) -> bool:
    """Whether the application wants the field itself, or some of it."""
    return any(
        _ours(each.name) and not (each.kind in _NUMBERS and each.value in _TRUTHLESS)
        for each in split(projection)
    )


def with_projection(projection: bytes) -> bytes:
    """A projection that shows the field, too, and otherwise what it showed."""
    elements = [each for each in split(projection) if not _ours(each.name)]
    if asks_field(projection) or (elements and _includes(elements)):
        elements.append(_ON)
    return join(elements)


def _includes(elements: list[Element]) -> bool:
    """Whether only what a projection names is shown.

    Numbers decide it. Without any, ``$slice`` and ``$meta`` show all, other expressions do not.
    """
    others: list[Element] = []
    for each in elements:
        if each.kind in _NUMBERS:
            if each.value not in _TRUTHLESS:
                return True
            if each.name != b"_id":
                return False
        else:
            others.append(each)
    return any(not _shows_all(each) for each in others)


def _shows_all(each: Element) -> bool:
    inner = split(each.value) if each.kind == DOCUMENT else []
    if not inner:
        return False
    if inner[0].name.startswith(b"$"):
        return inner[0].name in (b"$slice", b"$meta")
    return not _includes(inner)


class Pipeline:
    """An aggregation of a named collection, or one that joins one.

    Attributes:
        stages: as they are sent.
        blind: whether results may not show what they depend on.
        target: the collection that ``$out`` or ``$merge`` writes, if any.
        streams: whether it is a change stream.
        joins: whether it reads a named collection besides its own.
    """

    def __init__(self, pipeline: bytes, named: Callable[[bytes], bool]) -> None:
        """Search *pipeline*; *named* reports collections of its database."""
        self._named = named
        self.blind = self.streams = self.joins = False
        self.target: bytes | None = None
        self.stages: list[Element] = []
        for each in split(pipeline):
            self._add(each, *_stage(each))

    def _add(self, stage: Element, name: bytes, inner: Element | None) -> None:
        if name == b"$changeStream":
            self.streams = True
        elif name in _STORING:
            self.target = _target(inner)
            self.blind = True
            if not self._named(self.target):
                self.stages.append(element("", {"$unset": FIELD}))
        elif not self.blind and name in _KEPT:
            stage = _keeping(stage)
        elif name not in _KEEPING:
            if not self.blind and (name == b"$facet" or b"$$ROOT" in stage.value):
                self.stages.append(element("", {"$unset": FIELD}))
            self.blind = True
        self.stages.append(stage)
        self._join(name, inner)
        if name in _NESTING and inner is not None and inner.kind == DOCUMENT:
            nested = _reads(decoded(inner.value), self._named)
            self.joins, self.blind = self.joins or nested, self.blind or nested

    def _join(self, name: bytes, inner: Element | None) -> None:
        """What is joined is an array within a document: its lineages are not searched for."""
        if inner is None or inner.kind != DOCUMENT:
            joined = name == b"$unionWith" and inner is not None and self._named(_string(inner))
            self.joins = self.joins or joined
            return
        given = {each.name: each for each in split(inner.value)}
        source = given.get(b"coll" if name == b"$unionWith" else b"from")
        if source is None or not self._named(_string(source)):
            return
        if name == b"$unionWith":
            self.joins = True
            self.blind = self.blind or b"pipeline" in given
        elif name in _JOINING and b"as" in given:
            self.joins = self.blind = True
            where = _string(given[b"as"]).decode("utf-8", "replace")
            self.stages.append(element("", {"$unset": f"{where}.{FIELD}"}))

    def encoded(self) -> bytes:
        """The pipeline as it is sent."""
        return array(self.stages)


def _reads(value: Any, named: Callable[[bytes], bool]) -> bool:
    """Whether stages anywhere within *value* read a named collection."""
    if isinstance(value, list):
        return any(_reads(each, named) for each in value)  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return False
    held: dict[str, Any] = value
    for stage in _JOINS & held.keys():
        inner = held[stage]
        source = inner.get("from", inner.get("coll")) if isinstance(inner, dict) else inner
        if isinstance(source, str) and named(source.encode("utf-8")):
            return True
    return any(_reads(each, named) for each in held.values())


def _stage(stage: Element) -> tuple[bytes, Element | None]:
    parts = split(stage.value) if stage.kind == DOCUMENT else []
    return (parts[0].name, parts[0]) if len(parts) == 1 else (b"", None)


def _string(value: Element) -> bytes:
    return value.value[4:-1] if value.kind == STRING else b""


def _target(inner: Element | None) -> bytes:
    """The collection that a last stage writes; of another database, its name with that."""
    if inner is None or inner.kind == STRING:
        return b"" if inner is None else _string(inner)
    given = {each.name: each for each in split(inner.value)}
    into = given.get(b"into", given.get(b"coll"))
    if into is not None and into.kind == DOCUMENT:
        given = {each.name: each for each in split(into.value)}
        into = given.get(b"coll")
    if into is None:
        return b""
    database = given.get(b"db")
    return _string(into) if database is None else _string(database) + b"." + _string(into)


def ids_of(query: bytes, *, most: int) -> list[Element] | None:
    """The values of ``_id`` that alone fit *query*; None where that cannot be known."""
    chosen = next((each for each in split(query) if each.name == b"_id"), None)
    if chosen is None or chosen.kind in (REGEX, NULL):
        return None
    if chosen.kind != DOCUMENT or not is_operators(chosen.value):
        return [chosen]
    operators = {each.name: each for each in split(chosen.value)}
    if (equal := operators.get(b"$eq")) is not None:
        return [equal]
    within = operators.get(b"$in")
    if within is None or within.kind != ARRAY:
        return None
    values = split(within.value)
    plain = all(each.kind not in (REGEX, NULL) for each in values)
    return values if plain and len(values) <= most else None
