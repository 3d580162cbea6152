"""Reads under a floor: what MongoDB answers to the questions of the guard.

Its server is asked first, on the connection that reads. A floor is judged by what the read's own
read concern shows.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NoReturn

from antipode import StaleSnapshot, UnmetError
from antipode.shim import Guarded, Send, Unreachable, Verdict, guard
from antipode_shims.mongodb._commands import READING_WRITES, Kind, kind_of
from antipode_shims.mongodb._look import converse, converse_async
from antipode_shims.mongodb._position.timestamps import version_of
from antipode_shims.mongodb._promises.records import NOWHERE, records

from .known import COMMITTED, DEFAULTS, covers, keeps, positions_of
from .pymongo import asked, asked_async, link_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from antipode.shim import Floor, Observation, Repeated, Steps
    from antipode_shims.mongodb._look import Look, Question

    from .call import Call, Rules

_AGGREGATIONS = frozenset({"aggregate", "mapReduce"})


class TooEarly(Exception):  # noqa: N818 - it ends an attempt, and no caller sees it
    """The server does not show the floor yet: the connection goes back until it may.

    Attributes:
        again: makes the next attempt due.
    """

    def __init__(self, again: Repeated) -> None:
        """Of the operation that *again* repeats."""
        super().__init__()
        self.again = again


class Plain:
    """A step: PyMongo's own method."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any], *args: Any, **options: Any) -> None:
        """Call it so."""
        self._call = partial(call, *args, **options)

    def do(self, connection: object) -> Any:
        """Call it, in either API."""
        del connection
        return self._call()

    do_async = do


class Poll:
    """A step: a poll of the server of a connection, which is cut where that is late."""

    __slots__ = ("_look", "_rules", "_timeout_s")

    def __init__(self, rules: Rules, look: Look, timeout_s: float) -> None:
        """Hold the conversation *look*; each of its replies comes within *timeout_s*."""
        self._rules, self._look, self._timeout_s = rules, look, timeout_s

    def do(self, connection: Any) -> Observation:
        """Poll."""

        def ask(question: Question) -> Any:
            return asked(connection, *self._rules.gossiped(question))

        with self._limited(connection):
            return converse(ask, self._look)

    async def do_async(self, connection: Any) -> Observation:
        """The same by asyncio."""

        def ask(question: Question) -> Any:
            return asked_async(connection, *self._rules.gossiped(question))

        with self._limited(connection):
            return await converse_async(ask, self._look)

    @contextmanager
    def _limited(self, connection: Any) -> Iterator[None]:
        connection.set_conn_timeout(self._timeout_s)
        try:
            yield
        finally:
            if not connection.closed:
                connection.set_conn_timeout(connection.opts.socket_timeout)


class HeldRead(Guarded):
    """A read on one connection; a subclass says what its snapshot shows, if it has one."""

    watched = False
    #: Whether reads of what a majority has must show the floor, not only those of what one has.
    majority = False
    #: Whether it states no read concern, so that the server's default decides.
    _implied = False
    _polled = False

    def __init__(self, rules: Rules, held: Floor, connection: Any) -> None:
        """On *connection*, which must show *held*."""
        self.held, self.shim, self.places = held, rules.shim, rules.kept
        self._rules, self._connection = rules, connection

    @property
    def _known(self) -> bool:
        """Whether its server has shown the floor before."""
        known, majority = self._rules.memory.of(self._connection), self.majority
        if known is None:
            return False
        # A barrier's own polls ask for what the shim's read concern shows.
        proves = self._rules.shim.majority or not majority
        if proves and self.held.proved(known.server):
            return True
        return known.shows(self.held, majority=majority)

    def poll(self, timeout_s: float, *, outside: bool) -> Steps[Observation]:
        """Ask for the position and for records."""
        del outside
        look = self._look(timeout_s)
        seen: Observation = yield Send(Poll(self._rules, look, timeout_s))
        return seen

    def _look(self, timeout_s: float) -> Look:
        """One poll, and a wait on the server within *timeout_s* where it is too early.

        The first also asks what reads that say nothing get.
        """
        defaults = self._rules.defaults
        if self._implied:
            if defaults.due:
                defaults.learn((yield DEFAULTS))
            self.majority = self.majority or defaults.majority
        shim, held = self._rules.shim, self.held
        # Half of the time: the connection is cut where its server has not answered by then. And
        # not before it is known that the pool has a place for a read that waits.
        waits = self._polled and self.again is None
        self._polled = True
        wait_s = held.block_s(timeout_s / 2) if waits else 0.0
        shown = yield from shim.observe(held.writes, majority=self.majority, wait_s=wait_s)
        if not held.promises:
            return shown
        if not shim.promised_in:
            return replace(shown, promise_causes=dict.fromkeys(held.promises, NOWHERE))
        found = yield from records(shim.promised_in, held.promises, majority=self.majority)
        return replace(shown, promises=found)

    def settle(self, seen: Observation | None, *, outside: bool) -> None:
        """Remember what the server showed."""
        del outside
        if seen is not None and not self.held.served:
            memory, majority = self._rules.memory, self.majority
            memory.learn(self._connection, seen.server, self.held, majority=majority)

    def _shows(self, floor: Floor) -> bool:
        """Whether its snapshot shows *floor*."""
        raise NotImplementedError

    def stale(self) -> None:
        """Its snapshot is older."""
        msg = (
            f"a session or cursor of {self.held.datastore!r} reads from a snapshot that is "
            "older than what the barrier waited for: end its transaction, or open a new one, "
            "before the read"
        )
        self.held.fail_snapshot(StaleSnapshot(msg), self._shows)

    def let(self) -> Steps[None]:
        """Wait until it may be sent.

        Raises:
            TooEarly: another attempt is made for it.
            UnmetError: the time is up, or waiting cannot help.
            StaleSnapshot: it would read from a snapshot that is older than the floor.
            ConnectionFailure: the connection failed, and there is time for another one.
        """
        try:
            may = yield from guard(self)
        except UnmetError:
            raise  # One is a `TimeoutError`, too.
        except failures() as error:
            if self.held.left_s <= 0:
                self.held.expire(Unreachable(str(error)))
            give_up(error)
        if not may and (again := self.again) is not None:
            raise TooEarly(again)


class HeldBatch(HeldRead):
    """A batch of a cursor that has a connection to itself."""

    def __init__(self, rules: Rules, held: Floor, connection: Any, *, streams: bool) -> None:
        """*streams*: the server sends it unasked, perhaps before it showed the floor."""
        super().__init__(rules, held, connection)
        self.majority, self._streams = rules.majority_cursors, streams

    def judge(self) -> Verdict:
        """By what the server has shown before, and whether the batch may have left."""
        if self._known:
            return Verdict.PASS
        return Verdict.STALE if self._streams else Verdict.HOLD

    def _shows(self, floor: Floor) -> bool:
        del floor
        return False


class Attempt(HeldRead):
    """All that PyMongo sends on a connection in one attempt at an operation.

    It goes by the connection's ``command`` or ``send_message``, which both may wait here.
    """

    _command: Mapping[str, Any]
    _session: Any
    _concern: Any

    def __init__(self, rules: Rules, call: Call, held: Floor, connection: Any) -> None:
        """Of the operation that *call* is."""
        super().__init__(rules, held, connection)
        self._call = call
        self._passed = self._sent = self._asked = False
        self._in_transaction = self._starts = False

    @property
    def again(self) -> Repeated | None:
        """What makes the operation again; None where this connection has to be kept.

        So it is once a part of the operation was sent, and in a transaction, whose first command
        PyMongo has marked by now.
        """
        return None if self._sent or self._in_transaction else self._call.again

    def install(self, drive: Callable[[Steps[Any], Any], Any]) -> None:
        """Let *drive* do all that is sent on the connection, until :meth:`remove`."""
        connection = self._connection
        command, send_message = connection.command, connection.send_message

        def held_command(dbname: str, spec: Any, *args: Any, **options: Any) -> Any:
            plain = Plain(command, dbname, spec, *args, **options)
            concern = options.get("read_concern")
            return drive(self._run(plain, spec, options.get("session"), concern), connection)

        def held_send(*args: Any) -> Any:
            return drive(self._send(Plain(send_message, *args)), connection)

        connection.command, connection.send_message = held_command, held_send

    def remove(self) -> None:
        """Undo :meth:`install`."""
        del self._connection.command, self._connection.send_message

    def ask_first(self, query: Any) -> Steps[None]:
        """Hold the *query* of a cursor back before PyMongo announces it, unless it has to stay."""
        if self.again is not None and not (query.session and query.session.in_transaction):
            concern = getattr(query, "read_concern", None)
            yield from self.before({query.name: ""}, query.session, concern)
            self._asked = True

    def _run(self, plain: Plain, command: Any, session: Any, concern: Any) -> Steps[Any]:
        yield from self.before(command, session, concern)
        self._passed = True
        try:
            return (yield plain)
        finally:
            self._passed = False

    def _send(self, plain: Plain) -> Steps[Any]:
        if not (self._passed or self._asked):
            yield from self.before(self._call.command, self._call.session)
        self._asked = False
        return (yield plain)

    def before(
        self, command: Mapping[str, Any], session: Any = None, concern: Any = None
    ) -> Steps[None]:
        """Hold *command* back, if it reads."""
        self._in_transaction = bool(session and session.in_transaction)
        self._starts = self._in_transaction and _starts(command, session)
        if self._starts or _reads(command):
            self._command, self._session, self._concern = command, session, concern
            self._passed = True
            try:
                yield from self.let()
            finally:
                self._passed = False
            if not self.held.counted:
                self._call.passed()
        self._sent = True

    def judge(self) -> Verdict:
        """By the snapshot that it reads from, or by what the server has shown before."""
        takes = self._starts
        if self._in_transaction and not takes:
            return Verdict.PASS if self._shows(self.held) else Verdict.STALE
        level = self._level()
        if level == "snapshot" and self._by_snapshot:
            takes = self._session._snapshot_time is None  # noqa: SLF001 - shown nowhere else
            if not takes and not self._shows(self.held):
                return Verdict.STALE
        self._implied = level is None
        self.majority = self._rules.defaults.majority if level is None else level in COMMITTED
        if takes:
            self._call.proved = positions_of(self.held)
        return Verdict.PASS if self._known else Verdict.HOLD

    @property
    def _by_snapshot(self) -> bool:
        """Whether all reads of its session are from one snapshot, which the first takes."""
        return self._session is not None and bool(self._session.options.snapshot)

    def _level(self) -> str | None:
        """Its read concern; None where it states none."""
        session, concern = self._session, self._concern
        if next(iter(self._command)) == "getMore" and self._rules.majority_cursors:
            return "majority"
        if self._in_transaction:
            options = session._transaction.opts  # noqa: SLF001 - shown nowhere else
            concern = options.read_concern if options else None
        elif self._by_snapshot:
            return "snapshot"
        if concern is not None and concern.level:
            return str(concern.level)
        stated: Mapping[str, str] = self._command.get("readConcern", {})
        # One that says something else alone, such as afterClusterTime, is not completed.
        return stated.get("level", "local" if stated else None)

    def _shows(self, floor: Floor) -> bool:
        proved = self._rules.session(self._session).proved
        if self._in_transaction:
            return covers(proved, floor)
        snapshot: Any = self._session._snapshot_time  # noqa: SLF001 - shown nowhere else
        return _reaches(snapshot, floor) and keeps(proved, floor)

    def settle(self, seen: Observation | None, *, outside: bool) -> None:
        """As :meth:`HeldRead.settle`; a snapshot of a read that may be stale proves nothing."""
        super().settle(seen, outside=outside)
        if self.held.served:
            self._call.proved = None


def _starts(command: Mapping[str, Any], session: Any) -> bool:
    """Whether *command* is the first of its transaction, be it dressed for that already or not."""
    return "startTransaction" in command or bool(session._starting_transaction)  # noqa: SLF001


def _reads(command: Mapping[str, Any]) -> bool:
    name = next(iter(command))
    if name in READING_WRITES or name in _AGGREGATIONS:
        return True
    return kind_of(name, command) in (Kind.READ, Kind.OTHER)


def _reaches(snapshot: Any, held: Floor) -> bool:
    """Whether a snapshot is as recent as the writes of a floor."""
    return all(version <= version_of(snapshot) for version in positions_of(held).values())


@lru_cache(maxsize=1)
def failures() -> tuple[type[Exception], ...]:
    """What a poll raises when it cannot be made on this connection now."""
    return Unreachable, *link_errors()


def give_up(error: BaseException) -> NoReturn:
    """Let PyMongo choose another connection, or raise what it is used to.

    Raises:
        AutoReconnect: the server has no data to read now.
    """
    if isinstance(error, Unreachable):
        from pymongo.errors import AutoReconnect

        raise AutoReconnect(str(error)) from error
    raise error
