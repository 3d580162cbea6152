"""GTIDs without I/O: MySQL's sets with intervals and tags, MariaDB's positions and states."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_SID = re.compile(_UUID)
#: Where a log begins: ``gtid_owned`` puts nothing between the last thread and the next log.
_BEFORE_SID = re.compile(rf"(?={_UUID})")
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_INTERVAL = re.compile(r"([0-9]{1,19})(?:-([0-9]{1,19}))?(?:#[0-9]+)*")
_MYSQL_KEY = re.compile(rf"({_UUID}(?::[a-z_][a-z0-9_]{{0,31}})?)(?:/([1-9][0-9]{{0,18}}))?")
_MARIADB_GTID = re.compile(r"([0-9]{1,10})-([0-9]{1,10})-([0-9]{1,20})")
_MARIADB_LOG = re.compile(r"([0-9]{1,10})-([0-9]{1,10})")
_MARIADB_KEY = re.compile(r"([0-9]{1,10})\.([0-9]{1,10})")


#: Unsigned 64-bit numbers have up to 20 digits; one of 19 is one for sure.
_MOST_DIGITS = 19


class GtidError(ValueError):
    """A text is no GTID, or no set of them."""


class Interval(NamedTuple):
    """Transaction numbers from *first* to *last*, both included."""

    first: int
    last: int


@dataclass(frozen=True)
class GtidSet:
    """A set of MySQL GTIDs: for each log, ``uuid`` or ``uuid:tag``, disjoint rising intervals.

    Attributes:
        logs: the intervals of each log; none is empty, none touches the next.
    """

    logs: Mapping[str, tuple[Interval, ...]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> GtidSet:
        """The set that ``gtid_executed``, ``gtid_owned`` or an OK packet spells.

        ``gtid_owned`` has the owning threads after ``#``; they are dropped. Tags come with
        MySQL 8.3 (MySQL manual, "GTID Format and Storage").

        Raises:
            GtidError: it is none.
        """
        found: dict[str, list[Interval]] = {}
        for part in _BEFORE_SID.split("".join(text.lower().split())):
            if stripped := part.strip(","):
                _parse_sid(stripped, found)
        return cls({log: _joined(intervals) for log, intervals in found.items()})

    def union(self, other: GtidSet) -> GtidSet:
        """What is in either."""
        logs = dict(self.logs)
        for log, intervals in other.logs.items():
            logs[log] = _joined((*logs.get(log, ()), *intervals))
        return GtidSet(logs)

    def contains(self, log: str, first: int, last: int) -> bool:
        """Whether all of *first* to *last* of *log* is in the set."""
        return any(i.first <= first and last <= i.last for i in self.logs.get(log, ()))

    def covers(self, other: GtidSet) -> bool:
        """Whether all of *other* is in the set."""
        return all(self.contains(log, *each) for log, found in other.logs.items() for each in found)

    @property
    def gaps(self) -> bool:
        """Whether a log has more than one interval, or does not begin at 1."""
        return any(_broken(found) for found in self.logs.values())

    def __iter__(self) -> Iterator[tuple[str, Interval]]:
        """Each interval with its log."""
        return ((log, each) for log, intervals in self.logs.items() for each in intervals)


def _parse_sid(part: str, found: dict[str, list[Interval]]) -> None:
    """``uuid[:tag]:interval[:interval...][:tag:interval...]`` into *found*."""
    sid, *rest = part.split(":")
    if not _SID.fullmatch(sid) or not rest:
        msg = f"not a set of GTIDs: {part[:80]!r}"
        raise GtidError(msg)
    log = sid
    for piece in rest:
        if match := _INTERVAL.fullmatch(piece):
            first, last = int(match[1]), int(match[2] or match[1])
            if last >= first:  # MySQL reads an interval that runs backwards as empty.
                found.setdefault(log, []).append(Interval(first, last))
        elif _TAG.fullmatch(piece):
            log = f"{sid}:{piece}"
        else:
            msg = f"not a set of GTIDs: {part[:80]!r}"
            raise GtidError(msg)


def _broken(intervals: tuple[Interval, ...]) -> bool:
    """Whether numbers below the last one are missing."""
    return any(each.first != 1 for each in intervals)


def _joined(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Sorted, with what overlaps or touches made one."""
    joined: list[Interval] = []
    for each in sorted(intervals):
        if joined and each.first <= joined[-1].last + 1:
            joined[-1] = Interval(joined[-1].first, max(joined[-1].last, each.last))
        else:
            joined.append(each)
    return tuple(joined)


class MySQLLog(NamedTuple):
    """What the key of a MySQL entry says: ``uuid[:tag]``, and ``/first`` after a gap."""

    log: str
    first: int

    @property
    def key(self) -> str:
        """The key of an entry: its version is the last number of the run from *first*."""
        return self.log if self.first == 1 else f"{self.log}/{self.first}"

    def gtids(self, last: int) -> str:
        """The set to wait for: the whole run up to *last*, never *last* alone."""
        return f"{self.log}:{self.first}-{last}"

    @classmethod
    def of(cls, key: str) -> MySQLLog | None:
        """What *key* says, None where it is no key of a MySQL log."""
        match = _MYSQL_KEY.fullmatch(key)
        return None if match is None else cls(match[1], int(match[2] or 1))


def mysql_gtid(text: str) -> tuple[str, int] | None:
    """Log and number where *text* spells one GTID, the usual answer; else None."""
    sid, _, number = text.rpartition(":")
    log = _mysql_log(sid)
    if log is None or not (number.isdigit() and number.isascii() and len(number) <= _MOST_DIGITS):
        return None
    return log, int(number)


@lru_cache(maxsize=256)
def _mysql_log(sid: str) -> str | None:
    """``uuid`` or ``uuid:tag`` as keys spell it."""
    sid = sid.lower()
    return sid if _MYSQL_KEY.fullmatch(sid) and "/" not in sid else None


class Runs:
    """Where the run of consecutive numbers begins that a new transaction belongs to.

    Waiting for ``1-N`` never ends where a gap below N stays open, and waiting for N alone passes
    while its predecessors are missing; so after a gap an entry stands for the run that N is
    in. A server numbers from the lowest free number on. A member of a group does so within the
    block it was given (``group_replication_gtid_assignment_block_size``), and where its blocks
    lie is not reported: a number of a block not seen before begins a run of its own.

    Thread-safe; locked only for logs that have gaps.

    Attributes:
        known: whether a server was asked; before that every run begins at 1.
    """

    def __init__(self) -> None:
        """Know no gaps: every run begins at 1."""
        self.known = False
        self._runs: dict[str, list[Interval]] = {}
        self._block = 0
        self._lock = threading.Lock()

    def learn(self, executed: GtidSet, *, group_block: int = 0) -> None:
        """Adopt what a server has executed.

        Args:
            executed: its ``gtid_executed``.
            group_block: for a member of a group, the size of blocks; 0 for any other server.
        """
        with self._lock:
            self._block = group_block
            for log, intervals in executed.logs.items():
                if group_block or _broken(intervals):
                    self._runs[log] = list(intervals)
                else:
                    self._runs.pop(log, None)
            self.known = True

    def first(self, log: str, number: int) -> int:
        """The first number of the run that *number* of *log* is in."""
        if log not in self._runs and (not self._block or number <= self._block):
            return 1
        with self._lock:
            return self._first(log, number)

    def _first(self, log: str, number: int) -> int:
        runs = self._runs.get(log)
        if runs is None:
            return 1 if not self._block or number <= self._block else self._begin(log, number)
        for index in range(len(runs) - 1, -1, -1):
            first, last = runs[index]
            if first <= number and (number <= last or self._same_block(last, number)):
                runs[index] = Interval(first, max(last, number))
                return first
            if first <= number:
                return self._begin(log, number)
        return self._begin(log, number)

    def _same_block(self, last: int, number: int) -> bool:
        return not self._block or (last - 1) // self._block == (number - 1) // self._block

    def _begin(self, log: str, number: int) -> int:
        runs = self._runs.setdefault(log, [])
        runs.append(Interval(number, number))
        runs.sort()
        return number


class MariaDBGtid(NamedTuple):
    """``domain-server-sequence``, one MariaDB transaction."""

    domain: int
    server: int
    seq: int

    def __str__(self) -> str:
        """As MariaDB spells it."""
        return f"{self.domain}-{self.server}-{self.seq}"

    @property
    def key(self) -> str:
        """The log: one server's numbers in one domain are never given twice."""
        return f"{self.domain}.{self.server}"

    @classmethod
    def parse(cls, text: str) -> MariaDBGtid:
        """One GTID.

        Raises:
            GtidError: it is none.
        """
        match = _MARIADB_GTID.fullmatch(text.strip())
        if match is None:
            msg = f"not a MariaDB GTID: {text[:80]!r}"
            raise GtidError(msg)
        return cls(int(match[1]), int(match[2]), int(match[3]))


def mariadb_log(key: str) -> tuple[int, int] | None:
    """Domain and server of an entry's key, None where it is no key of a MariaDB log."""
    match = _MARIADB_KEY.fullmatch(key)
    return None if match is None else (int(match[1]), int(match[2]))


def mariadb_gtid(text: str) -> tuple[str, int] | None:
    """Key and number where *text* spells one GTID, the usual answer; else None."""
    log, _, number = text.rpartition("-")
    key = _mariadb_key(log)
    if key is None or not (number.isdigit() and number.isascii() and len(number) <= _MOST_DIGITS):
        return None
    return key, int(number)


@lru_cache(maxsize=256)
def _mariadb_key(log: str) -> str | None:
    """The key of ``domain-server``."""
    match = _MARIADB_LOG.fullmatch(log)
    return None if match is None else f"{int(match[1])}.{int(match[2])}"


def mariadb_gtids(text: str) -> tuple[MariaDBGtid, ...]:
    """The GTIDs of a position or a binlog state.

    Raises:
        GtidError: the text is neither.
    """
    return tuple(MariaDBGtid.parse(part) for part in text.split(",") if part.strip())


@dataclass(frozen=True)
class MariaDBState:
    """For each domain and server the last sequence number: a ``gtid_binlog_state``."""

    last: Mapping[tuple[int, int], int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> MariaDBState:
        """The state that *text* spells; also a position, which has one server a domain.

        Raises:
            GtidError: it spells none.
        """
        last: dict[tuple[int, int], int] = {}
        for each in mariadb_gtids(text):
            log = each.domain, each.server
            last[log] = max(last.get(log, 0), each.seq)
        return cls(last)

    def reaches(self, domain: int, server: int, seq: int) -> bool:
        """Whether the history has *seq* of *server*: one server's numbers rise in a domain."""
        return self.last.get((domain, server), -1) >= seq

    def knows(self, domain: int, server: int) -> bool:
        """Whether anything of *server* in *domain* is in the history."""
        return (domain, server) in self.last

    def domain_max(self, domain: int) -> int:
        """The highest number in *domain*, -1 where there is none."""
        return max((seq for (d, _), seq in self.last.items() if d == domain), default=-1)

    def covers(self, other: MariaDBState) -> bool:
        """Whether the history goes as far as *other* in every log."""
        return all(self.reaches(*log, seq) for log, seq in other.last.items())
