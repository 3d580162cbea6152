"""What shims share: lineages beside values, and what reads and writes enter into the scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import ConfigurationError, Lineage, WriteId
from antipode.shim import (
    Incomplete,
    mark_incomplete,
    record_read,
    record_write,
    stored_lineage,
    stored_names,
    stored_text,
)

if TYPE_CHECKING:
    from collections.abc import Collection

POST = WriteId("posts", "log", 7, written_hour=490_000)


def test_what_is_stored_is_read_back() -> None:
    """As text, or as the bytes that a client library gives."""
    text = stored_text(Lineage([POST]))
    assert stored_lineage("posts", text) == Lineage([POST])
    assert stored_lineage("posts", text.encode()) == Lineage([POST])


def leaving(lineage: Lineage) -> list[str]:
    """The texts of *lineage* in every way in which one leaves the process."""
    carrier: dict[str, str] = {}
    with antipode.scope(lineage) as held:
        antipode.propagation.inject_response(carrier)
        return [
            stored_text(lineage),
            antipode.serialize(),
            antipode.serialize(lineage),
            held.text(),
            carrier["antipode-lineage"],
        ]


def test_whatever_leaves_is_filtered_and_bounded_alike() -> None:
    """Baggage, answers, what is stored and what is put elsewhere by hand."""
    secret = WriteId("secret", "log", 1, written_hour=490_000)
    antipode.configure(egress=["posts"])
    texts = leaving(Lineage([POST, secret], incomplete=[("hidden", "in_doubt")]))
    assert set(texts) == {stored_text(Lineage([POST], incomplete=[("", "egress")]))}
    antipode.configure(egress=None, max_lineage_bytes=64)
    many = Lineage(WriteId("posts", f"k{index}", 1, written_hour=490_000) for index in range(20))
    (text,) = set(leaving(many))
    assert len(f"antipode={text}") <= 64
    assert antipode.deserialize(text).incomplete == {Incomplete("posts", "size")}


def test_nothing_stored_is_an_empty_lineage() -> None:
    """A value written without the library depends on nothing that is known."""
    assert stored_lineage("posts", None) == Lineage()


@pytest.mark.parametrize("text", ["", "?", "1~k", b"\xff", "é"])
def test_what_cannot_be_read_is_never_an_empty_lineage(text: str | bytes) -> None:
    """A damaged companion makes its reader's lineage incomplete, and is counted."""
    name = antipode.telemetry.Metric("unreadable", "posts")
    before = antipode.telemetry.metrics().get(name, 0)
    lineage = stored_lineage("posts", text)
    assert lineage == Lineage(incomplete=[Incomplete("posts", "unreadable")])
    assert antipode.telemetry.metrics()[name] == before + 1


def test_a_stored_lineage_is_bounded() -> None:
    """A value never grows by more than the configured bytes, and the text says what it lacks."""
    antipode.configure(max_lineage_bytes=200)
    many = Lineage([WriteId("posts", f"key-{i}", i, written_hour=490_000) for i in range(100)])
    text = stored_text(many)
    assert len(text) <= 200
    assert stored_lineage("posts", text).incomplete == {Incomplete("posts", "size")}


def test_a_recorded_write_enters_the_scope_with_its_hour() -> None:
    """The entry can age."""
    with antipode.scope():
        record_write(WriteId("posts", "log", 7))
        (entered,) = antipode.current()
        assert entered == WriteId("posts", "log", 7, entered.written_hour)
        assert entered.written_hour


def test_a_recorded_read_merges_into_the_scope() -> None:
    """Who reads a value depends on the whole lineage of its write; outside a scope nobody does."""
    with antipode.scope():
        record_read(Lineage([POST]))
        assert antipode.current() == Lineage([POST])
    record_read(Lineage([POST]))
    assert antipode.current() == Lineage()


def test_what_is_in_doubt_is_marked() -> None:
    """A write whose outcome nobody knows makes the barrier fail, not pass."""
    with antipode.scope():
        mark_incomplete("posts", "in_doubt")
        with pytest.raises(antipode.IncompleteLineage, match=r"posts \(in_doubt\)"):
            antipode.barrier(timeout=1)


def test_names_and_beside_go_together() -> None:
    """What lineages are stored beside is named once each, in order; nothing without ``beside``."""
    named = stored_names("beside", ["b", "a", "b"], datastore="posts", option="keys")
    assert named == ("b", "a")
    assert stored_names("none", (), datastore="posts", option="keys") == ()


@pytest.mark.parametrize(
    ("lineage", "names", "said"),
    [
        ("beside", (), "needs tables="),
        ("beside", [""], "needs tables="),
        ("none", ["a"], "means nothing without"),
        ("beside", "post", "not one string"),
        ("besides", (), "must be 'none' or 'beside'"),
    ],
)
def test_half_a_setting_is_refused(lineage: str, names: Collection[str], said: str) -> None:
    """``beside`` without names, names without ``beside``, and slips are errors that say so."""
    with pytest.raises(ConfigurationError, match=said):
        stored_names(lineage, names, datastore="posts", option="tables")
