"""What MongoDB's replies say about positions, and what is concluded from them, without a server."""

from __future__ import annotations

from typing import Any

import pytest
from bson import ObjectId, Timestamp
from hypothesis import given
from hypothesis import strategies as st

from antipode import ConfigurationError, Status, WriteId
from antipode.shim import Observation, Unreachable
from antipode_shims.mongodb._clients.pymongo import in_doubt, pymongo_module
from antipode_shims.mongodb._look import Target, converse, look, shown_in, target_in
from antipode_shims.mongodb._position.history import Fate, LogHistory, judge
from antipode_shims.mongodb._position.reply import (
    ServerState,
    local_position,
    read_position,
    state_of_hello,
    state_of_reply,
    write_position,
)
from antipode_shims.mongodb._position.timestamps import (
    Log,
    OpTime,
    log_key,
    log_of,
    timestamp_of,
    version_of,
)

BORN_S = 1_700_000_000
SET_ID = ObjectId(BORN_S.to_bytes(4, "big") + b"12345678")


def at(second: int, increment: int = 1) -> int:
    """A version, in seconds after the set was initiated."""
    return (BORN_S + second) << 32 | increment


def optime(second: int, term: int) -> dict[str, Any]:
    return {"ts": timestamp_of(at(second)), "t": term}


def state(applied: tuple[int, int], committed: tuple[int, int], **more: Any) -> ServerState:
    """A server's state from (term, second) each."""
    known = {"primary": False, "initiated_s": BORN_S, "heard": at(applied[1]), **more}
    places = (OpTime(term, at(second)) for term, second in (applied, committed))
    return ServerState("rs", *places, **known)


def asked(*, primary: bool, applied: int = 10, committed: int = 5, term: int = 3) -> dict[str, Any]:
    """A reply to a command that asked where the server stands."""
    return {
        "ok": 1.0,
        "operationTime": timestamp_of(at(applied)),
        "$clusterTime": {"clusterTime": timestamp_of(at(applied + 2))},
        "$replData": {
            "replicaSetId": SET_ID,
            "isPrimary": primary,
            "lastOpCommitted": optime(committed, term),
        },
        "$oplogQueryData": {"lastOpApplied": optime(applied, term), "rbid": 4},
    }


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_versions_are_timestamps(seconds: int, increment: int) -> None:
    """A version is a timestamp, all of its 64 bits, and back."""
    timestamp = Timestamp(seconds, increment)
    assert timestamp_of(version_of(timestamp)) == timestamp


@given(
    st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
)
def test_versions_are_ordered_as_timestamps(one: tuple[int, int], two: tuple[int, int]) -> None:
    """A later timestamp is a larger version."""
    assert (version_of(Timestamp(*one)) < version_of(Timestamp(*two))) == (one < two)


@given(st.text(min_size=1), st.none() | st.integers(0, 2**63))
def test_log_names_are_read_back(set_name: str, term: int | None) -> None:
    """Whatever the set's name, its logs are told from each other."""
    assert log_of(log_key(set_name, term), set_name) == Log(term)


@pytest.mark.parametrize("key", ["", "rs.", "rs.x", "rs.1.2", "other", "other.1", "RS.1", "rs.²"])
def test_foreign_logs(key: str) -> None:
    """What is no log of the set is taken for none."""
    assert log_of(key, "rs") is None


def test_position_of_a_write() -> None:
    """A write is in its primary's term, or in what a majority has where that is known."""
    reply = {"opTime": optime(10, 3)}
    assert write_position(reply, "rs", majority=False) == ("rs.3", at(10))
    assert write_position(reply, "rs", majority=True) == ("rs", at(10))
    proved = {**asked(primary=True, committed=10), **reply}
    assert write_position(proved, "rs", majority=False) == ("rs", at(10))
    assert write_position({**asked(primary=True), **reply}, "rs", majority=False) == (
        "rs.3",
        at(10),
    )


def test_position_of_a_write_whose_reply_has_none() -> None:
    """``findAndModify`` tells no term: it must have asked, or have been at a majority."""
    plain = {"operationTime": timestamp_of(at(10))}
    assert write_position(plain, "rs", majority=False) is None
    assert write_position(plain, "rs", majority=True) == ("rs", at(10))
    assert write_position(asked(primary=True), "rs", majority=False) == ("rs.3", at(10))
    assert write_position(asked(primary=False), "rs", majority=False) is None
    assert write_position({"opTime": Timestamp(0, 0)}, "rs", majority=False) is None


def test_position_of_a_read() -> None:
    """On a primary only the cluster time covers a local read; elsewhere the operation's does."""
    assert read_position(asked(primary=True), "rs", majority=False) == ("rs.3", at(12))
    assert read_position(asked(primary=False), "rs", majority=False) == ("rs.3", at(10))
    assert read_position(asked(primary=True), "rs", majority=True) == ("rs", at(10))
    everywhere = asked(primary=False, committed=10)
    assert read_position(everywhere, "rs", majority=False) == ("rs", at(10))
    # The cluster time is past what a majority is known to have.
    ahead = asked(primary=True, committed=10)
    assert read_position(ahead, "rs", majority=False) == ("rs.3", at(12))
    assert read_position({"operationTime": timestamp_of(1)}, "rs", majority=False) is None
    assert read_position({}, "rs", majority=True) is None


def test_fence_covers_what_was_heard_of() -> None:
    """The position of now is never before an entry that is visible but not counted as applied."""
    assert local_position(state((3, 10), (3, 5), primary=True, heard=at(11))) == ("rs.3", at(11))
    assert local_position(state((3, 10), (3, 10), primary=True)) == ("rs", at(10))


def test_hello() -> None:
    """What a server says of itself, and which servers cannot be read."""
    hello = {
        "setName": "rs",
        "secondary": True,
        "lastWrite": {"opTime": optime(10, 3), "majorityOpTime": optime(5, 3)},
        "topologyVersion": {"processId": "p"},
    }
    told = state_of_hello({**asked(primary=False), **hello})
    assert told is not None
    assert (told.applied, told.committed) == (OpTime(3, at(10)), OpTime(3, at(5)))
    assert (told.incarnation, told.initiated_s, told.heard) == ("p/4", BORN_S, at(12))
    bare = state_of_hello(hello)
    assert bare is not None
    assert (bare.initiated_s, bare.heard) == (0, -1)
    for more in ({"secondary": False}, {"arbiterOnly": True}, {"lastWrite": {}}):
        assert state_of_hello({**hello, **more}) is None
    assert state_of_hello({"isreplicaset": True}) is None
    with pytest.raises(ConfigurationError, match="mongos"):
        state_of_hello({"msg": "isdbgrid", "isWritablePrimary": True})
    with pytest.raises(ConfigurationError, match="no member of a replica set"):
        state_of_hello({"isWritablePrimary": True})
    assert state_of_reply({"ok": 1.0}, "rs") is None


def verdict(
    here: ServerState, key: str, second: int, history: LogHistory | None = None, **more: Any
) -> Status | None:
    """The outcome of one position."""
    write = WriteId("posts", key, at(second), **more)
    return judge(here, write, history or LogHistory(), majority=False)[0]


def test_same_term() -> None:
    """In the term of the server's last entry, its timestamp decides."""
    here = state((3, 10), (3, 5))
    assert verdict(here, "rs.3", 10) is Status.VISIBLE
    assert verdict(here, "rs.3", 11) is Status.NOT_YET
    write = WriteId("posts", "rs.3", at(10))
    assert judge(here, write, LogHistory(), majority=True)[0] is Status.NOT_YET


def test_later_term() -> None:
    """A server that has nothing of the position's term lacks it, whatever its timestamps."""
    assert verdict(state((2, 99), (2, 5)), "rs.3", 10) is Status.NOT_YET


def test_committed_log() -> None:
    """What a majority has is judged by the commit point alone: an old primary has timestamps."""
    assert verdict(state((2, 99), (2, 5)), "rs", 10) is Status.NOT_YET
    assert verdict(state((9, 99), (9, 10)), "rs", 10) is Status.VISIBLE


def test_unknown_logs() -> None:
    """Another set, or a set of this name that was initiated anew, has another history."""
    here = state((3, 10), (3, 10))
    assert verdict(here, "other.3", 5) is Status.UNKNOWN_LOG
    assert verdict(here, "rs.3", -1) is Status.UNKNOWN_LOG
    assert verdict(here, "rs", -1) is Status.UNKNOWN_LOG
    opaque = WriteId("posts", "rs.3", "text")
    assert judge(here, opaque, LogHistory(), majority=False)[0] is Status.UNDECIDABLE


def oplog(*entries: tuple[int, int | None]) -> Any:
    """Answers questions to an oplog of (second, term)."""

    def answer(question: Any) -> Any:
        database, command = question
        assert (database, command["find"]) == ("local", "oplog.rs")
        least = command["filter"].get("ts", {}).get("$gte", timestamp_of(0))
        documents = [
            {"ts": timestamp_of(at(second)), **({} if term is None else {"t": term})}
            for second, term in entries
        ]
        found = [each for each in documents if each["ts"] >= least][:1]
        return {"cursor": {"firstBatch": found}}

    return answer


def asked_of(answer: Any, here: ServerState, write: WriteId, history: LogHistory) -> Observation:
    return converse(answer, shown_in(here, [write], history, majority=False))


@pytest.mark.parametrize(
    ("entries", "committed", "covering", "expected"),
    [
        # In the log, and at a majority.
        ([(0, None), (5, 3), (9, 4)], (4, 9), False, Status.VISIBLE),
        # A later entry of its term proves it as well.
        ([(0, None), (6, 3), (9, 4)], (4, 9), True, Status.VISIBLE),
        ([(6, 3), (9, 4)], (4, 9), False, Status.VISIBLE),
        # Not in the log, which reaches back to it and is at a majority in a later term.
        ([(0, None), (4, 3), (9, 4)], (4, 9), False, Status.LOST),
        ([(0, None), (4, 3)], (4, 4), False, Status.LOST),
        # What a read covered is no entry: nobody can tell what it was.
        ([(0, None), (4, 3), (9, 4)], (4, 9), True, Status.UNKNOWN_LOG),
        # The log does not reach back.
        ([(7, 4), (9, 4)], (4, 9), False, Status.UNKNOWN_LOG),
        # Nothing of a later term is at a majority: the old primary may win again.
        ([(0, None), (4, 3), (9, 4)], (3, 4), False, Status.NOT_YET),
        ([(0, None), (5, 3), (9, 4)], (3, 4), False, Status.NOT_YET),
    ],
)
def test_after_an_election(
    entries: list[tuple[int, int | None]],
    committed: tuple[int, int],
    covering: bool,  # noqa: FBT001 - a parameter of the table
    expected: Status,
) -> None:
    """The oplog tells what became of a position of an earlier term, once that is settled."""
    here, history = state((4, 9), committed), LogHistory()
    write = WriteId("posts", "rs.3", at(5), covering=covering)
    assert asked_of(oplog(*entries), here, write, history).statuses[write] is expected
    if expected is not Status.NOT_YET:
        assert asked_of(None, here, write, history).statuses[write] is expected


def test_facts_hold_for_neighbours() -> None:
    """What is before a survivor of a term survived, what is after a loss is lost."""
    here, history = state((4, 9), (4, 9)), LogHistory()
    history.learn(here, 3, at(5), Fate.SURVIVED)
    history.learn(here, 3, at(7), Fate.LOST)
    assert verdict(here, "rs.3", 4, history) is Status.VISIBLE
    assert verdict(here, "rs.3", 6, history) is None
    assert verdict(here, "rs.3", 8, history) is Status.LOST
    assert verdict(here, "rs.3", 8, history, covering=True) is Status.UNKNOWN_LOG
    assert verdict(here, "rs.2", 4, history) is None
    behind = state((4, 9), (4, 3))
    assert verdict(behind, "rs.3", 5, history) is Status.NOT_YET


def test_user_who_may_not_read_the_oplog() -> None:
    """Without the right to read ``local`` an earlier term is unknown, and may age."""

    class Refused(Exception):  # noqa: N818 - a stand-in for PyMongo's
        code = 13

    here, history = state((4, 9), (4, 9)), LogHistory()
    write = WriteId("posts", "rs.3", at(5))
    shown = asked_of(lambda _: Refused(), here, write, history)
    assert shown.statuses[write] is Status.UNKNOWN_LOG
    with pytest.raises(Unreachable):
        asked_of(lambda _: OSError("interrupted"), here, write, LogHistory())


def test_unreadable_server() -> None:
    """A look at a server that recovers is worth repeating."""
    write = WriteId("posts", "rs.3", at(5))
    with pytest.raises(Unreachable, match="neither primary nor secondary"):
        converse(lambda _: {"setName": "rs"}, look([write], LogHistory(), majority=False))


def target(state: ServerState, *writes: tuple[str, int]) -> Target | None:
    """What a server in *state* can be made to wait for where it misses *writes*."""
    missed = [WriteId("posts", key, at(second)) for key, second in writes]
    return target_in(Observation("", dict.fromkeys(missed, Status.NOT_YET)), state, majority=False)


def test_what_a_server_can_wait_for() -> None:
    """The smallest position beyond its timestamps; none where a wait would end at once."""
    heard = state((3, 10), (3, 5), heard=at(12))
    found = target(heard, ("rs.3", 12), ("rs", 11))
    assert found == Target(at(11), majority=True)
    assert found.concern == {"level": "majority", "afterClusterTime": timestamp_of(at(11))}
    assert target(state((2, 99), (2, 5)), ("rs.3", 12)) is None
    assert target(state((2, 9), (2, 5)), ("x", 99)) is None


@pytest.mark.parametrize(
    ("log", "term"),
    [("rs.3", 3), ("rs.4", 4), ("rs.2", 3), ("rs", 3)],
    ids=["of its term", "of a later one", "of an earlier one", "of none"],
)
def test_what_it_can_wait_for_unheard(log: str, term: int) -> None:
    """A place in its oplog, never of an earlier term than its own: that would end at once."""
    found = target(state((3, 10), (3, 5)), (log, 11))
    assert found is not None
    place = {"ts": timestamp_of(at(11)), "t": term}
    level = "majority" if log == "rs" else "local"
    assert found.concern == {"level": level, "afterOpTime": place}


def test_doubt() -> None:
    """Only errors after which the write cannot have been done leave no doubt."""
    errors = pymongo_module().errors
    for certain in (
        errors.OperationFailure("refused", 13),
        errors.NotPrimaryError("not primary", {"code": 10107}),
        errors.ServerSelectionTimeoutError("none"),
        errors.DocumentTooLarge("long"),
        TypeError("no BSON"),
    ):
        assert not in_doubt(certain)
    for doubtful in (
        errors.AutoReconnect("reset"),
        errors.NetworkTimeout("slow"),
        errors.NotPrimaryError("stepped down", {"code": 189}),
        errors.ExecutionTimeout("slow", 50),
        KeyboardInterrupt(),
    ):
        assert in_doubt(doubtful)


def test_what_a_majority_does_not_have_may_be_rolled_back() -> None:
    """A server's own log proves nothing of an earlier term before a majority has it."""
    write, history = WriteId("posts", "rs.3", at(5)), LogHistory()
    early = state((4, 9), (3, 4))
    asked_of(oplog((0, None), (5, 3), (9, 4)), early, write, history)
    later = state((5, 12), (5, 12))
    found = asked_of(oplog((0, None), (4, 3), (12, 5)), later, write, history)
    assert found.statuses[write] is Status.LOST


def test_reads_of_a_majority_are_judged_by_its_position() -> None:
    """What one member has applied is not what reads with read concern ``majority`` show."""
    write = WriteId("posts", "rs.3", at(5))
    here = state((3, 9), (3, 4))
    for majority, expected in ((False, Status.VISIBLE), (True, Status.NOT_YET)):
        look_at = shown_in(here, [write], LogHistory(), majority=majority)
        assert converse(lambda _: {}, look_at).statuses[write] is expected
