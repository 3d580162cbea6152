"""What MongoDB's held reads answer to the guard, without a server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from bson import Timestamp

from antipode import StaleSnapshot, WriteId
from antipode.shim import Observation
from antipode_shims.mongodb._clients.call import SessionState
from antipode_shims.mongodb._clients.held import Attempt, HeldBatch
from antipode_shims.mongodb._clients.known import Memory
from tests.unit._floors import floor_of

if TYPE_CHECKING:
    from antipode.shim import Steps

WRITE = WriteId("posts", "rs.3", 5 << 32 | 1)
SERVER = "server-1"


class Connection:
    """One that is never used: weak references to it are possible."""


def rules_of(*, cursors: bool = False, proved_s: int = 0) -> Any:
    """Of a client that knows no server; *proved_s* is up to when its transactions see."""
    state = SessionState(proved={"rs.3": proved_s << 32})
    return SimpleNamespace(
        memory=Memory(),
        shim=SimpleNamespace(majority=False),
        kept=None,
        majority_cursors=cursors,
        defaults=SimpleNamespace(majority=False),
        session=lambda _: state,
    )


def session_of(*, in_transaction: bool = False, snapshot_s: int = 0) -> Any:
    """A session, in the midst of its transaction, or with a snapshot of some second."""
    return SimpleNamespace(
        in_transaction=in_transaction,
        _starting_transaction=False,
        options=SimpleNamespace(snapshot=bool(snapshot_s)),
        _snapshot_time=Timestamp(snapshot_s, 1) if snapshot_s else None,
    )


def outcome(steps: Steps[None]) -> str:
    """What a read comes to before any answer: it is sent, its server is asked, or it is stale."""
    try:
        next(steps)
    except StopIteration:
        return "sent"
    except StaleSnapshot:
        return "stale"
    return "asked"


def found(rules: Any, session: Any) -> str:
    """What a ``find`` of *session* comes to."""
    call: Any = SimpleNamespace(again=None, proved=None, passed=lambda: None)
    read = Attempt(rules, call, floor_of("posts", WRITE), Connection())
    return outcome(read.before({"find": "posts"}, session))


@pytest.mark.parametrize("proved_on", ["", SERVER])
def test_local_proofs_are_none_for_reads_of_a_majority(proved_on: str) -> None:
    """A cursor is not let go by what local reads, or a barrier's, have shown."""
    held = floor_of("posts", WRITE, proved_on=proved_on)
    for cursors, expected in ((False, "sent"), (True, "asked")):
        rules, connection = rules_of(cursors=cursors), Connection()
        rules.memory.learn(connection, SERVER, held, majority=False)
        assert outcome(HeldBatch(rules, held, connection, streams=False).let()) == expected


def test_a_batch_that_is_sent_unasked_may_have_left_before() -> None:
    """A question on its connection comes too late for it, whatever the answer."""
    held = floor_of("posts", WRITE)
    for streams, expected in ((False, "asked"), (True, "stale")):
        read = HeldBatch(rules_of(), held, Connection(), streams=streams)
        assert outcome(read.let()) == expected


@pytest.mark.parametrize(("proved_s", "expected"), [(6, "sent"), (4, "stale")])
def test_a_transaction_reads_from_the_snapshot_of_its_first_command(
    proved_s: int, expected: str
) -> None:
    """What was shown before that was taken is seen; no question can show the rest."""
    assert found(rules_of(proved_s=proved_s), session_of(in_transaction=True)) == expected


@pytest.mark.parametrize(("snapshot_s", "expected"), [(6, "asked"), (4, "stale")])
def test_a_session_reads_from_the_snapshot_of_its_first_read(
    snapshot_s: int, expected: str
) -> None:
    """One that is older than a write never shows it."""
    assert found(rules_of(), session_of(snapshot_s=snapshot_s)) == expected


def test_a_read_that_may_be_stale_proves_nothing() -> None:
    """A server that was late when it was let go is asked again before the next one."""
    for served, expected in ((False, "sent"), (True, "asked")):
        held, rules, connection = floor_of("posts", WRITE), rules_of(), Connection()
        first, second = (HeldBatch(rules, held, connection, streams=False) for _ in range(2))
        held.served = served
        first.settle(Observation(SERVER, {}), outside=False)
        held.served = False
        assert outcome(second.let()) == expected
