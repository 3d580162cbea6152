"""What a Redis server shows of a position, decided without a server."""

from __future__ import annotations

import pytest

from antipode import Status, WriteId
from antipode_shims.redis._look import look
from antipode_shims.redis._position import (
    INFO,
    LOG_KEY,
    InfoError,
    LogHistory,
    ReplicationState,
    judge,
    observation,
    parse_info,
    plainly_shows,
    primary_place,
    replica_place,
)
from antipode_shims.redis._shim.base import LogRecorder

OLD, NEW, OTHER = "a" * 40, "b" * 40, "c" * 40
ZEROS = "0" * 40


def primary(replid: str = NEW, offset: int = 200, **more: object) -> ReplicationState:
    """A primary on *replid*."""
    return ReplicationState(primary=True, replid=replid, offset=offset, **more)  # type: ignore[arg-type]


def replica(replid: str = NEW, offset: int = 200, **more: object) -> ReplicationState:
    """A replica on *replid*."""
    return ReplicationState(primary=False, replid=replid, offset=offset, **more)  # type: ignore[arg-type]


def info(**fields: object) -> bytes:
    """A reply of a server, as Redis words it."""
    given = {
        "role": "master",
        "connected_slaves": 1,
        "slave0": "ip=127.0.0.1,port=1,state=online,offset=7,lag=0",
        "master_replid": NEW,
        "master_replid2": ZEROS,
        "master_repl_offset": 120,
        "second_repl_offset": -1,
        "repl_backlog_active": 1,
        **fields,
    }
    return b"# Replication\r\n" + "".join(f"{k}:{v}\r\n" for k, v in given.items()).encode()


PROMOTED = {"replid2": OLD, "second_offset": 121}


@pytest.mark.parametrize(
    ("state", "log", "offset", "ends", "status"),
    [
        (primary(), NEW, 200, {}, Status.VISIBLE),
        (primary(), NEW, 201, {}, Status.NOT_YET),
        (replica(), NEW, 200, {}, Status.VISIBLE),
        (replica(), NEW, 201, {}, Status.NOT_YET),
        (replica(link_up=False), NEW, 200, {}, Status.VISIBLE),
        (replica(link_up=False), NEW, 201, {}, Status.NOT_YET),
        (replica(syncing=True), NEW, 200, {}, Status.NOT_YET),
        (primary(**PROMOTED), OLD, 120, {}, Status.VISIBLE),
        (primary(**PROMOTED), OLD, 121, {}, Status.LOST),
        (replica(**PROMOTED), OLD, 120, {}, Status.VISIBLE),
        (replica(**PROMOTED), OLD, 121, {}, Status.UNKNOWN_LOG),
        (replica(**PROMOTED), OLD, 130, {OLD: 130}, Status.VISIBLE),
        (replica(**PROMOTED), OLD, 131, {OLD: 130}, Status.LOST),
        (replica(offset=125, **PROMOTED), OLD, 130, {OLD: 130}, Status.NOT_YET),
        (replica(link_up=False, **PROMOTED), OLD, 121, {}, Status.NOT_YET),
        (primary(), OTHER, 1, {}, Status.UNKNOWN_LOG),
        (replica(), OTHER, 1, {}, Status.UNKNOWN_LOG),
        (replica(link_up=False), OTHER, 1, {}, Status.NOT_YET),
        (replica(syncing=True), OTHER, 1, {}, Status.NOT_YET),
        (primary(), OTHER, 9, {OTHER: 10}, Status.VISIBLE),
    ],
)
def test_judgement(
    state: ReplicationState, log: str, offset: int, ends: dict[str, int], status: Status
) -> None:
    """Visible and lost are proofs; a replica that is cut off is never called ignorant."""
    assert judge(state, log, offset, ends)[0] is status


def test_parse_primary() -> None:
    """A primary stands at its ``master_repl_offset``; zeros mean that it knows no earlier log."""
    state = parse_info(info())
    assert state == primary(offset=120)
    assert state.ended_log is None


def test_parse_promoted() -> None:
    """A promoted server names the log that ended and its last offset."""
    state = parse_info(info(master_replid2=OLD, second_repl_offset=121))
    assert state.ended_log == (OLD, 120)


def test_parse_replica() -> None:
    """A replica stands at its ``slave_repl_offset``, not at its backlog's."""
    fields = {"role": "slave", "slave_repl_offset": 90, "master_link_status": "up"}
    assert parse_info(info(**fields)).offset == 90
    assert parse_info(info(**fields)).link_up
    assert not parse_info(info(**fields, master_sync_in_progress=1)).related
    down = parse_info(info(**fields | {"master_link_status": "down"}))
    assert not down.related


def test_parse_decoded_and_verbatim() -> None:
    """Decoded text and RESP3's verbatim strings read alike."""
    assert parse_info(info().decode()) == parse_info(info())
    assert parse_info(b"txt:" + info()) == parse_info(info())


@pytest.mark.parametrize(
    "reply", [None, b"", b"# Replication\r\nrole:master\r\n", ValueError("no")]
)
def test_parse_refuses(reply: object) -> None:
    """What is no position raises; it is never taken for offset 0."""
    with pytest.raises(InfoError):
        parse_info(reply)


def test_opaque_version_is_undecidable() -> None:
    """An entry that another kind of store minted under this name is not judged."""
    write = WriteId("posts", "key", "version")
    shown = observation(primary(), [write], LogHistory())
    assert shown.statuses == {write: Status.UNDECIDABLE}


def test_incarnation_changes_with_process_and_history() -> None:
    """Run id and replication id make the incarnation, never an address."""
    servers = {
        observation(state, [], LogHistory(), run_id=run_id).server
        for state in (primary(OLD), primary(NEW))
        for run_id in ("run1", "run2")
    }
    assert len(servers) == 4


def test_known_logs_cost_one_question() -> None:
    """The log history is asked only about logs that the server itself cannot relate."""
    write = WriteId("posts", NEW, 120)
    steps = look([write], LogHistory())
    assert next(steps) == [INFO]
    with pytest.raises(StopIteration) as end:
        steps.send([info()])
    assert end.value.value.statuses == {write: Status.VISIBLE}


def test_unknown_log_is_looked_up_once() -> None:
    """What the history says is remembered: the next look asks nothing more."""
    write, history = WriteId("posts", OLD, 100), LogHistory()
    steps = look([write], history)
    next(steps)
    assert steps.send([info()]) == [("MULTI",), INFO, ("HMGET", LOG_KEY, OLD), ("EXEC",)]
    with pytest.raises(StopIteration) as end:
        steps.send([b"OK", b"QUEUED", b"QUEUED", [info(), [b"100"]]])
    assert end.value.value.statuses == {write: Status.VISIBLE}
    again = look([write], history)
    next(again)
    with pytest.raises(StopIteration):
        again.send([info()])


@pytest.mark.parametrize("answer", [[None], [b"soon"], ValueError("WRONGTYPE"), None])
def test_unhelpful_history_stays_unknown(answer: object) -> None:
    """A history that is absent, damaged or of another type proves nothing."""
    write = WriteId("posts", OLD, 100)
    steps = look([write], LogHistory())
    next(steps)
    steps.send([info()])
    with pytest.raises(StopIteration) as end:
        steps.send([b"OK", b"QUEUED", b"QUEUED", [info(), answer]])
    assert end.value.value.statuses == {write: Status.UNKNOWN_LOG}


def test_history_belongs_to_one_replication_id() -> None:
    """What one history says about a log is not believed on a server of another."""
    history = LogHistory()
    history.learn(NEW, [OLD], [b"100"])
    write = WriteId("posts", OLD, 50)
    shown = observation(primary(OTHER), [write], history)
    assert shown.statuses == {write: Status.UNKNOWN_LOG}


def test_recorder_notes_each_promotion_once() -> None:
    """A promotion is noted once; a primary that was never promoted notes nothing."""
    recorder = LogRecorder("posts")
    promoted = primary(**PROMOTED)
    assert recorder.commands(primary()) == []
    assert recorder.commands(replica(**PROMOTED)) == []
    assert recorder.commands(promoted) == [("HSET", LOG_KEY, OLD, "120")]
    assert recorder.commands(promoted) == []


@pytest.mark.parametrize("backlog", [0, 1])
@pytest.mark.parametrize("second", [("0" * 40, -1), ("b" * 40, 121)])
def test_primary_reads_alike_by_either_way(backlog: int, second: tuple[str, int]) -> None:
    """The quick reading of a primary's answer finds what the reading line by line finds."""
    text = (
        "# Replication\r\nrole:master\r\nconnected_slaves:1\r\n"
        "slave0:ip=127.0.0.1,port=6380,state=online,offset=9,lag=0\r\n"
        "master_failover_state:no-failover\r\n"
        f"master_replid:{'a' * 40}\r\nmaster_replid2:{second[0]}\r\n"
        f"master_repl_offset:42\r\nsecond_repl_offset:{second[1]}\r\n"
        f"repl_backlog_active:{backlog}\r\nrepl_backlog_size:1048576\r\n"
    )
    assert parse_info(text.encode()) == parse_info(text)
    assert parse_info(text).offset == 42
    assert primary_place(text.encode()) == (("a" * 40, 42) if backlog else None)
    assert replica_place(text.encode()) is None


@pytest.mark.parametrize("read_offset", ["", "slave_read_repl_offset:43\r\n"])
@pytest.mark.parametrize("syncing", [0, 1])
def test_replica_reads_alike_by_either_way(read_offset: str, syncing: int) -> None:
    """The quick reading of a replica's answer finds what it has applied, unless it is resyncing."""
    text = (
        "# Replication\r\nrole:slave\r\nmaster_host:127.0.0.1\r\nmaster_port:6379\r\n"
        "master_link_status:up\r\nmaster_last_io_seconds_ago:0\r\n"
        f"master_sync_in_progress:{syncing}\r\n{read_offset}slave_repl_offset:42\r\n"
        "slave_priority:100\r\nslave_read_only:1\r\nreplica_announced:1\r\n"
        "connected_slaves:0\r\nmaster_failover_state:no-failover\r\n"
        f"master_replid:{'a' * 40}\r\nmaster_replid2:{'0' * 40}\r\n"
        "master_repl_offset:44\r\nsecond_repl_offset:-1\r\nrepl_backlog_active:1\r\n"
    )
    state = parse_info(text)
    assert state.syncing == bool(syncing)
    assert replica_place(text.encode()) == (None if syncing else (state.replid, state.offset))
    assert primary_place(text.encode()) is None


@pytest.mark.parametrize("reply", [None, b"", "text", ValueError("no")])
def test_nothing_quick_of_what_is_no_answer(reply: object) -> None:
    """What is no answer at all has no position by the quick readings either."""
    assert primary_place(reply) is None
    assert replica_place(reply) is None


def test_usual_case_is_judged_alike() -> None:
    """What is plainly shown is visible by the full judgement; nothing else is taken for it."""
    state = ReplicationState(primary=False, replid="a", offset=10, replid2="b", second_offset=5)
    for write in (
        WriteId("posts", "a", 10, 1),
        WriteId("posts", "a", 11, 1),
        WriteId("posts", "b", 3, 1),
        WriteId("posts", "c", 3, 1),
        WriteId("posts", "a", "opaque", 1),
    ):
        status = observation(state, [write], LogHistory()).statuses[write]
        plainly = plainly_shows(state.replid, state.offset, [write])
        assert plainly == (status is Status.VISIBLE and write.key == "a")
