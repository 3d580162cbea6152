"""The store's positions: log sequence numbers, timelines, and what a server's state proves. Pure.

A position is a number of bytes in one timeline of one system. After a promotion the log goes on in
a new timeline, which branches off at its fork: the numbers above it are given again. So the key of
a write names system, timeline and fork, and a server shows a write where its own chain of timelines
has that very one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from antipode import Status
from antipode.shim import PRIMARY_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from antipode import WriteId

Rows = list[dict[str, "str | None"]]
Verdict = tuple[Status, str]

_KEY = re.compile(r"([1-9][0-9]{0,19})/([1-9][0-9]{0,9})-(0|[1-9][0-9]{0,19})")
_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")
_ENTRY = re.compile(r"\s*([0-9]+)\s+([0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8})(?:\s|$)")
#: Bytes of the header of a page, and of the first page of a segment: a commit that ends a page has
#: the insert position behind the next header, which is not flushed before the next record.
PAGE, HEADERS = 8192, (0x18, 0x28)
#: What lets a user read the files that say where timelines begin.
GRANT = "GRANT EXECUTE ON FUNCTION pg_read_file(text, bigint, bigint, boolean)"
#: The history of a timeline, where the server has it.
HISTORY_FILE = (
    "pg_read_file('pg_wal/' || lpad(upper(to_hex({timeline})), 8, '0') || '.history',"
    " 0, 65536, true)"
)
#: Whether the server has the segment of a timeline in which a place is: a standby receives one of
#: the next timeline, or restores it, once it follows that, and not while it cannot.
RECEIVED = (
    "(pg_read_file('pg_wal/' || lpad(upper(to_hex({timeline})), 8, '0')"
    " || lpad(upper(to_hex(div({place} - '0/0' - 1, 4294967296)::bigint)), 8, '0')"
    " || lpad(upper(to_hex(div(mod({place} - '0/0' - 1, 4294967296),"
    " pg_size_bytes(current_setting('wal_segment_size')))::bigint)), 8, '0'),"
    " 0, 0, true) IS NOT NULL)"
)
#: What lets a user see which timeline a standby receives: enough until the first fail-over.
GRANT_STREAM = "GRANT pg_read_all_stats"
MIGRATION = "`python -m antipode_shims.postgresql migration --history`"
_LATER = (
    "after a fail-over barriers end in unknown_log, and no write has a position; the function of"
    f" {MIGRATION}, or {GRANT}, makes histories readable"
)
#: What a user with such rights cannot know, for a person.
HAZARDS = {
    "": (
        "this user may not see on which timeline a standby is, so that barriers at standbys end in"
        f" unknown_log: {GRANT_STREAM} lets it; {_LATER}"
    ),
    "stream": f"this user may not read the histories of timelines: {_LATER}",
}


class LsnError(ValueError):
    """A text that is no position."""


def parse_lsn(text: str | None) -> int:
    """A position as PostgreSQL writes it (``16/B374D848``) as a number of bytes.

    Raises:
        LsnError: it is none.
    """
    found = _LSN.fullmatch(text or "")
    if found is None:
        raise LsnError(f"{text!r} is no position of a log")
    return (int(found[1], 16) << 32) | int(found[2], 16)


def flushed_end(lsn: int) -> int:
    """The insert position *lsn* without the header of a page on which nothing lies yet."""
    header = lsn % PAGE
    return lsn - header if header in HEADERS else lsn


@dataclass(frozen=True)
class Log:
    """One timeline of one system.

    Attributes:
        system: PostgreSQL's system identifier, in digits.
        timeline: its number.
        fork: where it branched off from the one before; 0 for the first.
    """

    system: str
    timeline: int
    fork: int

    @cached_property
    def key(self) -> str:
        """What the writes of this log have as their key."""
        return f"{self.system}/{self.timeline}-{self.fork}"

    @classmethod
    def of(cls, key: str) -> Log | None:
        """The log that a key names; None where it names none."""
        found = _KEY.fullmatch(key)
        return None if found is None else cls(found[1], int(found[2]), int(found[3]))


@dataclass(frozen=True)
class Span:
    """A timeline in a server's chain: its number, where it begins, where the next one leaves it."""

    timeline: int
    start: int
    end: int | None = None


def parse_history(text: str | None, timeline: int) -> tuple[Span, ...] | None:
    """The chain of *timeline* from the text of its history file; None where that does not show it.

    The first timeline has no such file.
    """
    if timeline == 1:
        return (Span(1, 0),)
    spans: list[Span] = []
    for line in (text or "").splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _ENTRY.match(line)
        if found is None:
            return None
        number, end, start = int(found[1]), parse_lsn(found[2]), spans[-1].end if spans else 0
        if number >= timeline or (spans and number <= spans[-1].timeline) or end < (start or 0):
            return None
        spans.append(Span(number, start or 0, end))
    return (*spans, Span(timeline, spans[-1].end or 0)) if spans else None


@dataclass(frozen=True)
class State:
    """What one poll showed of a server.

    Attributes:
        system: its system identifier.
        recovering: whether it replays another server's log.
        position: what it has replayed, or flushed.
        timeline: which it was on at that moment, or on an earlier one, for all that is known.
        started: when its postmaster started, which distinguishes servers.
        receiving: whether a receiver of the log runs.
        chain: the timelines that lead to its own; None where it is not known.
        unseen: whether its receiver, once it streams, would show what is not known.
        backend: the number of the process that answered; 0 where it is not known.
        leaves: where the next timeline, whose history the server has already, leaves its own.
    """

    system: str
    recovering: bool
    position: int
    timeline: int
    started: str
    receiving: bool = False
    chain: tuple[Span, ...] | None = None
    leaves: int | None = None
    unseen: bool = False
    backend: int = 0

    @property
    def server(self) -> str:
        """The incarnation: it changes with the process, its role and its timeline."""
        role = "standby" if self.recovering else "primary"
        return f"{self.system}/{self.timeline}@{self.started}/{role}"

    @property
    def log(self) -> Log | None:
        """The log that it writes or replays; None where its beginning is not known."""
        if self.chain is None:
            return None
        return Log(self.system, self.timeline, self.chain[-1].start)

    @property
    def covers(self) -> tuple[Log, int] | None:
        """The place up to which a read may have seen; None where nobody knows of which log."""
        moving = self.leaves is not None and self.position > self.leaves  # To the next timeline.
        return None if moving or self.log is None else (self.log, self.position)


def parse_state(rows: Sequence[Mapping[str, str | None]]) -> State:
    """What a server answered to `LOOK`.

    A standby's control file names its timeline late. So a user who may not read histories has to
    see that it receives the first one. For others it is on the next timeline where that leaves the
    one of the control file below its place, and it follows the next one.

    Raises:
        LsnError: the answer shows no position.
    """
    row = rows[0]
    recovering = row["recovering"] in ("t", "true")
    number = row["timeline"] or ""
    if not number:
        raise LsnError("the server does not say on which timeline it is")
    timeline = int(number, 10 if recovering else 16)
    received = int(row["received"] or 0)
    if not (readable := row["rights"] in ("files", "function")):
        timeline = max(timeline, received)
    known = readable or not recovering or received == timeline
    chain = parse_history(row["history"], timeline) if known else None
    position, following = parse_lsn(row["position"]), parse_history(row["next"], timeline + 1)
    leaves = _left_at(timeline, following)
    if leaves is not None and position > leaves and row["follows"] in ("t", "true"):
        timeline, chain = timeline + 1, following
        leaves = _left_at(timeline, parse_history(row["later"], timeline + 1))
    return State(
        system=row["system"] or "",
        recovering=recovering,
        position=position,
        timeline=timeline,
        started=row["started"] or "",
        receiving=row["receiving"] in ("t", "true"),
        chain=chain,
        leaves=leaves,
        unseen=row["rights"] == "stream" and timeline == 1 and not known,
        backend=int(row.get("backend") or 0),
    )


def _left_at(timeline: int, following: tuple[Span, ...] | None) -> int | None:
    """Where the next timeline, whose chain is *following*, leaves this one; None for nowhere."""
    if following is None or len(following) < 2 or following[-2].timeline != timeline:  # noqa: PLR2004 - itself and this one
        return None
    return following[-2].end


def judge(state: State, write: WriteId) -> Verdict:
    """The outcome of one write at a server, and its cause."""
    if write.key == PRIMARY_KEY:
        return _judge_primary(state, str(write.version))
    log, version = Log.of(write.key), write.version
    if log is None or not isinstance(version, int):
        return Status.UNKNOWN_LOG, "it is no position of a log of PostgreSQL's"
    if log.system != state.system:
        return Status.UNKNOWN_LOG, "the server is of another system, or is fed by logical copies"
    if state.chain is None:
        return _judge_unread(state)
    span = next((s for s in state.chain if (s.timeline, s.start) == (log.timeline, log.fork)), None)
    return _judge_unknown(state, log) if span is None else _judge_in(state, span, version)


def _judge_in(state: State, span: Span, version: int) -> Verdict:
    """Of a position in a timeline of the server's chain."""
    if span.end is not None and version > span.end:
        return Status.LOST, f"timeline {span.timeline} was left before it, at {_text(span.end)}"
    if span.end is None and state.leaves is not None and version > state.leaves:
        where = f"timeline {state.timeline + 1} leaves this one at {_text(state.leaves)}"
        return Status.NOT_YET, f"{where}, before the write"
    if state.position >= version:
        return Status.VISIBLE, ""
    at = f"the server is at {_text(state.position)}, and the write at {_text(version)}"
    return Status.NOT_YET, at


def _judge_unread(state: State) -> Verdict:
    """Of any position, at a server whose chain is not known."""
    if state.unseen:
        why = "the standby receives no log now, and only its receiver shows this user its timeline"
        return Status.NOT_YET, f"{why}; the function of {MIGRATION} would, too"
    return Status.UNKNOWN_LOG, unreadable(state)


def unreadable(state: State) -> str:
    """Why nothing can be said of a server, and what to do."""
    if state.timeline == 1 and not state.receiving:
        return (
            "this user may not see on which timeline the standby is, and no receiver shows it:"
            f" {GRANT} TO that user, or run {MIGRATION}"
        )
    if state.timeline == 1:
        return (
            "this user may not see on which timeline the standby is:"
            f" {GRANT_STREAM} TO that user, or run {MIGRATION}, which serves after a fail-over, too"
        )
    return (
        f"this user may not read where timeline {state.timeline} begins:"
        f" {GRANT} TO that user, or run {MIGRATION}"
    )


def _judge_unknown(state: State, log: Log) -> Verdict:
    """Of a timeline that is not in the server's chain."""
    if state.recovering and log.timeline > state.timeline and state.position <= log.fork:
        return Status.NOT_YET, f"the standby is on timeline {state.timeline} still"
    return Status.UNKNOWN_LOG, f"timeline {log.timeline} is none of the server's history"


def _judge_primary(state: State, primary: str) -> Verdict:
    """Whether the server is, or follows, the primary that writes the log *primary* now."""
    log, demanded = state.log, Log.of(primary)
    if log is None or demanded is None:
        return _judge_unread(state)
    if log == demanded and state.leaves is None:
        if not state.recovering or state.receiving:
            return Status.VISIBLE, ""
        return Status.NOT_YET, "the standby is not connected to its source"
    if state.recovering and (log.system, state.leaves) == (demanded.system, None):
        later = demanded.timeline > log.timeline and state.position <= demanded.fork
        if later:
            return Status.NOT_YET, f"the standby is on timeline {state.timeline} still"
    return Status.UNKNOWN_LOG, f"the server does not follow {primary}, which may have been replaced"


def _text(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def history_ddl() -> tuple[str, ...]:
    """The statements that make the functions by which any user learns of timelines.

    They run with the rights of who makes them, a superuser: one reads the histories of timelines,
    and nothing else; the other says whether a segment of the log is there.
    """
    rights = "LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog"
    return (
        (
            f"CREATE OR REPLACE FUNCTION antipode_history(timeline integer) RETURNS text {rights}"
            f" AS $$ SELECT {HISTORY_FILE.format(timeline='timeline')} $$"
        ),
        (
            "CREATE OR REPLACE FUNCTION antipode_received(timeline integer, place pg_lsn)"
            f" RETURNS boolean {rights}"
            f" AS $$ SELECT {RECEIVED.format(timeline='timeline', place='place')} $$"
        ),
    )


def undo_history() -> tuple[str, ...]:
    """The statements that take :func:`history_ddl` back."""
    return (
        "DROP FUNCTION antipode_history(integer)",
        "DROP FUNCTION antipode_received(integer, pg_lsn)",
    )
