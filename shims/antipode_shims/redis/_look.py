"""One poll of a server as a conversation without I/O: the APIs only send and receive."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from antipode import Status
from antipode.shim import Observation
from antipode_shims.redis._commands import Command

from ._position import (
    INFO,
    LOG_KEY,
    LogHistory,
    observation,
    parse_info,
    unknown_logs,
)
from ._promises.records import answered, asking
from ._promises.records import shown as recorded

if TYPE_CHECKING:
    from antipode import Promise, WriteId

#: Yields commands for one round trip, is sent their replies, returns its result.
Look = Generator[list[Command], list[Any], Observation]


def look(
    writes: Collection[WriteId],
    history: LogHistory,
    *,
    run_id: str = "",
    promises: Sequence[Promise] = (),
    prefix: str = "",
) -> Look:
    """Ask for the position; where a log is unknown, ask the log history once more.

    The second question is atomic: it must not pair one history's log with another's position.
    So is the first where it is also for the records of *promises*.

    Raises:
        InfoError: the server does not answer as Redis does.
    """
    if promises:
        info, records = answered((yield asking(promises, prefix)))
        state = parse_info(info)
        found = recorded(promises, records, state)
    else:
        state, found = parse_info((yield [INFO])[0]), {}
    shown = observation(state, writes, history, run_id=run_id, promises=found)
    logs = unknown_logs(shown)
    if not logs:
        return shown
    replies = yield [("MULTI",), INFO, ("HMGET", LOG_KEY, *logs), ("EXEC",)]
    answers = replies[-1]
    if not isinstance(answers, (list, tuple)):
        return shown
    state = parse_info(answers[0])
    history.learn(state.replid, logs, answers[1])
    later = observation(state, writes, history, run_id=run_id)
    return replace(later, promises=found) if later.server == shown.server else later


def patient(shown: Observation) -> Observation:
    """A look for one floor: a server that lacks any of it may lack the log history, too.

    The history is replicated as writes are, so a log is unknown for good only where all else of
    the floor has arrived. Not for polls that barriers share: one would wait for another's write.
    """
    if Status.NOT_YET not in shown.statuses.values() or not unknown_logs(shown):
        return shown
    statuses = {
        write: Status.NOT_YET if status is Status.UNKNOWN_LOG else status
        for write, status in shown.statuses.items()
    }
    return replace(shown, statuses=statuses)
