"""Message headers: the lineage that goes out, and every shape in which one may come in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import baggage, context, propagate

import antipode
from antipode import Lineage, WriteId
from antipode.shim import encode
from antipode.telemetry import metrics
from antipode_shims._messages.headers import (
    BAGGAGE,
    MAX_HEADER_BYTES,
    MAX_MEMBERS,
    WRITE,
    has_lineage,
    outgoing,
    own_write,
    received,
)
from antipode_shims.rabbitmq import message

POST = WriteId("posts", "log", 7, 498_669)
OTHER = WriteId("users", "log", 3, 498_669)
OWN = WriteId("news", "018f0000-0000-7000-8000-000000000001", 4, 498_669)
UNREADABLE = {("news", "unreadable")}


def sent(headers: dict[str, Any] | None = None, **kwargs: Any) -> dict[str, Any]:
    """What is published to the datastore ``news`` in place of *headers*, as a copy."""
    return {**(outgoing(headers, datastore="news", **kwargs) or {})}


def incoming(headers: dict[str, Any], subject: str = "") -> Lineage:
    """What the consumer of a message depends on."""
    return received(headers, subject)[0]


def test_without_a_scope_headers_are_as_they_were() -> None:
    """No scope: the application's headers go out unchanged, in a copy."""
    mine = {"a": 1, BAGGAGE: "antipode=1~broken,b=2"}
    assert sent(mine) == mine
    assert outgoing(mine, datastore="news") is not mine
    assert outgoing({}, datastore="news") == {}
    assert outgoing(None, datastore="news") is None


def test_an_empty_lineage_adds_nothing() -> None:
    """A scope without dependencies costs no header."""
    with antipode.scope():
        assert sent({"a": 1}) == {"a": 1}


def test_the_lineage_is_the_baggage_member_that_propagators_read() -> None:
    """What is sent is read back by the stock OpenTelemetry propagator and by ours."""
    with antipode.scope(Lineage([POST])):
        headers = sent({"a": 1})
    assert headers["a"] == 1
    found = propagate.extract({BAGGAGE: headers[BAGGAGE]}, context=context.Context())
    assert antipode.deserialize(str(baggage.get_baggage("antipode", found))) == Lineage([POST])
    assert incoming(headers) == Lineage([POST])


def test_the_applications_headers_are_not_touched() -> None:
    """Neither the mapping nor what is in it changes."""
    table = {"x": [1, 2]}
    mine: dict[str, Any] = {"t": table, BAGGAGE: "user=1", WRITE: encode(Lineage([OTHER]))}
    before = dict(mine)
    with antipode.scope(Lineage([POST])):
        sent(mine, write=OWN)
    assert mine == before
    assert mine["t"] is table
    assert table == {"x": [1, 2]}


def test_injected_baggage_keeps_its_members_and_ours_is_current() -> None:
    """A stale member of ours, injected earlier, is merged into the current lineage."""
    with antipode.scope(Lineage([POST])):
        carrier: dict[str, Any] = {}
        token = context.attach(baggage.set_baggage("tenant", "42"))
        propagate.inject(carrier)
        context.detach(token)
        antipode.append(OTHER)
        headers = sent(carrier)
    assert "tenant=42" in headers[BAGGAGE].split(",")
    assert headers[BAGGAGE].count("antipode=") == 1
    assert incoming(headers) == Lineage([POST, OTHER])


def test_a_copied_lineage_is_not_lost() -> None:
    """Headers copied from another message add its dependencies; an unreadable one says so."""
    copied = {BAGGAGE: f"antipode={encode(Lineage([OTHER]))}"}
    with antipode.scope(Lineage([POST])):
        assert incoming(sent(copied)) == Lineage([POST, OTHER])
        broken = incoming(sent({BAGGAGE: "antipode=1~~"}))
    assert POST in broken
    assert broken.incomplete == {("baggage", "unreadable")}
    with antipode.scope():
        assert incoming(sent(copied)) == Lineage([OTHER])


def test_an_unusable_baggage_header_gives_way() -> None:
    """A header of a type that no propagator reads is replaced, and counted."""
    before = metrics().get(antipode.telemetry.Metric("baggage_replaced", "news"), 0)
    with antipode.scope(Lineage([POST])):
        assert incoming(sent({BAGGAGE: 5})) == Lineage([POST])
    assert metrics()[antipode.telemetry.Metric("baggage_replaced", "news")] == before + 1


def test_what_a_message_says_already_stays_as_it_is() -> None:
    """Headers that are sent once more by the same request name it, in a dry run, too."""
    antipode.configure(mode="dry-run")
    with antipode.scope(Lineage([POST])):
        once = sent()
        assert sent(once) == once


def test_a_copied_write_is_never_published_again() -> None:
    """The name of another message's write is replaced by the own one, or removed."""
    copied = {WRITE: encode(Lineage([OTHER]))}
    assert WRITE not in sent(copied)
    assert own_write(sent(copied, write=OWN)) == OWN


@pytest.mark.parametrize(
    "others", [["u=" + "x" * 8000], [f"u{n}=1" for n in range(80)]], ids=["bytes", "members"]
)
def test_ours_survives_a_full_baggage(others: list[str]) -> None:
    """At the limits of propagators the user's last members go, counted, and never ours."""
    before = metrics().get(antipode.telemetry.Metric("baggage_dropped", "news"), 0)
    lineage = Lineage(WriteId("posts", f"key-{n}", n, 498_669) for n in range(20))
    with antipode.scope(lineage):
        header = sent({BAGGAGE: ",".join(others)})[BAGGAGE]
    assert len(header.encode()) <= MAX_HEADER_BYTES
    assert len(header.split(",")) <= MAX_MEMBERS
    assert incoming({BAGGAGE: header}) == lineage
    assert metrics()[antipode.telemetry.Metric("baggage_dropped", "news")] > before


def test_members_up_to_the_limits_all_stay() -> None:
    """Just within the limits nothing is dropped."""
    with antipode.scope(Lineage([POST])):
        header = sent({BAGGAGE: ",".join(f"u{n}=1" for n in range(63))})[BAGGAGE]
        room = MAX_HEADER_BYTES - len(sent()[BAGGAGE]) - len(",u=")
        assert len(sent({BAGGAGE: "u=" + "x" * room})[BAGGAGE]) == MAX_HEADER_BYTES
        assert len(sent({BAGGAGE: "u=" + "x" * (room + 1)})[BAGGAGE]) < 100
    assert len(header.split(",")) == 64


def test_size_and_egress_bound_what_leaves() -> None:
    """``max_lineage_bytes`` and ``egress`` hold for messages as for requests."""
    antipode.configure(max_lineage_bytes=256, egress=["posts"])
    lineage = Lineage(WriteId("posts", f"key-{n}", n, 498_669) for n in range(50))
    with antipode.scope(lineage.append(OTHER)):
        header = sent()[BAGGAGE]
        merged = sent({BAGGAGE: f"antipode={encode(Lineage([POST]))}"})[BAGGAGE]
    for text in (header, merged):
        assert len(text) <= 256
        assert incoming({BAGGAGE: text}).incomplete == {("posts", "size"), ("", "egress")}
        assert incoming({BAGGAGE: text}).datastores == {"posts"}


@pytest.mark.parametrize(
    "header",
    [
        5,
        5.5,
        True,
        [],
        ["antipode=1"],
        {"antipode": "1"},
        b"\xff\xfe",
        "antipode=1~~",
        "antipode=",
        "antipode=%%%",
        "antipode=1~k",
        "antipode=" + "x" * 70_000,
        "a=" + "x" * 200_000,
        "antipode=" + "~".join(["1", *["o1"] * 5000]),
    ],
    ids=lambda header: repr(header)[:24],
)
def test_an_unreadable_header_is_incomplete_never_empty(header: object) -> None:
    """Whatever the header holds that is no lineage, the scope says that it misses something."""
    assert incoming({BAGGAGE: header}, "news").incomplete == UNREADABLE
    assert incoming({BAGGAGE: header}).incomplete == {("baggage", "unreadable")}
    with message({BAGGAGE: header}) as held:
        assert not antipode.check().ok
        assert held.lineage.incomplete


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", Lineage()),
        ("tenant=42", Lineage()),
        ("antipode2=1~~,xantipode=1~~", Lineage()),
        (f"a=1, antipode={encode(Lineage([POST]))};ttl=5 ,b=2", Lineage([POST])),
        (f"antipode={encode(Lineage([POST]))}".encode(), Lineage([POST])),
        (
            f"antipode={encode(Lineage([POST]))},antipode={encode(Lineage([OTHER]))}",
            Lineage([POST, OTHER]),
        ),
    ],
)
def test_a_readable_header(header: object, expected: Lineage) -> None:
    """Text and bytes, other members, properties and repeated members are all read."""
    assert incoming({BAGGAGE: header}) == expected


@pytest.mark.parametrize(
    "header",
    [
        5,
        [],
        b"\xff",
        "1~~",
        "1",
        encode(Lineage([POST, OTHER])),
        encode(Lineage([WriteId("a", "b", "c")])),
    ],
    ids=repr,
)
def test_a_forged_own_write_is_incomplete(header: object) -> None:
    """A message that names itself unreadably is a dependency that is known to be missing."""
    lineage, write = received({WRITE: header}, "news")
    assert write is None
    assert lineage.incomplete == UNREADABLE


def test_a_message_without_a_lineage_starts_an_empty_scope() -> None:
    """Absent is empty: pika properties without headers, an empty table, other headers."""
    pika = pytest.importorskip("pika")
    for msg in (pika.BasicProperties(), {}, {"a": 1}, (None, pika.BasicProperties(), b"")):
        with message(msg) as held:
            assert held.lineage == Lineage()


@pytest.mark.parametrize("msg", [None, (None, None, None), b"body", 5])
def test_what_is_no_message_is_refused(msg: object) -> None:
    """An empty queue's reply or a body alone is an error that says what to pass."""
    with pytest.raises(TypeError, match="properties, body"):
        message(msg)


def test_a_message_never_joins_an_ambient_scope() -> None:
    """Two messages, one within the other's scope, and a request around both do not mix."""
    first = sent(lineage=Lineage([POST]), write=OWN)
    second = sent(lineage=Lineage([OTHER]))
    with antipode.scope() as request:
        with message(first) as outer:
            with message(second) as inner:
                antipode.append(WriteId("x", "y", 1))
            assert antipode.current() == Lineage([POST, OWN])
        assert antipode.current() == Lineage()
    assert outer.lineage == Lineage([POST, OWN])
    assert len(inner.lineage) == 2
    assert request.lineage == Lineage()


_HEADERS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(_HEADERS | st.text().map(lambda text: f"antipode={text}"), _HEADERS)
def test_no_header_crashes_a_consumer(header: object, write: object) -> None:
    """Whatever a table can hold is read: valid, absent or incomplete."""
    received({BAGGAGE: header, WRITE: write})
    with antipode.scope(Lineage([POST])):
        assert POST in incoming(sent({BAGGAGE: header, WRITE: write}))


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        (None, False),
        ({}, False),
        ({"x-other": 1}, False),
        ({BAGGAGE: "other=1"}, False),
        ({BAGGAGE: "other=1,antipode=1"}, True),
        ({BAGGAGE: object()}, True),
        ({WRITE: "anything"}, True),
        ({WRITE: "anything", BAGGAGE: "other=1"}, True),
    ],
)
def test_whether_a_message_says_anything_of_ours(
    headers: dict[str, Any] | None, *, says: bool
) -> None:
    """Readable or not; one that says nothing was published by who is not instrumented."""
    assert has_lineage(headers) is says
