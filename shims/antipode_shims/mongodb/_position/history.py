"""What became of positions of earlier terms: facts about a replica set, which never change.

After an election a server's timestamps say nothing about the old primary's log: a write that only
one server had may be gone while later timestamps are applied everywhere. The oplog shows it. What
it shows of entries at or before the majority's commit point holds for every member and for ever
(Raft: every later primary has all committed entries), so it is asked once.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from antipode import Status

from .timestamps import log_of, seconds_of

if TYPE_CHECKING:
    from antipode import WriteId

    from .reply import ServerState

_MOST_TERMS = 256


class Fate(Enum):
    """What is known of a position of an earlier term."""

    SURVIVED = "survived"
    LOST = "lost"
    UNKNOWN = "unknown"


@dataclass
class _Term:
    """A term's log is one primary's: what holds for an entry holds for those before or after."""

    survived_to: int = -1
    lost_from: int = 2**64
    unknown: set[int] = field(default_factory=set)


class LogHistory:
    """Where the logs of earlier terms ended in the committed history. Thread-safe."""

    def __init__(self) -> None:
        """Know nothing."""
        self._terms: dict[tuple[str, int, int], _Term] = {}
        self._lock = threading.Lock()

    def fate(self, state: ServerState, term: int, write: WriteId) -> Fate | None:
        """What became of *write*, of the log of *term*; None when nobody has asked."""
        version = int(write.version)
        with self._lock:
            known = self._terms.get((state.set_name, state.initiated_s, term))
            if known is None:
                return None
            if version <= known.survived_to:
                return Fate.SURVIVED
            if version in known.unknown:
                return Fate.UNKNOWN
            if version < known.lost_from:
                return None
        # What a read covered may be less than its position: only that of a write is an entry.
        return Fate.UNKNOWN if write.covering else Fate.LOST

    def learn(self, state: ServerState, term: int, version: int, fate: Fate) -> None:
        """Adopt a fact about the log of *term*."""
        with self._lock:
            if len(self._terms) >= _MOST_TERMS:
                self._terms.clear()
            known = self._terms.setdefault((state.set_name, state.initiated_s, term), _Term())
            if fate is Fate.SURVIVED:
                known.survived_to = max(known.survived_to, version)
            elif fate is Fate.LOST:
                known.lost_from = min(known.lost_from, version)
            else:
                if len(known.unknown) >= _MOST_TERMS:
                    known.unknown.clear()
                known.unknown.add(version)


def judge(  # noqa: PLR0911 - one for each proof, in order of strength
    state: ServerState, write: WriteId, history: LogHistory, *, majority: bool
) -> tuple[Status | None, str]:
    """The outcome of one position at one server, and why; None when the oplog must be asked.

    Args:
        state: of the server, from the same poll.
        write: what to judge.
        history: what is known of earlier terms.
        majority: whether reads have read concern ``majority``.
    """
    version = write.version
    if not isinstance(version, int):
        return Status.UNDECIDABLE, "it is no position of a MongoDB log"
    log = log_of(write.key, state.set_name)
    if log is None:
        return Status.UNKNOWN_LOG, f"the server is a member of {state.set_name!r}"
    if seconds_of(version) < state.initiated_s:
        return Status.UNKNOWN_LOG, "the replica set was initiated after this position"
    shown = state.shown(majority=majority)
    if log.term is None:
        return _reached(version, state.committed.version, "a majority's entries")
    if log.term == shown.term:
        return _reached(version, shown.version, f"term {shown.term}")
    if log.term > shown.term:
        return Status.NOT_YET, f"the server has applied nothing of term {log.term}"
    fate = history.fate(state, log.term, write)
    if fate is Fate.SURVIVED:
        return _reached(version, state.committed.version, "a majority's entries")
    if fate is Fate.LOST:
        return Status.LOST, f"rolled back: term {log.term} ended before it"
    if fate is Fate.UNKNOWN:
        return Status.UNKNOWN_LOG, UNKNOWN_CAUSE
    return None, f"nothing of a term after {log.term} is committed yet"


UNKNOWN_CAUSE = "the oplog does not show what became of this position of an earlier term"


def _reached(version: int, shown: int, what: str) -> tuple[Status, str]:
    if shown >= version:
        return Status.VISIBLE, ""
    return Status.NOT_YET, f"the server shows {what} up to second {seconds_of(shown)}"
