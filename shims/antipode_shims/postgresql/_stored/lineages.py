"""Lineages stored with rows: what connections with ``lineage="beside"`` are handed. No I/O.

Before a statement that may write, the session's setting gets the lineage. After one that shows rows
of the tables, their stored lineages are asked for, and with them the position that covers the read,
before the application goes on.
"""

from __future__ import annotations

import contextlib
import time
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from antipode import ConfigurationError, Lineage, current
from antipode.shim import (
    config,
    count,
    defer_read,
    lineage_not_read,
    lineage_not_stored,
    record_read,
    stored_lineage,
    stored_text,
)
from antipode_shims._sql.superseded import superseded
from antipode_shims._sql.table2 import SEPARATOR
from antipode_shims.postgresql._clients.tap import Session, Tap
from antipode_shims.postgresql._look import Refused, look_beside
from antipode_shims.postgresql._position import LsnError
from antipode_shims.postgresql._statements import (
    ANYTHING,
    CALLS,
    COMMITS,
    COMMITS_INSIDE,
    ENDS,
    FETCHES,
    MANY,
    READS,
    TWO_PHASES,
    WRITES,
)

from .mentions import Mentions, mentions
from .migration import described, usable, views
from .questions import MOST_KEYS, asking, key_values, nothing
from .sought import MOST_SOUGHT, Spoken, sought
from .triggers import SETTING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from antipode_shims.postgresql._look import Asking
    from antipode_shims.postgresql._position import Rows
    from antipode_shims.postgresql._shim.base import BasePostgreSQLShim

    from .table import Table

#: How long it is remembered what tables are: others may drop them and make them anew.
_FRESH_S = 60.0
#: Sent to a connection that is not instrumented any more.
FORGET = f"RESET {SETTING}"

#: A setting on its way: whoever is interrupted does not know whether it arrived.
_UNKNOWN = "?"
_NOTHING = mentions("", ())


class StoredLineages:
    """The tables of one client whose rows have lineages.

    Attributes:
        names: their names, as the application gave them.
        tables: what they are, by their numbers; empty as long as no server was asked.
        views: the names of views that show their rows, likewise.
    """

    def __init__(self, shim: BasePostgreSQLShim, names: tuple[str, ...]) -> None:
        """Know the names; no server was asked yet."""
        self._shim = shim
        self.names = names
        self.tables: Mapping[int, tuple[str, Table]] = {}
        self.views: tuple[str, ...] = ()
        self._asked_s = 0.0
        self._viewed_s = -_FRESH_S

    def connection(self) -> RowLineages:
        """What one connection has to do for them."""
        return RowLineages(self._shim, self)

    @property
    def fresh(self) -> bool:
        """Whether it is known what the tables are."""
        return bool(self.tables) and time.monotonic() - self._asked_s <= _FRESH_S

    def check_tables(self) -> Asking[None]:
        """Find out what the tables are, and make sure that they can keep lineages.

        Raises:
            ConfigurationError: some cannot; says what to run.
        """
        found: dict[int, tuple[str, Table]] = {}
        for name in self.names:
            table = usable(name, (yield from described(name)))
            if table.lacks:
                raise ConfigurationError(
                    f"{self._shim.datastore!r} cannot store lineages with {name}: it lacks "
                    f"{', '.join(table.lacks)}. The library changes no schema on its own: let "
                    f"`python -m antipode_shims.postgresql migration {name}` print what to run"
                )
            found[table.oid] = name, table
        self.tables, self._asked_s = found, time.monotonic()

    def check_views(self) -> Asking[None]:
        """Find out which views show their rows, once a minute."""
        now_s = time.monotonic()
        if now_s - self._viewed_s <= _FRESH_S:
            return
        self._viewed_s = now_s
        with contextlib.suppress(Refused):
            self.views = yield from views(self.names)


class Unanswered(str):
    """A setting that goes before a statement in its pipeline; nobody waits for its reply."""

    __slots__ = ()


class Shown(NamedTuple):
    """Whose results a call shows.

    Attributes:
        cursor: of the client; None for nobody's.
        frame: of the generator that fills it.
        every: whether with all results of a statement.
    """

    cursor: Any
    frame: Any
    every: bool


NOTHING_SHOWN = Shown(None, None, every=False)


class StoredTap(Tap):
    """A tap that has a part in the lineages of rows.

    Attributes:
        stored: that part.
        shown: whose results the call in flight shows.
    """

    def __init__(self, shim: BasePostgreSQLShim, stored: RowLineages) -> None:
        """As a tap, with *stored*."""
        super().__init__(shim)
        self.stored = stored
        stored.tap = id(self)
        self.shown = NOTHING_SHOWN


class Midway:
    """What rows of a result depend on that has not ended: known then, and not before."""

    def __init__(self, unknown: Lineage) -> None:
        """Until it is settled, say *unknown*."""
        self._lineage = unknown

    def __call__(self) -> Lineage:
        """What is known by now."""
        return self._lineage

    def settle(self, lineage: Lineage) -> None:
        """All of it is known."""
        self._lineage = lineage


class RowLineages:
    """What one connection has to do for the lineages of rows."""

    def __init__(self, shim: BasePostgreSQLShim, stored: StoredLineages) -> None:
        """Know its tables; the session has no setting yet."""
        self._stored = stored
        self._shim = shim
        self._merges = shim.on_read == "merge"
        #: The identity of the connection's tap.
        self.tap = 0
        #: The setting that the session has, that its transaction has, that goes with its BEGIN.
        self._session = self._local = self._begin = ""
        #: Whether nobody has heard yet that the session has the setting that was sent last.
        self._unheard = False
        #: Whether no pooler is in between; None while nobody has asked.
        self._direct: bool | None = None
        self._said, self._found, self._sql = _NOTHING, 0, ""
        self._due = False
        #: The keys that results showed, and those that statements compared with theirs.
        self._keys: dict[int, set[tuple[bytes, ...]]] = {}
        self._sought: dict[int, set[tuple[bytes, ...]]] = {}
        self._midway: Midway | None = None

    @property
    def held(self) -> bool:
        """Whether the session has a setting that later writes would get."""
        return bool(self._session)

    def before(
        self, sql: str | None, found: int, session: Session, *, opens: bool, piped: bool, pid: int
    ) -> Asking[None]:
        """What to ask and to set before a statement.

        Args:
            sql: its text; None where nobody can read it.
            found: what it may do.
            session: how the session stands.
            opens: whether the client begins a transaction with it.
            piped: whether its reply will come later, in a pipeline.
            pid: the number of the connection's process, as its handshake had it.

        Raises:
            ConfigurationError: the tables keep no lineages, or a pooler is in between where the
                setting of a session would be needed.
        """
        said = mentions(sql, self._stored.names) if sql is not None else _NOTHING
        self._said, self._found, self._sql, self._due = said, found, sql or "", False
        if session in (Session.FAILED, Session.LOST):
            return
        # LOCK TABLE takes no snapshot, so nothing before it may.
        harmless = session is Session.IDLE or (found & ANYTHING and session is Session.OPEN)
        if said.all and harmless and not self._stored.fresh:
            yield from self._stored.check_tables()
        if not said.all and found & (READS | WRITES) and session is Session.IDLE:
            yield from self._stored.check_views()
        through = _NOTHING
        if self._stored.views:
            through = mentions(sql or "", self._stored.views)
            if self._merges and self._may_read(through, found):
                lineage_not_read(self._shim.datastore, (sql or "")[:40])
        opens = opens and session is Session.IDLE
        named = bool(said.all or through.all)
        # A function may write to the tables; what goes with a BEGIN costs nothing.
        some = named or found & CALLS or opens or self._session or self._local
        if found & (WRITES | CALLS) and some:
            yield from self._set(session, opens=opens, named=named, pid=pid)
        self._due = self._merges and self._may_read(said, found)
        if self._due and piped:
            self._due, self._said = False, _NOTHING
            record_read(self._shim.covering(None, pid))

    def _may_read(self, said: Mentions, found: int) -> bool:
        """Whether a statement may show, or use, rows of the tables."""
        return bool(said.all) and bool(found & READS) and not said.own

    def _set(self, session: Session, *, opens: bool, named: bool, pid: int) -> Asking[None]:
        """Let what is written depend on the current lineage.

        A statement that is not *named* is sent without where only a pooler stands against it.
        """
        text = stored_text(current(), within=self.tap)
        until = self._shim.clock.hour() + int(config().horizon.total_seconds() // 3600) + 1
        value = f"{until} {text} {superseded(text)}"
        if value == (self._local or self._session):
            return
        if session is Session.BUSY:
            yield from self._set_in_pipeline(value)
        elif session is Session.OPEN:
            self._local = _UNKNOWN
            yield from self._send(f"SET LOCAL {SETTING} = '{value}'")
            self._local = value  # If it was refused, the transaction has failed.
        elif opens:
            self._begin = value
        elif not (yield from self._is_direct(pid)):
            if named:
                raise ConfigurationError(
                    f"a pooler is before {self._shim.datastore!r}, behind which a session keeps no "
                    "setting: write to tables whose rows have stored lineages in a transaction"
                )
            lineage_not_stored(self._shim.datastore, "a write outside of a transaction")
        else:
            self._session = _UNKNOWN
            if (yield from self._send(f"SET {SETTING} = '{value}'")):
                self._session = value

    def _set_in_pipeline(self, value: str) -> Asking[None]:
        """As what was sent before it may have been a BEGIN, or not.

        Nothing can be asked there. A transaction that has a setting has begun; a session keeps one
        where no pooler is in between, and loses it with the transaction that it came with.
        """
        if self._local:
            self._local = value
            yield Unanswered(f"SET LOCAL {SETTING} = '{value}'")
        elif self._direct:
            self._session, self._unheard = value, True
            yield Unanswered(f"SET {SETTING} = '{value}'")
        else:
            lineage_not_stored(self._shim.datastore, "a write in a pipeline")

    def _is_direct(self, pid: int) -> Asking[bool]:
        if self._direct is None:
            rows = yield "SELECT pg_backend_pid() AS backend"
            self._direct = rows[0]["backend"] == str(pid)
        return self._direct

    def _send(self, setting: str) -> Asking[bool]:
        try:
            yield setting
        except Refused as error:
            lineage_not_stored(self._shim.datastore, f"a write ({error})")
            return False
        return True

    def begins(self) -> str:
        """What to send with the BEGIN that the client sends now; nothing for the most."""
        if not self._begin:
            return ""
        self._local, self._begin = self._begin, ""
        return f"SET LOCAL {SETTING} = '{self._local}'"

    def ends(self, *, within: bool, commits: bool) -> None:
        """The client itself ends its transaction, or goes back to a savepoint *within* it."""
        self._local = _UNKNOWN if within else ""
        if self._unheard and not commits:
            self._session = _UNKNOWN

    def after(
        self,
        results: Collection[Any],
        session: Session,
        *,
        failed: bool,
        busy: bool,
        pid: int,
        spoken: Spoken | None,
        escape: Callable[[bytes], bytes],
    ) -> Asking[None] | None:
        """What is left to ask after a call.

        Args:
            results: of libpq's, those that it received.
            session: how the session stands now.
            failed: whether the last one was an error.
            busy: whether more of its replies are to come.
            pid: as :meth:`before`.
            spoken: the statement as it was sent; None where that is not known.
            escape: makes a literal of bytes in the client's encoding.
        """
        self._settle_setting(session, failed=failed, busy=busy)
        found = self._found
        if failed or not self._merges:
            self._said, self._due = _NOTHING, False
        else:
            self._take(results, spoken, busy=busy)
        if busy:
            if self._keys and self._midway is None:
                self._midway = Midway(_unsampled(self._shim))
                defer_read(self._midway)
            return None
        if not (self._keys or self._due):
            return None
        if session in (Session.FAILED, Session.LOST):
            record_read(self._shim.covering(None, pid))
            self._forget()
            return None
        still = session is Session.OPEN
        other = found & (COMMITS | ENDS | MANY | FETCHES | WRITES | CALLS)
        return self._ask(pid, escape, still=still, same=still and not other)

    def _settle_setting(self, session: Session, *, failed: bool, busy: bool) -> None:
        """Note which setting a session has after a call."""
        said, found = self._said, self._found
        if said.back or session is Session.FAILED or found & (MANY | COMMITS_INSIDE):
            self._local = _UNKNOWN  # A savepoint brings an older one back.
        if found & (COMMITS | ENDS | TWO_PHASES) and not found & MANY:
            self._local = ""
        if session in (Session.IDLE, Session.LOST) and not busy:
            self._local = ""
        self._begin = ""
        if self._unheard and (failed or said.back or found & (ENDS | MANY | COMMITS_INSIDE)):
            self._session = _UNKNOWN
        self._unheard = self._unheard and (busy or session is not Session.IDLE)
        if said.forgets:
            self._session = self._local = _UNKNOWN

    def _take(self, results: Collection[Any], spoken: Spoken | None, *, busy: bool) -> None:
        """Note the keys that *results* show, and what they do not show."""
        shown: set[int] = set()
        rows = [result for result in results if result.nfields]
        for result in rows:
            shown |= self._keys_of(result)
        said, self._said = self._said, self._said if busy and not rows else _NOTHING
        if said is _NOTHING or (busy and not rows) or not self._due:
            return
        named, many = said.all if rows else said.sources, False
        if rows and spoken is not None:
            for oid, (name, table) in self._stored.tables.items():
                if name in named:
                    keys = sought(spoken, table)
                    many = many or len(keys) > MOST_SOUGHT
                    self._sought.setdefault(oid, set()).update(keys[:MOST_SOUGHT])
        whole = {self._stored.tables[oid][0] for oid in shown}
        if many or any(times > 1 or name not in whole for name, times in named.items()):
            lineage_not_read(self._shim.datastore, self._sql[:40])
        self._due = bool(named)

    def _keys_of(self, result: Any) -> set[int]:
        """The tables whose whole key *result* shows; its keys are noted."""
        columns: dict[tuple[int, int], list[int]] = {}
        known = self._stored.tables
        for column in range(result.nfields):
            if (oid := result.ftable(column)) in known:
                self._due = not self._said.own
                columns.setdefault((oid, result.ftablecol(column)), []).append(column)
        if self._said.own or not columns:
            return set()
        whole: set[int] = set()
        for oid in {oid for oid, _ in columns}:
            table = known[oid][1]
            places = [columns.get((oid, number), []) for number in table.numbers]
            if all(places):
                whole.add(oid)
                keys = self._keys.setdefault(oid, set())
                for chosen in product(*places):
                    keys.update(key_values(result, chosen, table.types))
        return whole

    def _ask(
        self, pid: int, escape: Callable[[bytes], bytes], *, still: bool, same: bool
    ) -> Asking[None]:
        """Ask for the lineages of the noted keys, and for the position that covers the read.

        Args:
            pid: as :meth:`before`.
            escape: as :meth:`after`.
            still: whether it is asked in an open transaction.
            same: as :func:`asking`.

        Raises:
            Refused: it is, and that has failed: its COMMIT would roll back without an error.
        """
        questions = list(asking(self._noted(), escape, same=same)) or [nothing()]
        *first, last = questions
        found: list[Lineage] = []
        try:
            for question in first:
                found += self._lineages((yield question))
            state, rows = yield from look_beside(self._shim.look(), last)
        except (Refused, LsnError) as error:
            found.append(self._shim.covering(None, pid))
            if still and isinstance(error, Refused):
                self._forget()
                raise
        else:
            found += self._lineages(rows)
            found.append(self._shim.covering(state, pid))
        lineage = Lineage().merge(*found)
        record_read(lineage)
        if self._midway is not None:
            self._midway.settle(lineage)
        self._forget()

    def _noted(self) -> Iterator[tuple[Table, bool, list[tuple[bytes, ...]]]]:
        for shown, noted in ((True, self._keys), (False, self._sought)):
            for oid, keys in noted.items():
                if oid in self._stored.tables:
                    ordered = sorted(keys if shown else keys - self._keys.get(oid, set()))
                    for at in range(0, len(ordered), MOST_KEYS):
                        yield self._stored.tables[oid][1], shown, ordered[at : at + MOST_KEYS]

    def _lineages(self, rows: Rows) -> list[Lineage]:
        row = rows[0]
        if absent := int(row["absent"] or 0):
            count("companion_absent", self._shim.datastore, absent)
        if (texts := row["lineages"]) is None:
            return []
        return [stored_lineage(self._shim.datastore, one) for one in set(texts.split(SEPARATOR))]

    def _forget(self) -> None:
        self._keys, self._sought = {}, {}
        self._due, self._midway = False, None


def _unsampled(shim: BasePostgreSQLShim) -> Lineage:
    return Lineage(incomplete=[(shim.datastore, "unsampled")])
