"""The algebra of lineages, over every field."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antipode import Lineage, Promise, WriteId
from antipode._lineage.grammar import MAX_EXPIRY, MAX_HOUR, MAX_VERSION
from antipode.shim import Incomplete
from tests.unit import _lineages as some

many = some.lineages()


def implied(write: WriteId, lineage: Lineage) -> bool:
    """Whether waiting for *lineage* waits for *write*, and exactly where *write* is exact."""
    return any(
        (held.datastore, held.key) == (write.datastore, write.key)
        and (write.covering or not held.covering)
        and (
            held.version >= write.version
            if isinstance(held.version, int) and isinstance(write.version, int)
            else held.version == write.version
        )
        for held in lineage
    )


@given(many, many, many)
def test_merge_is_associative(a: Lineage, b: Lineage, c: Lineage) -> None:
    """It does not matter in which order the branches of a request come together."""
    assert a.merge(b).merge(c) == a.merge(b.merge(c)) == a.merge(b, c)


@given(some.lineages(some.crowded), some.lineages(some.crowded), some.lineages(some.crowded))
def test_merge_is_associative_where_entries_meet(a: Lineage, b: Lineage, c: Lineage) -> None:
    """Nor where exact, covering, hours and opaque versions meet in the same slots."""
    assert a.merge(b).merge(c) == a.merge(b.merge(c))


@given(many, many)
def test_merge_is_commutative(a: Lineage, b: Lineage) -> None:
    """It does not matter which branch is joined to which."""
    assert a.merge(b) == b.merge(a)


@given(many, many)
def test_merge_is_idempotent(a: Lineage, b: Lineage) -> None:
    """It does not matter how often a branch is joined."""
    assert a.merge(a) == a == a.merge()
    assert a.merge(b).merge(b).merge(a) == a.merge(b)


@given(many)
def test_nothing_is_neutral(a: Lineage) -> None:
    """Joining an empty branch changes nothing."""
    assert a.merge(Lineage()) == a == Lineage().merge(a)


@given(many, st.one_of(some.crowded, some.writes))
def test_append_is_merge_of_one(a: Lineage, write: WriteId) -> None:
    """A write that is appended and a lineage of that write that is merged are the same."""
    assert a.append(write) == a.merge(Lineage([write]))


@given(
    st.lists(some.crowded, max_size=10).flatmap(lambda w: st.tuples(st.just(w), st.permutations(w)))
)
def test_order_does_not_matter(pair: tuple[list[WriteId], list[WriteId]]) -> None:
    """Writes in any order make the same lineage."""
    writes, shuffled = pair
    one, other = Lineage(writes), Lineage(shuffled)
    assert one == other
    assert hash(one) == hash(other)


@given(st.lists(st.one_of(some.crowded, some.writes), max_size=10))
def test_no_dependency_is_lost(writes: list[WriteId]) -> None:
    """Every write that entered is implied by what is held; exact ones by exact ones."""
    lineage = Lineage(writes)
    assert all(implied(write, lineage) for write in writes)
    names = {(write.datastore, write.key, write.version, write.covering) for write in writes}
    assert all((h.datastore, h.key, h.version, h.covering) in names for h in lineage)


@given(st.lists(st.one_of(some.crowded, some.writes), max_size=10))
def test_normal_form(writes: list[WriteId]) -> None:
    """No entry implies another: one number per log and flag, no covering at or below exact."""
    lineage = Lineage(writes)
    for write in lineage:
        others = Lineage([held for held in lineage if held != write])
        assert len(others) == len(lineage) - 1
        assert not implied(write, others)


@given(st.lists(some.crowded, min_size=1, max_size=10))
def test_hours_come_from_the_entry_that_stays(writes: list[WriteId]) -> None:
    """The hour is the newest of those writes that are equal in all else: it never crosses."""
    for held in Lineage(writes):
        alike = [
            write.written_hour
            for write in writes
            if (write.key, write.version, write.covering) == (held.key, held.version, held.covering)
        ]
        assert held.written_hour == max(alike)


@given(some.lineages(some.crowded), some.crowded)
def test_remove(a: Lineage, write: WriteId) -> None:
    """What is removed is gone, exact and covering, whatever its hour; the rest stays."""
    left = a.remove(write)
    name = (write.datastore, write.key, write.version)
    assert set(left) == {h for h in a if (h.datastore, h.key, h.version) != name}
    assert left.remove(write) == left
    assert (left.incomplete, left.promises, left.open_branches, left.unknown) == (
        a.incomplete,
        a.promises,
        a.open_branches,
        a.unknown,
    )


@given(many, st.data())
def test_only_splits(a: Lineage, data: st.DataObject) -> None:
    """The parts about some datastores and about all others make the whole again."""
    subjects = a.datastores | {mark.subject for mark in a.incomplete}
    chosen = data.draw(st.sets(st.sampled_from(sorted(subjects)))) if subjects else set[str]()
    part = a.only(*chosen)
    assert part.datastores <= chosen
    assert part.merge(a.only(*subjects - chosen)) == a


@given(many, many, st.one_of(some.crowded, some.writes))
def test_operations_change_nothing(a: Lineage, b: Lineage, write: WriteId) -> None:
    """Lineages are immutable: every operation leaves its operands as they were."""
    before = pickle.dumps(a)
    a.append(write)
    a.remove(write)
    a.merge(b)
    a.only("a")
    a.marked(("a", "size"))
    assert pickle.loads(before) == a  # noqa: S301 - our own bytes


@given(many)
def test_hash_and_pickle(a: Lineage) -> None:
    """Equal lineages have equal hashes, in another process too."""
    copy = pickle.loads(pickle.dumps(a))  # noqa: S301 - our own bytes
    assert copy == a
    assert hash(copy) == hash(a)


@given(many)
def test_is_a_collection_of_its_writes(a: Lineage) -> None:
    """Iteration, length and membership agree, and ``empty`` looks at every field."""
    assert len(list(a)) == len(a)
    assert all(write in a for write in a)
    assert a.empty is (a == Lineage())


def test_remove_is_not_undone_by_hours() -> None:
    """The write id that a shim keeps, without an hour, removes the entry that a scope stamped."""
    stamped = WriteId("posts", "k", 5, written_hour=490_000)
    assert Lineage([stamped]).remove(WriteId("posts", "k", 5)) == Lineage()


def test_repr_tells_every_field() -> None:
    """What a person sees in a log holds all fields, and marks covering positions."""
    lineage = Lineage(
        [WriteId("posts", "k", 5, covering=True)],
        incomplete=[("users", "in_doubt")],
        promises=[Promise("pay", "0" * 32, 1)],
        open_branches=2,
        unknown=["xa"],
    )
    assert repr(lineage) == (
        "Lineage([posts:k@~5], incomplete=[users (in_doubt)], "
        f"promises=['{'0' * 32}'], open_branches=2, unknown=['xa'])"
    )


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"datastore": ""}, ValueError),
        ({"datastore": 1}, TypeError),
        ({"datastore": "\ud800"}, ValueError),
        ({"key": None}, TypeError),
        ({"key": "\udfff"}, ValueError),
        ({"version": -1}, ValueError),
        ({"version": MAX_VERSION + 1}, ValueError),
        ({"version": True}, TypeError),
        ({"version": 1.0}, TypeError),
        ({"version": b"v"}, TypeError),
        ({"version": "\ud800"}, ValueError),
        ({"written_hour": -1}, ValueError),
        ({"written_hour": MAX_HOUR + 1}, ValueError),
        ({"written_hour": 1.5}, TypeError),
    ],
)
def test_write_ids_refuse_what_no_text_can_carry(
    fields: dict[str, Any], error: type[Exception]
) -> None:
    """A mistake is told where it is made, not where the lineage leaves the process."""
    good: dict[str, Any] = {"datastore": "posts", "key": "k", "version": 1}
    with pytest.raises(error):
        WriteId(**{**good, **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {"datastore": ""},
        {"id": "0" * 31},
        {"id": "A" * 32},
        {"id": "0" * 32 + "\n"},
        {"expires_s": -1},
        {"expires_s": 36**8},
    ],
)
def test_promises_refuse_what_no_text_can_carry(fields: dict[str, Any]) -> None:
    """A mistake is told where it is made."""
    good: dict[str, Any] = {"datastore": "posts", "id": "0" * 32, "expires_s": 1}
    with pytest.raises(ValueError, match="must"):
        Promise(**{**good, **fields})


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"open_branches": -1}, ValueError),
        ({"open_branches": MAX_VERSION + 1}, ValueError),
        ({"open_branches": "1"}, TypeError),
        ({"incomplete": [("a", "\ud800")]}, ValueError),
        ({"incomplete": [(1, "size")]}, TypeError),
        ({"incomplete": ["size"]}, ValueError),
        ({"unknown": [""]}, ValueError),
        ({"unknown": ["x~y"]}, ValueError),
        ({"unknown": ["x\n"]}, ValueError),
        ({"unknown": ["kk.a.5"]}, ValueError),
        ({"unknown": ["hAbC"]}, ValueError),
        ({"unknown": ["xé"]}, ValueError),
    ],
)
def test_lineages_refuse_what_no_text_can_carry(
    fields: dict[str, Any], error: type[Exception]
) -> None:
    """Nothing can be put into a lineage that its text could not carry, or would turn into more."""
    with pytest.raises(error):
        Lineage(**fields)


@pytest.mark.parametrize(("mark", "error"), [(("a", "\ud800"), ValueError), ((1, "x"), TypeError)])
def test_marks_refuse_what_no_text_can_carry(mark: tuple[Any, Any], error: type[Exception]) -> None:
    """The same for marks that are added later."""
    with pytest.raises(error):
        Lineage().marked(Incomplete(*mark))


@given(many, st.integers(0, MAX_HOUR), st.integers(0, MAX_EXPIRY))
def test_nobody_writes_in_the_future(a: Lineage, hour: int, latest_s: int) -> None:
    """What is received keeps all that it says, but for hours and expiries that are to come."""
    found = a.received(hour=hour, latest_s=latest_s)
    assert {(w.datastore, w.key, w.version, w.covering, min(w.written_hour, hour)) for w in a} == {
        (w.datastore, w.key, w.version, w.covering, w.written_hour) for w in found
    }
    assert {(p.datastore, p.id, min(p.expires_s, latest_s)) for p in a.promises} == {
        (p.datastore, p.id, p.expires_s) for p in found.promises
    }
    assert (found.incomplete, found.unknown, found.open_branches) == (
        a.incomplete,
        a.unknown,
        a.open_branches,
    )
    assert found.received(hour=hour, latest_s=latest_s) == found
