"""Records of promises on Redis, judged without a server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from antipode import Promise, PromiseAbandoned, Status, WriteId
from antipode_shims.redis._clients.call import Rules
from antipode_shims.redis._look import look
from antipode_shims.redis._position import INFO, InfoError, LogHistory
from antipode_shims.redis._promises.records import FULFILLED, refuse_abandoned, set_record
from tests.unit._floors import floor_of

from .test_redis_info import NEW, OLD, info

PROMISE = Promise("posts", "00112233445566778899aabbccddeeff", 4_000_000_000)
OTHER = Promise("posts", "f" * 32, 4_000_000_000)
KEYS = [f"ap:promise:{each.id}" for each in (PROMISE, OTHER)]
SYNCING = {"role": "slave", "slave_repl_offset": 120, "master_sync_in_progress": 1}


def looked(steps: Any, *replies: list[Any]) -> Any:
    """What a look comes to that is answered so."""
    next(steps)
    *asked, last = replies
    for reply in asked:
        steps.send(reply)
    with pytest.raises(StopIteration) as end:
        steps.send(last)
    return end.value.value


def test_position_and_records_are_asked_for_at_one_moment() -> None:
    """A transaction that only asks: no write comes between a record and its position."""
    steps = look((), LogHistory(), promises=[PROMISE, OTHER], prefix="ap:")
    assert next(steps) == [("MULTI",), INFO, ("MGET", *KEYS), ("EXEC",)]
    with pytest.raises(StopIteration) as end:
        steps.send([b"OK", b"QUEUED", b"QUEUED", [info(), [b"fulfilled", None]]])
    shown = end.value.value
    assert shown.server == NEW
    assert shown.promises == {PROMISE: Status.VISIBLE, OTHER: Status.NOT_YET}


def test_records_of_an_earlier_moment_do_not_join_a_later_history() -> None:
    """Where a log is asked for and the history has changed meanwhile, records are left out."""
    write = WriteId("posts", OLD, 100)
    first = [b"OK", b"QUEUED", b"QUEUED", [info(), [b"fulfilled"]]]
    same = [b"OK", b"QUEUED", b"QUEUED", [info(), [None]]]
    other = [b"OK", b"QUEUED", b"QUEUED", [info(master_replid="d" * 40), [None]]]
    for second, promises in ((same, {PROMISE: Status.VISIBLE}), (other, {})):
        steps = look([write], LogHistory(), promises=[PROMISE], prefix="ap:")
        assert looked(steps, first, second).promises == promises


def test_data_that_is_being_replaced_shows_no_record() -> None:
    """During a full resync nobody has looked: neither presence nor absence counts."""
    steps = look((), LogHistory(), promises=[PROMISE], prefix="ap:")
    replies = [b"OK", b"QUEUED", b"QUEUED", [info(**SYNCING), [b"fulfilled"]]]
    assert looked(steps, replies).promises == {}


@pytest.mark.parametrize(
    "replies",
    [
        [b"OK", b"QUEUED", ValueError("NOPERM"), ValueError("EXECABORT")],
        [b"OK", b"QUEUED", b"QUEUED", [info(), ValueError("MASTERDOWN")]],
        [b"OK", b"QUEUED", b"QUEUED", None],
    ],
    ids=["refused", "failed", "nothing"],
)
def test_refused_question_is_no_absence(replies: list[Any]) -> None:
    """What the server refuses to answer is never taken for a record that is not there."""
    steps = look((), LogHistory(), promises=[PROMISE], prefix="ap:")
    next(steps)
    with pytest.raises(InfoError, match="records of promises"):
        steps.send(replies)


@pytest.mark.parametrize(
    ("reply", "recorded", "accepted"),
    [
        (info(), NEW, True),
        (info(), "", False),
        (info(), OLD, False),
        (info(**SYNCING), NEW, False),
    ],
    ids=["same history", "not looked", "another history", "resync"],
)
def test_read_behind_a_record_is_on_its_history(
    reply: bytes,
    recorded: str,
    accepted: bool,  # noqa: FBT001 - a parameter of a test
) -> None:
    """Records that were seen just before the read count for it on the same history alone."""
    shim: Any = SimpleNamespace(datastore="posts", stored=None, history=LogHistory())
    held = floor_of("posts", PROMISE)
    rules = Rules(shim, SimpleNamespace(max_connections=0))
    assert rules.judge(held, reply, final=True, recorded=recorded) is accepted


def test_first_record_stays() -> None:
    """A record is written where there is none; one that gives up is refused."""
    command = set_record(PROMISE, "ap:", FULFILLED)
    assert command[:3] == ("SET", KEYS[0], "fulfilled")
    assert command[-1] == "NX"
    for record in (None, b"fulfilled", "fulfilled"):
        refuse_abandoned(PROMISE, record)
    for record in (b"abandoned", "abandoned"):
        with pytest.raises(PromiseAbandoned):
            refuse_abandoned(PROMISE, record)
