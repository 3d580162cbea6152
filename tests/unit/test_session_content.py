"""What session cookies say: nothing is lost in silence, and no content does harm."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antipode import Lineage, LineageDecodeError
from antipode._propagation.session import Part, content_of, joined, living, parts_of
from antipode_testing import VirtualClock
from tests.unit._lineages import lineages

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Lineages of all kinds take long to make.
pytestmark = pytest.mark.slow
CLOCK = VirtualClock()
NOW_S = int(CLOCK.unix_s())
PARTS = st.lists(st.builds(Part, st.integers(NOW_S - 90, NOW_S), lineages(max_size=4)), max_size=4)


def whole(parts: Iterable[Part]) -> Lineage:
    """Everything that *parts* say."""
    return Lineage().merge(*(part.lineage for part in parts))


def here(parts: list[Part]) -> list[Part]:
    """*parts* as they are received: of hours that are past."""
    hour, latest_s = CLOCK.hour(), NOW_S + 7 * 86_400
    return [Part(s, each.received(hour=hour, latest_s=latest_s)) for s, each in parts]


@given(PARTS)
def test_joined_parts_say_all(parts: list[Part]) -> None:
    """Parts lose what newer ones say, and nothing else; each second is there once."""
    found = joined(parts)
    assert whole(found) == whole(parts)
    assert [part.second for part in found] == sorted({part.second for part in found}, reverse=True)
    assert joined(reversed(found)) == found


@given(PARTS)
def test_what_is_young_enough_stays(parts: list[Part]) -> None:
    """However parts are joined, what an age still reaches is in what lives of them."""
    young = whole(living(parts, now_s=NOW_S, max_age_s=60))
    kept = whole(living(joined(parts), now_s=NOW_S, max_age_s=60))
    assert kept.merge(young) == kept


@given(PARTS, st.integers(100, 400))
def test_a_content_is_short_and_says_what_it_lost(parts: list[Part], room: int) -> None:
    """It has its bound, and comes back whole, or with marks for what is not in it."""
    parts = joined(here(parts))
    if not parts:
        return
    content = content_of(parts, room=room)
    assert len(content) <= room
    found, before = whole(parts_of(content, CLOCK)), whole(parts)
    lost = before.beyond(found)
    marked = {mark.subject for mark in found.incomplete}
    assert lost.datastores <= marked or "" in marked


@given(st.text(alphabet="0123456789az:!~.-kiup1", max_size=80) | st.text(max_size=80))
def test_a_content_is_read_or_refused(content: str) -> None:
    """Whatever is signed by mistake raises one error alone."""
    with suppress(LineageDecodeError):
        assert parts_of(content, CLOCK)
