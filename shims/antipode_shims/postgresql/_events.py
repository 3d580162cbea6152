"""The lineage of an event that the store emits: a commit that was read from its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode import Lineage, WriteId
from antipode.shim import SYSTEM_CLOCK, of_an_event, positions_now

from ._position import Log, LsnError, parse_lsn

if TYPE_CHECKING:
    from collections.abc import Collection

_MOST_LSN = 2**64 - 1
_MOST_LOGS = 64
#: Where timelines begin that were asked for, by datastore, system and timeline: that never changes.
_logs: dict[tuple[str, str, int], Log] = {}


@of_an_event
def lineage(
    datastore: str,
    *,
    lsn: str | int,
    system: str | int | None = None,
    timeline: int | None = None,
    timeout: float = 5.0,
) -> Lineage:
    """What an event depends on that was read from PostgreSQL's log: the commit that emitted it.

    What is not given is asked of the primary, once for each event, or once for a *timeline* that is
    named with its *system*: pass what the reader knows (``IDENTIFY_SYSTEM`` of the replication
    protocol, ``pg_control_system()``). An event without a position, such as that of ``NOTIFY``,
    takes ``antipode.as_of_now()``.

    Args:
        datastore: the name that every service spells alike.
        lsn: the *end* of the commit, as PostgreSQL writes it or as a number: ``nextlsn`` of
            wal2json, the end of pgoutput's ``Commit``, the ``lsn`` of the ``COMMIT`` row of
            ``pg_logical_slot_get_changes``. A change's own position is before it: who waits for
            that reads too early.
        system: PostgreSQL's system identifier.
        timeline: in which it was committed.
        timeout: seconds that the primary may take.

    Returns:
        The commit. Incomplete (``unsampled``) where the primary does not answer, or where the
        timeline is another one than the primary's and not the first: barriers then wait for all
        that the primary has. An event of another system, or of a timeline that was left before it,
        has an entry that barriers refuse (``unknown_log``, ``lost``).

    Raises:
        ValueError: *lsn*, *system* or *timeline* is none.
        ConfigurationError: something is to be asked, and no client here reaches the primary.
    """
    position, named = _position(lsn), _log(system, timeline)
    if named is not None and named.timeline == 1:
        return _at(datastore, named, position)
    if named is not None and (known := _logs.get((datastore, named.system, named.timeline))):
        return _at(datastore, known, position)
    found = positions_now(datastore, timeout_s=timeout) or ()
    logs = _of(found)
    log = _chosen(logs, None if system is None else str(system), timeline)
    if log is None:
        return Lineage(incomplete=[(datastore, "unsampled")])
    if log in logs:
        if len(_logs) >= _MOST_LOGS:
            _logs.clear()
        _logs[datastore, log.system, log.timeline] = log
    return _at(datastore, log, position)


def _chosen(found: Collection[Log], system: str | None, timeline: int | None) -> Log | None:
    """The log of an event, by what primaries write now; None where nobody can say."""
    if system is not None and found and all(log.system != system for log in found):
        return Log(system, timeline or 1, 0)  # Of no server here, wherever it begins.
    fitting = [log for log in found if timeline in (None, log.timeline)]
    if not fitting and timeline == 1 and len(systems := {log.system for log in found}) == 1:
        return Log(systems.pop(), 1, 0)
    return fitting[0] if len(fitting) == 1 else None


def _of(positions: Collection[WriteId]) -> set[Log]:
    return {log for write in positions if (log := Log.of(write.key)) is not None}


def _at(datastore: str, log: Log, position: int) -> Lineage:
    return Lineage([WriteId(datastore, log.key, position, SYSTEM_CLOCK.hour())])


def _position(lsn: str | int) -> int:
    """The end of a commit.

    Raises:
        LsnError: it is none.
    """
    position = parse_lsn(lsn) if isinstance(lsn, str) else lsn
    if isinstance(position, bool) or not isinstance(position, int):
        raise LsnError(f"lsn must be a text such as '16/B374D848', or a number, not {lsn!r}")
    if not 0 < position <= _MOST_LSN:
        raise LsnError(f"{lsn!r} is the end of no commit")
    return position


def _log(system: str | int | None, timeline: int | None) -> Log | None:
    """The timeline that is named, as if it were the first; None where it is not named whole.

    Raises:
        LsnError: there is no such system, or no such timeline.
    """
    made = Log(str(1 if system is None else system), 1 if timeline is None else timeline, 0)
    if Log.of(made.key) != made:
        msg = f"system={system!r}, timeline={timeline!r}: PostgreSQL numbers neither so"
        raise LsnError(msg)
    return None if system is None or timeline is None else made
