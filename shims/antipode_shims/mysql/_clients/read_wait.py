"""What is asked on the connection that reads, before a read that a floor holds back.

Positions are asked for without touching a table. A search for records of promises is a read like
the application's own, and must not be the one that opens the snapshot from which that reads: what
is committed later would never show there.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from antipode import AntipodeError, Status
from antipode.shim import Observation, Unreachable
from antipode_shims._sql.promises import Records
from antipode_shims.mysql._position.flavor import Ask, Refused, text
from antipode_shims.mysql._position.ok_packet import AUTOCOMMIT, IN_TRANSACTION
from antipode_shims.mysql._promises.records import records

from .session import Verdict
from .tap import ISOLATION, SLICE_S

#: Whether nothing that a write may set off reads, and whether what locks its tables can read no
#: others: through a view, or of the server's own. Who may not see triggers is shown none.
_UNTRIGGERED = (
    "SELECT NOT EXISTS (SELECT 1 FROM information_schema.TRIGGERS"
    " WHERE TRIGGER_SCHEMA NOT IN ('mysql', 'sys'))"
    " AND NOT EXISTS (SELECT 1 FROM information_schema.ROUTINES"
    " WHERE ROUTINE_TYPE = 'FUNCTION' AND ROUTINE_SCHEMA NOT IN ('mysql', 'sys'))"
    " AND (EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES"
    " WHERE PRIVILEGE_TYPE = 'TRIGGER')"
    " OR NOT EXISTS (SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN"
    " ('information_schema', 'performance_schema', 'mysql', 'sys') AND SCHEMA_NAME NOT IN"
    " (SELECT TABLE_SCHEMA FROM information_schema.SCHEMA_PRIVILEGES"
    " WHERE PRIVILEGE_TYPE = 'TRIGGER'))) AS untriggered,"
    " NOT EXISTS (SELECT 1 FROM information_schema.VIEWS WHERE TABLE_SCHEMA NOT IN"
    " ('information_schema', 'performance_schema', 'mysql', 'sys'))"
    " AND COALESCE(DATABASE(), '') NOT IN ('information_schema', 'mysql', 'sys') AS viewless"
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode.shim import Floor
    from antipode_shims.mysql._position.flavor import Asking, Rows

    from .tap import Tap

#: Whether the snapshot was taken nobody saw: the server is asked what may have taken it.
UNSEEN = (Verdict.TRIGGERED, Verdict.LOCKED)
#: Seconds after the floor's time within which the last poll may be answered: the server blocks
#: until then.
_LATE_S = 0.25
#: What a client gets when that is over: it takes 0 for "no limit".
_LEAST_S = 0.01


@contextmanager
def limited(tap: Tap, held: Floor) -> Iterator[None]:
    """Hold a read back for *held* without waiting any longer for a server that does not answer.

    Raises:
        BarrierTimeout: it did not, and the client has given the connection up.
    """
    tap.until_s = time.monotonic() + held.poll_s + _LATE_S
    try:
        yield
    except AntipodeError:
        raise
    except Exception as error:
        if left_s(tap) <= _LEAST_S:
            held.expire(Unreachable(str(error)))
        raise
    finally:
        tap.until_s = None


def left_s(tap: Tap) -> float:
    """Seconds that the next question may take, while a floor limits it."""
    until_s = tap.until_s
    return 0.0 if until_s is None else max(until_s - time.monotonic(), _LEAST_S)


def hold(
    tap: Tap,
    held: Floor,
    found: int,
    ask: Callable[[str], Rows],
    *,
    longest_s: float = SLICE_S,
) -> None:
    """Hold a statement that reads until its floor is met on this connection.

    Args:
        tap: of the connection that reads.
        held: what the read must see.
        found: what the statement does, as the session judges it.
        ask: asks the server behind the connection.
        longest_s: the longest that the server may block for one question, in seconds.

    Raises:
        StaleSnapshot: the open transaction reads from an older snapshot.
        UnmetError: the floor is not met in time, or never.
    """
    verdict = tap.session.judge(held, found)
    if verdict is Verdict.PASS:
        held.passed()
        return
    facts, renews = tap.known(), False
    if verdict is not Verdict.HOLD:
        renews = tap.shim.converse(old_snapshot(tap, held, verdict), ask)
    seen: list[Observation] = []

    def look(timeout_s: float) -> Observation:
        wait_s = tap.block_s(held, min(timeout_s, longest_s), first=not seen)
        steps = held_look(tap, held, renews=renews, wait_s=wait_s)
        try:
            observation = tap.shim.converse(steps, ask)
        except Unreachable:  # An upstream's: this connection raises the client's errors.
            observation = Observation(facts.server, {})
        seen[:] = [observation]
        return observation

    held.hold(look, places=tap.places)
    if verdict in UNSEEN and not renews:
        tap.shim.converse(untriggered(tap, held, verdict), ask)
    if not held.served:
        tap.shown(held, seen, renews=verdict is not Verdict.HOLD)


def held_look(tap: Tap, held: Floor, *, renews: bool, wait_s: float) -> Asking[Observation]:
    """Poll once for what *held* demands, blocking on the server where writes are missing.

    Args:
        tap: of the connection that reads.
        held: what the read must see.
        renews: whether reads of the open transaction are known to see what was committed last.
        wait_s: the longest that the server may block, in seconds.

    Raises:
        StaleSnapshot: the poll opened the snapshot of the application's transaction, and a record
            that comes later cannot show in it.
        ConfigurationError: this user may not ask for promises.
    """
    facts = tap.known()
    shown = Observation(facts.server, {})
    if held.writes:
        shown = yield from tap.shim.observe(facts, held.writes, wait_s=wait_s)
    if not held.promises:
        return shown
    try:
        found = yield from _look(tap, held, shown, renews=renews)
    except Refused as error:
        found = Records(cause=str(error))
    return replace(shown, promises=found.statuses, promise_causes=found.causes(held.promises))


def old_snapshot(tap: Tap, held: Floor, verdict: Verdict) -> Asking[bool]:
    """Whether reads of the open transaction see what was committed last.

    Raises:
        StaleSnapshot: they do not, and its snapshot is older than *held*.
    """
    rows = yield Ask(ISOLATION[tap.known().flavor])
    if tap.session.reads_committed(text(rows[0]["level"])):
        return True
    if verdict is Verdict.OLD_SNAPSHOT:
        tap.stale(held)
    return False


def untriggered(tap: Tap, held: Floor, verdict: Verdict) -> Asking[None]:
    """Make sure that what the open transaction wrote or locked took no snapshot besides.

    Asked once the floor is met, for MySQL may take the snapshot here.

    Raises:
        StaleSnapshot: there may be a trigger, a function or a view that did.
    """
    rows = yield Ask(_UNTRIGGERED)
    locked = verdict is Verdict.LOCKED
    if not rows[0]["untriggered"] or (locked and not rows[0]["viewless"]):
        tap.stale(held)


def _look(tap: Tap, held: Floor, shown: Observation, *, renews: bool) -> Asking[Records]:
    session, flavor = tap.session, tap.known().flavor
    before = session.status
    once = session.isolated_once
    table = tap.shim.promised_in or tap.shim.promise_table
    look = records(table, held.promises, flavor, unsure=once)
    if renews or before & (IN_TRANSACTION | AUTOCOMMIT) == AUTOCOMMIT:
        return (yield from look)
    if not before & IN_TRANSACTION and not once:
        found = yield from look
        yield Ask("ROLLBACK")  # It opened a transaction, of which the application knows nothing.
        session.heard(before)
        return found
    rows = yield Ask(ISOLATION[flavor])
    if session.reads_committed(text(rows[0]["level"])):
        return (yield from look)
    if any(shown.statuses.get(each) is not Status.VISIBLE for each in held.writes):
        return Records(cause="it is asked for once the writes are visible")
    found = yield from look
    session.snapshot_taken()
    if any(each not in found.statuses for each in held.promises):
        tap.stale(held)
    return found
