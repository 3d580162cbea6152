"""What a row's older texts lose where a newer lineage joins them: only what that says as well."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antipode import Lineage, WriteId
from antipode.shim import decode, encode
from antipode_shims._sql.superseded import CARRIED, superseded

from ._lineages import lineages

LOG = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def joined(new: str, old: list[str]) -> list[str]:
    """What the trigger makes of a row's texts, here with Python's regular expressions."""
    pattern, older = superseded(new), ",".join(old)
    if not pattern or CARRIED in older:
        return [new, *old]
    kept = re.sub(pattern, "", older)
    return re.sub(",1[0-9a-z]*(?=,|$)", "", f"{new},{kept}").split(",")


def said(lineage: Lineage) -> object:
    """All of a lineage but its hours: of equal positions the writer's stays."""
    writes = {(each.datastore, each.key, each.version, each.covering) for each in lineage}
    branches = lineage.open_branches
    return writes, lineage.incomplete, lineage.promises, lineage.unknown, branches


@pytest.mark.slow
@given(st.lists(lineages(max_size=4), min_size=1, max_size=6))
def test_nothing_is_lost(told: list[Lineage]) -> None:
    """Whatever lineages a row was updated with, in whatever order, its texts say all of them."""
    texts = [encode(told[0])]
    for each in told[1:]:
        texts = joined(encode(each), texts)
    merged = Lineage().merge(*(decode(text) for text in texts))
    assert said(merged) == said(Lineage().merge(*told))


@given(
    positions=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20), covering=st.booleans()
)
def test_positions_that_move_along_a_log_are_one(*, positions: list[int], covering: bool) -> None:
    """One text with one item, however often."""
    told = [
        Lineage([WriteId("posts", LOG, position, hour, covering)])
        for hour, position in enumerate(sorted(positions), 490_000)
    ]
    texts = [encode(told[0])]
    for each in told[1:]:
        texts = joined(encode(each), texts)
    assert texts == [encode(told[-1])]


@pytest.mark.parametrize("covering", [False, True])
@pytest.mark.parametrize("key", [LOG, "0123456789abcdef" * 2 + "89abcdef", "0.1", "a"])
@given(one=st.integers(0, 2**64 - 1), two=st.integers(0, 2**64 - 1))
def test_only_earlier_ones_go(*, key: str, one: int, two: int, covering: bool) -> None:
    """Of the same log and kind: exact and covering ones do not stand for each other."""
    new, old = (WriteId("posts", key, each, 5, covering) for each in (one, two))
    other = WriteId("posts", key, two, 5, not covering)
    texts = [encode(Lineage([each])) for each in (new, old, other)]
    kept = joined(texts[0], texts[1:])
    assert kept == [texts[0], *([texts[1]] if two > one else []), texts[2]]


@given(lineages(max_size=6))
def test_servers_read_it_alike(lineage: Lineage) -> None:
    """No character that a quoted text of some SQL mode, or a parameter's mark, would change."""
    assert not set(superseded(encode(lineage))) & set("\\'\"%`\n")
