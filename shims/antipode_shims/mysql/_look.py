"""One poll of a server as a conversation without I/O: what it has, and what may still come."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from antipode import Status, WriteId
from antipode.shim import PRIMARY_KEY, Observation, log_once

from ._position.flavor import Ask, Facts, Flavor, Refused
from ._position.gtid import MySQLLog, mariadb_log
from ._position.states import (
    STATE,
    Source,
    State,
    parse_sources,
    parse_state,
    primaries,
    sources_sql,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Generator

    from ._position.flavor import Asking, Rows

#: What lets a user ask for the state of replication.
GRANTS = {
    Flavor.MYSQL: "REPLICATION CLIENT",
    Flavor.MARIADB: "BINLOG MONITOR, REPLICA MONITOR",
}
#: How many servers a chain of replicas is followed up.
_DEPTH = 4
#: The longest that one statement blocks on the server, in seconds.
SLICE_S = 1.0
#: The same, where several logs are waited for and only one can be blocked on.
SHORT_SLICE_S = 0.05
#: How long what a poll showed is remembered, in seconds: a server that is reset in place keeps its
#: connections, and has nothing any more of what it showed.
FRESH_S = 2.0

Verdict = tuple[Status, str]


@dataclass(frozen=True)
class Shown:
    """What one poll showed.

    Attributes:
        state: what the server had.
        observation: of what was asked for.
        targets: what may still become visible, and what to block on until then.
    """

    state: State
    observation: Observation
    targets: tuple[WriteId, ...]


def look(facts: Facts, writes: Collection[WriteId], *, server: str = "") -> Asking[Shown]:
    """Ask for the position; where something is missing, whether it can still come."""
    state = yield from _ask_state(facts)
    verdicts: dict[WriteId, Verdict] = {}
    for write in writes:
        if state.has(write, replica=True):
            verdicts[write] = Status.VISIBLE, ""
        elif write.key == PRIMARY_KEY:
            verdicts[write] = yield from _judge_primary(facts, write)
    missing = [write for write in writes if write not in verdicts]
    if missing:
        state = yield from _judge_missing(facts, state, missing, verdicts)
    statuses = {write: status for write, (status, _) in verdicts.items()}
    causes = {write: cause for write, (_, cause) in verdicts.items() if cause}
    shown = Observation(server or facts.server, statuses, causes=causes)
    pending = (write for write in missing if statuses[write] is Status.NOT_YET)
    targets = tuple(sorted(pending, key=_order))
    return Shown(state, shown, targets)


def observe(facts: Facts, writes: Collection[WriteId], *, wait_s: float) -> Asking[Observation]:
    """Poll, block on the server for up to *wait_s* seconds if something is missing, poll again."""
    shown = yield from look(facts, writes)
    if wait_s > 0 and (sql := wait_sql(shown, wait_s)) is not None:
        try:
            yield Ask(sql)
        except Refused:
            return shown.observation  # Polled instead.
        shown = yield from look(facts, writes)
    return shown.observation


def wait_sql(shown: Shown, longest_s: float) -> str | None:
    """What blocks on the server until the smallest position that is missing may be visible.

    Returns:
        SQL that ends within *longest_s* and within a slice; None where nothing can block.
    """
    logs = {write.key for write in shown.targets}
    slice_s = min(longest_s, SLICE_S if len(logs) == 1 else SHORT_SLICE_S)
    for write in shown.targets:
        if (sql := shown.state.wait(write, max(slice_s, 0.001))) is not None:
            return sql
    return None


def _ask_state(facts: Facts) -> Asking[State]:
    rows = yield Ask(STATE[facts.flavor])
    return parse_state(facts, rows)


def _judge_missing(
    facts: Facts, state: State, missing: list[WriteId], verdicts: dict[WriteId, Verdict]
) -> Asking[State]:
    """Put into *verdicts* what becomes of *missing*; the state by which that was decided."""
    try:
        rows = yield Ask(sources_sql(facts))
    except Refused as error:
        for write in missing:
            verdicts[write] = _blind(facts, state, write, str(error))
        _warn(facts, missing[0].datastore, error)
        return state
    sources = parse_sources(facts, rows)
    for write in missing:
        verdicts[write] = yield from _judge(facts, state, sources, write)
    doubtful = [write for write in missing if verdicts[write][0] is not Status.NOT_YET]
    if doubtful:
        # It may have come, and its source gone, since the first poll.
        state = yield from _ask_state(facts)
        for write in doubtful:
            if state.has(write, replica=bool(sources)):
                verdicts[write] = Status.VISIBLE, ""
    return state


def _warn(facts: Facts, datastore: str, error: Refused) -> None:
    """Say once what a user may not ask: late writes are waited for all the same."""
    log_once(
        "mysql_privilege",
        datastore,
        facts.server,
        "whether a late write to %r is lost cannot be known, so that a barrier waits for it until "
        "its deadline: %s. What this user lacks is: GRANT %s ON *.*",
        datastore,
        error,
        GRANTS[facts.flavor],
    )


def _judge_primary(facts: Facts, write: WriteId) -> Asking[Verdict]:
    """Whether the server follows the primary of *write* now; :func:`antipode.shim.following`."""
    primary = str(write.version)
    try:
        status, cause = yield from _follow(facts, primary, None, depth=0)
    except Refused as error:
        if error.passing:
            return Status.NOT_YET, str(error)
        grant = f"GRANT {GRANTS[facts.flavor]} ON *.*"
        log_once(
            "mysql_privilege",
            write.datastore,
            facts.server,
            "whether a server of %r follows the primary that was asked for its position cannot be "
            "known, so barriers over incomplete lineages fail: %s. What this user lacks is: %s",
            write.datastore,
            error,
            grant,
        )
        cause = (
            f"whether the server follows the primary {primary} cannot be known: {error}; {grant}"
        )
        return Status.UNKNOWN_LOG, cause
    if status is Status.UNKNOWN_LOG:
        cause = f"the server does not follow the primary {primary}, which may have been replaced"
    return status, cause


def _follow(
    facts: Facts, primary: str, where: tuple[str, int] | None, *, depth: int
) -> Asking[Verdict]:
    """Whether a server is *primary*, or follows it over servers that are connected.

    Raises:
        Refused: it may not be asked.
    """
    if primary in (yield from primaries(facts, where)):
        return Status.VISIBLE, ""
    sources = parse_sources(facts, (yield Ask(sources_sql(facts), where)))
    if sources and depth >= _DEPTH:
        return Status.UNKNOWN_LOG, ""
    verdict: Verdict = Status.UNKNOWN_LOG, ""
    refused: Refused | None = None
    for source in sources:
        try:
            one = yield from _follow_source(facts, primary, source, depth=depth)
        except Refused as error:
            refused = error
            continue
        if one[0] is Status.VISIBLE:
            return one
        if one[0] is Status.NOT_YET:
            verdict = one
    if refused is not None and verdict[0] is Status.UNKNOWN_LOG:
        raise refused
    return verdict


def _follow_source(facts: Facts, primary: str, source: Source, *, depth: int) -> Asking[Verdict]:
    """The same of a server by way of one that it follows."""
    host = f"{source.host}:{source.port}"
    if not source.connected:
        return Status.NOT_YET, f"a server is not connected to its source {host}"
    if source.name == primary:
        return Status.VISIBLE, ""
    try:
        return (yield from _follow(facts, primary, (source.host, source.port), depth=depth + 1))
    except Refused as error:
        cause = f"the source {host} cannot be asked: {error}"
        raise Refused(cause, passing=error.passing, number=error.number) from error


def _late(state: State, write: WriteId, *more: str) -> Verdict:
    """Not yet: how far the server is, and what else there is to say."""
    where = f"the server is at {state.at(write)}, and the write is {write.version}"
    return Status.NOT_YET, "; ".join(filter(None, (where, *more)))


def _blind(facts: Facts, state: State, write: WriteId, error: str) -> Verdict:
    """Of a server that does not let this user ask for its sources.

    One that takes writes may have been promoted; one that does not follows another.
    """
    if (verdict := _judge_by_log(facts, state, write)) is not None:
        return verdict
    if not state.knows(write):
        return Status.UNKNOWN_LOG, f"the server does not know this log, nor shows more: {error}"
    if state.writable:
        return Status.UNKNOWN_LOG, f"the server takes writes, and does not show more: {error}"
    return _late(state, write)


def _judge_by_log(facts: Facts, state: State, write: WriteId) -> Verdict | None:
    """What its log alone says of a write that the server lacks."""
    if not _is_log(facts, write):
        return Status.UNKNOWN_LOG, f"it is no position of a {facts.flavor.value} log"
    if state.excludes(write):
        return Status.LOST, "its domain went on without it"
    return None


def _judge(
    facts: Facts, state: State, sources: tuple[Source, ...], write: WriteId
) -> Generator[Ask, Rows, Verdict]:
    """The outcome of one write that the server lacks."""
    if (verdict := _judge_by_log(facts, state, write)) is not None:
        return verdict
    if not sources:
        return _judge_alone(facts, state, write)
    trouble = "; ".join(source.trouble for source in sources if source.trouble)
    if any(source.brings(write) for source in sources):
        return _late(state, write, trouble)
    found = yield from _ask_sources(facts, sources, write, depth=1)
    cause = found.cause or trouble
    known = found.known or state.knows(write)
    if found.coming or (known and not found.proof):
        return _late(state, write, cause)
    if known:
        return Status.LOST, "neither this server nor the primary that it follows has it"
    return Status.UNKNOWN_LOG, cause or "neither this server nor its primary knows this log"


def _judge_alone(facts: Facts, state: State, write: WriteId) -> Verdict:
    """Of a server without a source."""
    if not state.knows(write):
        return Status.UNKNOWN_LOG, "the server does not know this log, and follows no other server"
    if facts.group:
        return _late(state, write)
    if state.has(write, replica=False):
        return Status.VISIBLE, ""
    if not state.writable:
        return Status.NOT_YET, "the server follows no other server, and takes no writes either"
    return Status.LOST, "this primary lacks it and follows no other server"


@dataclass(frozen=True)
class Found:
    """What asking upstream came to.

    Attributes:
        coming: it is there, or may be: wait.
        proof: a primary lacks it.
        known: a server there knows its log.
        cause: for a person.
    """

    coming: bool = False
    proof: bool = False
    known: bool = False
    cause: str = ""


def _ask_sources(
    facts: Facts, sources: tuple[Source, ...], write: WriteId, *, depth: int
) -> Generator[Ask, Rows, Found]:
    """What all sources together say."""
    found: list[Found] = []
    for source in sources:
        one = yield from _ask_source(facts, source, write, depth=depth)
        found.append(one)
    return Found(
        coming=any(each.coming for each in found),
        proof=all(each.proof for each in found),
        known=any(each.known for each in found),
        cause="; ".join(filter(None, (each.cause for each in found))),
    )


def _ask_source(
    facts: Facts, source: Source, write: WriteId, *, depth: int
) -> Generator[Ask, Rows, Found]:
    """Whether a source has *write* or can still get it; follows chains of replicas."""
    where = source.host, source.port
    known = False
    try:
        rows = yield Ask(STATE[facts.flavor], where)
        state = parse_state(facts, rows)
        if state.has(write, replica=False):
            return Found(coming=True, known=True)
        known = state.knows(write)
        rows = yield Ask(sources_sql(facts), where)
    except Refused as error:
        cause = f"its source {source.host}:{source.port} cannot be asked: {error}"
        return Found(coming=error.passing, known=known, cause=cause)
    above = parse_sources(facts, rows)
    if not above:
        return Found(proof=state.writable and not facts.group, known=known)
    if any(each.brings(write) for each in above):
        return Found(coming=True, known=True)
    if depth >= _DEPTH:
        return Found(known=known, cause="the chain of replicas is too long to follow")
    found = yield from _ask_sources(facts, above, write, depth=depth + 1)
    return replace(found, known=found.known or known)


def _is_log(facts: Facts, write: WriteId) -> bool:
    if not isinstance(write.version, int):
        return False
    parse = mariadb_log if facts.flavor is Flavor.MARIADB else MySQLLog.of
    return parse(write.key) is not None


def _order(write: WriteId) -> tuple[str, int]:
    return write.key, write.version if isinstance(write.version, int) else 0
