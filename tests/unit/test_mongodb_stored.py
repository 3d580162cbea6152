"""The field beside a document: its algebra, and how commands and replies are changed as bytes."""

from __future__ import annotations

import asyncio
import datetime as dt
import re
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import bson
import pytest
from bson import Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from hypothesis import given
from hypothesis import strategies as st
from pymongo import message as messages

from antipode import Lineage, WriteId
from antipode.shim import Incomplete
from antipode_shims.mongodb._format.document import (
    FIELD,
    MOST_PARTS,
    Match,
    held_in,
    part,
    whole_document,
)
from antipode_shims.mongodb._format.numbers import MOST_LOGS, MOST_POSITIONS, Numbers, lineage_of
from antipode_shims.mongodb._stored import wire_old as _wire_old
from antipode_shims.mongodb._stored.bson import (
    Element,
    Message,
    array,
    decoded,
    element,
    join,
    split,
)
from antipode_shims.mongodb._stored.request import Names, Rewriter, Written
from antipode_shims.mongodb._stored.rewrite import (
    Pipeline,
    ids_of,
    take_field,
    with_field,
    with_operators,
    with_projection,
    with_stage,
)

from ._lineages import lineages, writes

if TYPE_CHECKING:
    from collections.abc import Callable

TYPES: dict[str, Any] = {
    "double": 1.5,
    "string": "text\0with zeros",
    "document": {"a": {"b": 1}},
    "array": [1, "x", {"y": []}],
    "binary": b"\0\1",
    "id": ObjectId(),
    "bool": True,
    "date": dt.datetime(2020, 1, 1),  # noqa: DTZ001
    "null": None,
    "regex": Regex("a.*b", "ix"),
    "code": Code("f()"),
    "scoped": Code("f()", {"x": 1}),
    "int": 7,
    "long": Int64(2**40),
    "timestamp": Timestamp(1, 2),
    "decimal": Decimal128(Decimal("1.5")),
    "min": MinKey(),
    "max": MaxKey(),
    "reference": DBRef("c", 1),
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("ab_.$", min_size=1), inner, max_size=4)
    ),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.text("abc_ap", min_size=1), VALUES, max_size=6)


@pytest.mark.parametrize("name", TYPES)
def test_every_type_is_split(name: str) -> None:
    """A value of each type ends where it ends."""
    document = bson.encode({"before": 1, name: TYPES[name], "after": "x"})
    elements = split(document)
    assert [each.name for each in elements] == [b"before", name.encode(), b"after"]
    assert join(elements) == document


def test_types_that_python_does_not_write() -> None:
    """Undefined values, symbols and pointers of old databases."""
    for kind, value in ((6, b""), (14, b"\2\0\0\0x\0"), (12, b"\2\0\0\0x\0" + bytes(12))):
        document = join([Element(kind, b"old", value), element("after", 1)])
        assert bson.decode(document)["after"] == 1
        assert join(split(document)) == document


def test_no_document() -> None:
    """What is none is refused rather than guessed."""
    with pytest.raises(ValueError, match="BSON"):
        split(b"\x0d\0\0\0\x63a\0\0\0\0\0\0")


@given(DOCUMENTS)
def test_split_and_join_change_nothing(document: dict[str, Any]) -> None:
    """Bit for bit."""
    encoded = bson.encode(document)
    assert join(split(encoded)) == encoded


@given(DOCUMENTS)
def test_field_is_added_and_taken(document: dict[str, Any]) -> None:
    """What lies beside a document does not change it; an older field goes."""
    document.pop(FIELD, None)
    encoded = bson.encode(document)
    beside = element(FIELD, {"w": "~|1"})
    with_it = with_field(encoded, beside)
    assert bson.decode(with_it) == {**document, FIELD: {"w": "~|1"}}
    assert with_field(with_it, element(FIELD, 2)) == with_field(encoded, element(FIELD, 2))
    assert take_field(with_it) == (encoded, beside)
    assert take_field(encoded) == (encoded, None)


def test_field_is_not_mistaken() -> None:
    """Bytes that look like the field within somebody's text or document are not taken for it."""
    inner = element(FIELD, {"w": "~|1"})
    bait = bytes((inner.kind,)) + inner.name + b"\0" + inner.value
    for tail in (bait[:-1].decode(), bait, {"x": 1, FIELD: {"w": "~|1"}}):
        encoded = bson.encode({"a": 1, "b": tail})
        assert take_field(encoded) == (encoded, None)
        beside = element(FIELD, {"w": "~|2"})
        assert take_field(with_field(encoded, beside)) == (encoded, beside)
        first = join([beside, *split(encoded)])
        assert take_field(first) == (encoded, beside)


@given(st.lists(writes, max_size=MOST_POSITIONS))
def test_numbers_say_all_or_nothing(entries: list[WriteId]) -> None:
    """What is kept as numbers comes back as it was; what they cannot say is not."""
    lineage = Lineage(entries)
    numbers = Numbers().of(lineage)
    if numbers is None:
        # Escaped, a byte of a name takes three at most; of all names together there is a bound.
        longest = sum(3 * len(f"{w.datastore}{w.key}".encode()) + 3 for w in lineage)
        unsayable = any(isinstance(w.version, str) or w.version >= 2**63 for w in lineage)
        assert unsayable or longest > 1_024
        return
    assert all(not set(name) & {".", "$", "\0"} for name in numbers)
    stored = bson.decode(bson.encode(numbers))
    assert lineage_of(stored) == lineage


@given(lineages())
def test_what_is_no_position_is_no_number(lineage: Lineage) -> None:
    """Marks, promises, branches and unknown items are kept as texts, or not at all."""
    lineage = lineage.received(hour=1_000, latest_s=1_000)  # A reader believes nothing later.
    numbers = Numbers().of(lineage)
    if numbers is not None:
        assert Lineage(lineage) == lineage
    stored = bson.decode(bson.encode(whole_document(lineage, numbers)))
    found, match = held_in(stored, "posts")
    assert match is Match.OWN
    assert found == lineage or any(mark.reason == "size" for mark in found.incomplete)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), max_size=12))
def test_servers_maximum_is_merge(entries: list[tuple[int, int, bool]]) -> None:
    """``$max`` over the documents of one log keeps what merging the lineages keeps."""
    each = [
        Lineage([WriteId("posts", "rs0.1", version, hour, covering=covering)])
        for version, hour, covering in entries
    ]
    numbers, held = Numbers(), dict[str, Any]()
    for lineage in each:
        for log, number in (numbers.of(lineage) or {}).items():
            # BSON compares documents field by field.
            held[log] = max(held.get(log, number), number, key=lambda n: (n["v"], n["h"]))
    merged = Lineage().merge(*each)
    found = lineage_of(held)
    assert found is not None
    assert {(w.version, w.covering) for w in found} == {(w.version, w.covering) for w in merged}


def test_numbers_are_bounded() -> None:
    """One client has so many logs as numbers; those it has go on."""
    numbers = Numbers()
    for number in range(MOST_LOGS):
        assert numbers.of(Lineage([WriteId("d", f"log{number}", 1)]))
    assert numbers.of(Lineage([WriteId("d", "one-more", 1)])) is None
    assert numbers.of(Lineage([WriteId("d", "log0", 2)]))
    long = Lineage(WriteId("d", f"log{number}", 1) for number in range(MOST_POSITIONS + 1))
    assert numbers.of(long) is None


@pytest.mark.parametrize(
    "beside", [7, {}, {"x": 1}, {"l": 5}, {"l": {"a/b": 1}}, {"l": {"a": {}}}, {"p": 1}, {"w": 2}]
)
def test_what_cannot_be_read_is_marked(beside: Any) -> None:
    """It is never taken for nothing."""
    assert Incomplete("posts", "unreadable") in held_in(beside, "posts")[0].incomplete


def test_full_list_of_parts_is_marked() -> None:
    """One text more than counts says that older ones went."""
    texts = [part(Lineage([WriteId("d", "k", f"v{n}")])) for n in range(MOST_PARTS + 1)]
    assert not held_in({"p": texts[1:]}, "posts")[0].incomplete
    found = held_in({"p": texts}, "posts")[0]
    assert found.incomplete == {Incomplete("", "size")}
    assert len(found) == MOST_PARTS + 1


def changed(change: Callable[..., bytes], document: Any, *arguments: Any) -> Any:
    """What *change* makes of a document."""
    return bson.decode(change(bson.encode(document), *arguments))


@pytest.mark.parametrize(
    ("update", "becomes"),
    [
        ({"$set": {"a": 1}}, {"$set": {"a": 1}, "$max": {"_ap.l.x": 1}}),
        ({"$max": {"a": 1}, "$inc": {"b": 1}}, {"$max": {"a": 1, "_ap.l.x": 1}, "$inc": {"b": 1}}),
        ({"$set": {"_ap": 1, "a": 1}}, {"$set": {"a": 1}, "$max": {"_ap.l.x": 1}}),
        ({"$set": {"_ap.w": 1}}, {"$max": {"_ap.l.x": 1}}),
        ({"$set": {"_apple": 1}}, {"$set": {"_apple": 1}, "$max": {"_ap.l.x": 1}}),
    ],
)
def test_operators(update: Any, becomes: Any) -> None:
    """The lineage joins what an update does, and nothing else touches the field."""
    assert changed(with_operators, update, {"$max": {"_ap.l.x": 1}}) == becomes


def test_update_pipelines_keep_the_field() -> None:
    """Stages that would drop it carry it along."""
    stages = [{"$project": {"a": 1}}, {"$replaceWith": "$a"}, {"$replaceRoot": {"newRoot": "$a"}}]
    pipeline = array(split(bson.encode({str(n): s for n, s in enumerate(stages)})))
    found = [*bson.decode(with_stage(pipeline, {"$set": {"_ap": 1}})).values()]
    merged = {"$mergeObjects": ["$a", {"_ap": "$_ap"}]}
    assert found == [
        {"$project": {"a": 1, "_ap": 1}},
        {"$replaceWith": merged},
        {"$replaceRoot": {"newRoot": merged}},
        {"$set": {"_ap": 1}},
    ]


@pytest.mark.parametrize(
    ("projection", "becomes"),
    [
        ({"a": 1}, {"a": 1, "_ap": 1}),
        ({"a": 0}, {"a": 0}),
        ({"_ap": 0}, {}),
        ({"_ap": 1}, {"_ap": 1}),
        ({"_ap.w": 1, "a": 1}, {"a": 1, "_ap": 1}),
        ({"_ap.w": 0}, {}),
        ({"_id": 0}, {"_id": 0}),
        ({"_id": 1}, {"_id": 1, "_ap": 1}),
        ({"x": {"$slice": 1}}, {"x": {"$slice": 1}}),
        ({"x": {"$meta": "textScore"}}, {"x": {"$meta": "textScore"}}),
        ({"x": {"y": 0}}, {"x": {"y": 0}}),
        ({"x": {"y": 1}}, {"x": {"y": 1}, "_ap": 1}),
        ({"x": "$y"}, {"x": "$y", "_ap": 1}),
    ],
)
def test_projections(projection: Any, becomes: Any) -> None:
    """One that names what is shown shows the field as well; others show it already."""
    assert changed(with_projection, projection) == becomes


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({"_id": 1}, [1]),
        ({"_id": 1, "a": 2}, [1]),
        ({"_id": {"$eq": 1}}, [1]),
        ({"_id": {"$in": [1, 2]}}, [1, 2]),
        ({"_id": {"$in": [1, re.compile("x")]}}, None),
        ({"_id": {"$in": [1, 2, 3]}}, None),
        ({"_id": {"$gt": 1}}, None),
        ({"_id": {"x": 1}}, [{"x": 1}]),
        ({"_id": re.compile("x")}, None),
        ({"_id": None}, None),
        ({"a": 1}, None),
        ({}, None),
    ],
)
def test_ids_of_a_query(query: Any, ids: Any) -> None:
    """Only where no other document can fit."""
    found = ids_of(bson.encode(query), most=2)
    assert (None if found is None else [*decoded(array(found)).values()]) == ids


@pytest.mark.parametrize(
    ("stages", "blind"),
    [
        ([], False),
        ([{"$match": {}}, {"$sort": {"a": 1}}], False),
        ([{"$project": {"a": 1}}], False),
        ([{"$group": {"_id": 1}}], True),
        ([{"$future": {}}], True),
        ([{"$out": "x"}], True),
        ([{"$lookup": {"from": "posts", "as": "x"}}], True),
        ([{"$lookup": {"from": "other", "as": "x"}}], False),
        ([{"$unionWith": {"coll": "posts", "pipeline": []}}], True),
        ([{"$unionWith": {"coll": "other"}}], False),
        ([{"$unionWith": {"coll": "other", "pipeline": [{"$unionWith": "posts"}]}}], True),
        ([{"$lookup": {"pipeline": [{"$lookup": {"from": "posts"}}], "as": "x"}}], True),
    ],
)
def test_pipelines(stages: list[Any], blind: bool) -> None:  # noqa: FBT001 - a table
    """What is not known to keep documents may have dropped what they depend on."""
    encoded = array(split(bson.encode({str(n): s for n, s in enumerate(stages)})))
    assert Pipeline(encoded, lambda name: name == b"posts").blind is blind


@pytest.mark.parametrize(
    ("stage", "becomes"),
    [
        ({"$project": {"_ap": 0}}, {"$project": {"_ap.none": 0}}),
        ({"$project": {"_ap": 0, "a": 0}}, {"$project": {"a": 0}}),
        ({"$unset": "_ap"}, {"$unset": ["_ap.none"]}),
        ({"$unset": ["_ap", "a"]}, {"$unset": ["a"]}),
        ({"$unset": "a"}, {"$unset": "a"}),
        ({"$match": {"_ap": 1}}, {"$match": {"_ap": 1}}),
    ],
)
def test_stages_do_not_drop_the_field(stage: Any, becomes: Any) -> None:
    """Nor do those of applications that do not want to see it."""
    encoded = array(split(bson.encode({"0": stage})))
    made = Pipeline(encoded, lambda name: name == b"posts")
    assert (bson.decode(made.encoded())["0"], made.blind) == (becomes, False)


@pytest.mark.parametrize(
    ("stage", "hidden"),
    [
        ({"$group": {"_id": 1, "all": {"$push": "$$ROOT"}}}, True),
        ({"$group": {"_id": 1, "all": {"$push": "$a"}}}, False),
        ({"$facet": {"all": [{"$match": {}}]}}, True),
        ({"$count": "n"}, False),
    ],
)
def test_whole_documents_within_results_do_not_show_the_field(stage: Any, *, hidden: bool) -> None:
    """It is dropped before the stage that nests them, and no other stage comes in front."""
    encoded = array(split(bson.encode({"0": stage})))
    made = Pipeline(encoded, lambda name: name == b"posts")
    sent = [*decoded(array(made.stages)).values()]
    assert sent == ([{"$unset": "_ap"}] if hidden else []) + [stage]


def test_messages_are_taken_apart() -> None:
    """PyMongo's requests come out as they went in."""
    body = {"insert": "posts", "documents": [{"_id": 1}], "$db": "app"}
    _, sent, _, _ = messages._op_msg(0, dict(body), "app", None, bson.DEFAULT_CODEC_OPTIONS)
    found = Message.of(sent)
    assert found is not None
    assert found.encoded()[4:8] == sent[4:8]
    assert found.sequences.keys() == {b"documents"}
    assert found.encoded() == sent
    assert Message.of(sent[:12] + b"\0\0\0\0" + sent[16:]) is None


def test_names() -> None:
    """A collection in whatever database, or in one."""
    names = Names(("posts", "app.likes", "fs.files"))
    assert names.has(b"app", b"posts")
    assert names.has(b"other", b"posts")
    assert names.has(b"app", b"likes")
    assert not names.has(b"other", b"likes")
    assert names.has(b"app", b"fs.files")
    assert not names.has(b"app", b"posts.antipode")


@pytest.mark.parametrize("name", ["createIndexes", "hello", "listIndexes", "renameCollection"])
def test_other_commands_go_as_they_are(name: str) -> None:
    """Only commands about documents are changed."""
    sent = Message(1, bytes(4), split(bson.encode({name: "posts", "$db": "app"})))
    before = list(sent.body)
    written = Written(Lineage(), None, "posts")
    assert Rewriter(sent, lambda: written, Names(("posts",))).request() is None
    assert sent.body == before


class OldConnection:
    """Of a PyMongo whose commands go past it."""

    def __init__(self) -> None:
        self.conn = object()
        self.sent: list[bytes] = []

    def send_message(self, data: bytes, _size: int) -> None:
        self.sent.append(data)

    def receive_message(self, request_id: int) -> int:
        return request_id


def test_old_clients_are_redirected() -> None:
    """Commands of a connection that is looked at go by its methods; others go as they did."""
    past: list[Any] = []
    network = SimpleNamespace(
        sendall=lambda link, data: past.append((link, data)),
        receive_message=lambda connection, number: past.append((connection, number)),
    )
    _wire_old._redirect(network)
    seen, other = OldConnection(), OldConnection()
    token = _wire_old.WIRED.set(seen)
    try:
        network.sendall(seen.conn, b"1")
        network.sendall(other.conn, b"2")
        assert network.receive_message(seen, 3) == 3
        network.receive_message(other, 4)
    finally:
        _wire_old.WIRED.reset(token)
    network.sendall(seen.conn, b"5")
    assert seen.sent == [b"1"]
    assert past == [(other.conn, b"2"), (other, 4), (seen.conn, b"5")]


@pytest.mark.parametrize("name", ["receive_message", "async_receive_message"])
def test_old_asyncio_clients_are_redirected(name: str) -> None:
    """Likewise, whatever the version calls the function."""
    past: list[Any] = []

    async def go_past(*given: Any) -> None:
        past.append(given)

    class Connection(OldConnection):
        async def send_message(self, data: bytes, _size: int) -> None:  # type: ignore[override]
            self.sent.append(data)

        async def receive_message(self, request_id: int) -> int:  # type: ignore[override]
            return request_id

    network = SimpleNamespace(**{"async_sendall": go_past, name: go_past})
    _wire_old._redirect_async(network)
    seen = Connection()

    async def use() -> None:
        await network.async_sendall(seen.conn, b"1")
        token = _wire_old.WIRED.set(seen)
        await network.async_sendall(seen.conn, b"2")
        assert await getattr(network, name)(seen, 3) == 3
        _wire_old.WIRED.reset(token)
        await getattr(network, name)(seen, 4)

    asyncio.run(use())
    assert seen.sent == [b"2"]
    assert past == [(seen.conn, b"1"), (seen, 4)]
