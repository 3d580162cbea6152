"""A lineage in a bounded text: what does not fit is dropped in order, and never silently."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antipode import Lineage, LineageTooLarge, Promise, WriteId, serialize
from antipode._lineage.grammar import MAX_ITEMS, MAX_TEXT
from antipode._request.lineage_text import encode_bounded
from antipode.shim import Incomplete, decode, encode
from antipode.telemetry import Metric, metrics
from tests.unit import _lineages as some

if TYPE_CHECKING:
    from collections.abc import Iterable

#: What was recorded here, and what came in texts.
many = st.builds(
    lambda here, came: here.merge(decode(encode(came))),
    some.lineages(max_size=8),
    some.lineages(max_size=8),
)
#: Entries of one hour and of few datastores, that only their turn tells apart.
alike = st.builds(
    Lineage,
    st.lists(
        st.builds(WriteId, st.sampled_from(["a", "b", "c"]), some.keys, st.just(5), st.just(1)),
        max_size=12,
    ),
)
#: ``antipode=`` and a lineage that says no more than that it is incomplete.
LEAST = len("antipode=1~isize.-")
bounds = st.one_of(st.integers(1, 40), st.integers(LEAST, 300))


def shortened(lineage: Lineage, max_bytes: int) -> Lineage | None:
    """*lineage* after a journey in at most *max_bytes*; None where that is refused."""
    try:
        text = encode_bounded(lineage, max_bytes=max_bytes)
    except LineageTooLarge:
        assert max_bytes < LEAST
        return None
    assert len(f"antipode={text}") <= max_bytes
    return decode(text)


def told(subject: str, left: Lineage, *, reason: str = "size") -> bool:
    """Whether *left* says that something of *subject* may be missing for this reason."""
    marks = {Incomplete(subject, reason), Incomplete("", reason), Incomplete("", "size")}
    return not left.incomplete.isdisjoint(marks)


@pytest.mark.slow
@given(many, bounds)
def test_bound_holds(lineage: Lineage, max_bytes: int) -> None:
    """No text is longer than asked for, and only a bound below the mark itself is refused."""
    shortened(lineage, max_bytes)


@given(many, bounds)
def test_nothing_is_lost_silently(lineage: Lineage, max_bytes: int) -> None:
    """Whatever is absent from the text, the text says so."""
    left = shortened(lineage, max_bytes)
    if left is None:
        return
    for write in {*lineage} - {*left}:
        assert told(write.datastore, left)
    for promise in lineage.promises - left.promises:
        assert told(promise.datastore, left, reason="promise")
    for mark in lineage.incomplete - left.incomplete:
        assert told(mark.subject, left, reason=mark.reason)
    if any(not item[0].isdigit() for item in lineage.unknown - left.unknown):
        assert told("", left)
    if left.open_branches != lineage.open_branches:
        assert told("", left)


@given(many, bounds)
def test_nothing_is_invented(lineage: Lineage, max_bytes: int) -> None:
    """The text holds nothing but what was there, and marks of size."""
    left = shortened(lineage, max_bytes)
    if left is None:
        return
    assert set(left) <= set(lineage)
    assert left.promises <= lineage.promises
    assert left.unknown <= lineage.unknown
    assert left.open_branches in (0, lineage.open_branches)
    new = left.incomplete - lineage.incomplete
    reasons = {mark.reason for mark in lineage.incomplete}
    assert all(mark.reason in ("size", "promise") for mark in new if mark.subject)
    assert {mark.reason for mark in new} <= {"size", "promise", *reasons}
    assert {mark.subject for mark in new} <= {"", *lineage.datastores}


@given(many, bounds)
def test_what_fits_is_not_touched(lineage: Lineage, max_bytes: int) -> None:
    """A lineage whose text is short enough is sent as it is."""
    if len(encode(lineage)) + len("antipode=") <= max_bytes:
        assert encode_bounded(lineage, max_bytes=max_bytes) == encode(lineage)


@given(many, bounds)
def test_shortened_texts_are_canonical(lineage: Lineage, max_bytes: int) -> None:
    """A shortened text is the canonical text of what it stands for, and short for good."""
    left = shortened(lineage, max_bytes)
    if left is not None:
        text = encode_bounded(lineage, max_bytes=max_bytes)
        assert encode(left) == text
        assert encode_bounded(left, max_bytes=max_bytes) == text


def ages(writes: Iterable[WriteId]) -> list[tuple[bool, bool, int]]:
    """What decides which write is dropped first, the first to go last."""
    return sorted((write.covering, write._outside, -write.written_hour) for write in writes)


@given(many, bounds)
def test_order_of_dropping(lineage: Lineage, max_bytes: int) -> None:
    """Covering goes before exact, what came before what is ours, old before new, promises last."""
    left = shortened(lineage, max_bytes)
    if left is None or left.incomplete == {Incomplete("", "size")}:
        return
    kept = [write for write in lineage if write in left]
    gone = ages(write for write in lineage if write not in left)
    if gone and kept:
        assert ages(kept)[-1] <= gone[0]
    if left.promises != lineage.promises:
        assert not len(left)
    if gone:
        assert not left.unknown


@given(alike, bounds)
def test_datastores_lose_entries_in_turn(lineage: Lineage, max_bytes: int) -> None:
    """No datastore is left with two entries more than one that lost some."""
    left = shortened(lineage, max_bytes)
    if left is None:
        return
    before, after = (Counter(write.datastore for write in each) for each in (lineage, left))
    poorest = min((after[name] for name in before if after[name] < before[name]), default=None)
    if poorest is not None:
        assert max(after.values(), default=0) <= poorest + 1


@pytest.mark.slow
@given(many, st.sets(some.datastores, max_size=3), bounds)
@example(Lineage(unknown=["z0.2secret"]), {"a"}, 300)
@example(Lineage([WriteId("b", "k", 1)], incomplete=[("svc", "in_doubt")]), {"a"}, 300)
def test_egress(lineage: Lineage, allowed: set[str], max_bytes: int) -> None:
    """What may not leave is not in the text, by name or otherwise, and the text says so."""
    try:
        left = decode(encode_bounded(lineage, max_bytes=max_bytes, egress=allowed))
    except LineageTooLarge:
        return
    subjects = {mark.subject for mark in left.incomplete}
    assert left.datastores | subjects <= allowed | {""}
    assert not left.unknown
    hidden = lineage.datastores | {mark.subject for mark in lineage.incomplete}
    if hidden - allowed - {""} or any(not item[0].isdigit() for item in lineage.unknown):
        assert not left.incomplete.isdisjoint({Incomplete("", "egress"), Incomplete("", "size")})


@pytest.mark.parametrize("number", [MAX_ITEMS, MAX_ITEMS + 1, 2 * MAX_ITEMS])
def test_a_text_is_never_more_than_others_decode(number: int) -> None:
    """Whatever the caller allows, the text stays within every decoder's limits."""
    lineage = Lineage(WriteId("a", f"k{index}", 1, 500_000) for index in range(number))
    text = serialize(lineage, max_bytes=10**9)
    assert len(text) <= MAX_TEXT
    left = decode(text)
    if number == MAX_ITEMS:
        assert left == lineage
    else:
        assert len(left) == MAX_ITEMS - 1
        assert told("a", left)


def test_marks_leave_room_for_writes() -> None:
    """Marks of many datastores take the room of entries: then one stands for all of them."""
    lineage = Lineage(WriteId(f"datastore-{index}", "rs0.5", 2**62, 1) for index in range(121))
    left = shortened(lineage, 1024)
    assert left is not None
    assert left.incomplete == {Incomplete("", "size")}
    assert len(left) > 25


def test_marks_leave_nothing_but_one() -> None:
    """Where even one mark for each reason does not fit, one stands for all that is missing."""
    lineage = Lineage(incomplete=[("posts", f"reason-{index}") for index in range(9)])
    assert encode_bounded(lineage, max_bytes=64) == "1~isize.-"


def test_promises_outlive_writes() -> None:
    """A promise stands for writes to come, which nothing else in the text could imply."""
    promise = Promise("pay", "0" * 32, 10**9)
    lineage = Lineage([WriteId("posts", "k" * 50, 1)], promises=[promise])
    left = shortened(lineage, 80)
    assert left == Lineage(incomplete=[("posts", "size")], promises=[promise])


def test_dropping_is_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Somebody who never looks into a lineage learns of it all the same."""
    lineage = Lineage(WriteId("overflowing", f"k{index}", 1) for index in range(99))
    metric = Metric("dropped_for_size", "overflowing")
    before = metrics().get(metric, 0)
    with caplog.at_level(logging.WARNING, "antipode"):
        serialize(lineage, max_bytes=101)
    assert metrics()[metric] == before + 1
    assert "'overflowing'" in caplog.text
    assert "101 bytes" in caplog.text


def test_too_small_a_bound_names_itself() -> None:
    """The one refusal says what to change."""
    with pytest.raises(LineageTooLarge, match="17 bytes") as caught:
        serialize(Lineage([WriteId("posts", "key", 1)]), max_bytes=LEAST - 1)
    assert caught.value.code == "lineage_too_large"
