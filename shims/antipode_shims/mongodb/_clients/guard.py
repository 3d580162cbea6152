"""Reads under a floor: the server that answers is asked first, on the connection that reads.

For one attempt at an operation, a connection's ``command`` and ``send_message`` are observed
through: everything that PyMongo sends goes by one of them, and both may wait. The floor is
judged by what the read's own read concern shows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

from antipode import StaleSnapshot
from antipode.shim import Observation, Unreachable
from antipode_shims.mongodb._commands import READING_WRITES, Kind, kind_of
from antipode_shims.mongodb._position.timestamps import version_of
from antipode_shims.mongodb._promises.records import NOWHERE, records

from .known import COMMITTED, DEFAULTS, covers, keeps, positions_of
from .pymongo import link_errors, refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from antipode.shim import Floor, Repeated
    from antipode_shims.mongodb._look import Look

    from .call import Call, Rules


class TooEarly(Exception):  # noqa: N818 - it ends an attempt, and no caller sees it
    """The server does not show the floor yet: the connection goes back until it may.

    Attributes:
        again: makes the next attempt due.
    """

    def __init__(self, again: Repeated) -> None:
        """Of the operation that *again* repeats."""
        super().__init__()
        self.again = again


_AGGREGATIONS = frozenset({"aggregate", "mapReduce"})


class Guard:
    """What holds reads back on one connection during one attempt; decides without I/O."""

    def __init__(self, rules: Rules, call: Call | None, held: Floor, connection: Any) -> None:
        """Hold reads of *call* back on *connection* until it shows *held*."""
        self.held = held
        self.connection = connection
        self._rules = rules
        self._call = call
        self._passed = self._sent = self._asked = self._looked = False
        self._implied = False
        self._majority = False
        self._in_transaction = False

    @property
    def again(self) -> Repeated | None:
        """What makes the operation again; None where this connection has to be kept.

        So it is once a part of the operation was sent, and in a transaction, whose first command
        PyMongo has marked by now.
        """
        if self._call is None or self._sent or self._in_transaction:
            return None
        return self._call.again

    def demand(
        self, command: Mapping[str, Any], session: Any = None, read_concern: Any = None
    ) -> bool | None:
        """What must be shown before *command* may be sent.

        Returns:
            None: nothing more. Otherwise whether reads with read concern ``majority`` must
            show the floor, not only those with ``local``.

        Raises:
            StaleSnapshot: it would read from a snapshot that is older than the floor.
        """
        name = next(iter(command))
        self._in_transaction = in_transaction = bool(session and session.in_transaction)
        starts = in_transaction and _starts(command, session)
        if not starts and not _reads(name, command):
            return None
        if in_transaction and not starts:
            proved = self._rules.session(session).proved
            self._check_snapshot(lambda floor: covers(proved, floor))
            self._answer()
            return None
        level = self._level(name, command, session, read_concern)
        self._implied = level is None
        majority = self._rules.defaults.majority if level is None else level in COMMITTED
        if starts and self._call is not None:
            self._call.proved = positions_of(self.held)
        if self._known(majority=majority):
            self._answer()
            return None
        return majority

    def _known(self, *, majority: bool) -> bool:
        known = self._rules.memory.of(self.connection)
        if known is None:
            return False
        # A barrier's own polls ask for what the shim's read concern shows.
        proves = self._rules.shim.majority or not majority
        if proves and self.held.proved(known.server):
            return True
        return known.shows(self.held, majority=majority)

    def demand_pinned(self, *, streams: bool) -> bool | None:
        """As :meth:`demand`, for a cursor that has this connection to itself.

        Args:
            streams: whether the server sends the next batch unasked.

        Raises:
            StaleSnapshot: that batch may have left before the server showed the floor.
        """
        majority = self._rules.majority_cursors
        if self._known(majority=majority):
            return None
        self._check_snapshot(lambda _: not streams)
        return majority

    def _level(
        self, name: str, command: Mapping[str, Any], session: Any, read_concern: Any
    ) -> str | None:
        if name == "getMore" and self._rules.majority_cursors:
            return "majority"
        if session is not None and session.in_transaction:
            options = session._transaction.opts  # noqa: SLF001 - shown nowhere else
            read_concern = options.read_concern if options else None
        elif session is not None and session.options.snapshot:
            self._check_snapshot(lambda floor: self._within(session, floor))
            return "snapshot"
        if read_concern is not None and read_concern.level:
            return str(read_concern.level)
        concern: Mapping[str, str] = command.get("readConcern", {})
        # One that says something else alone, such as afterClusterTime, is not completed.
        return concern.get("level", "local" if concern else None)

    def _within(self, session: Any, floor: Floor) -> bool:
        """Whether the snapshot of a session that reads from one shows *floor*, or will."""
        snapshot: Any = session._snapshot_time  # noqa: SLF001
        if snapshot is None:  # The read that comes takes it, once the floor is shown.
            if self._call is not None:
                self._call.proved = positions_of(self.held)
            return True
        return _reaches(snapshot, floor) and keeps(self._rules.session(session).proved, floor)

    def _check_snapshot(self, shows: Callable[[Floor], bool]) -> None:
        if not shows(self.held):
            msg = (
                f"a session or cursor of {self.held.datastore!r} reads from a snapshot that is "
                "older than what the barrier waited for: end its transaction, or open a new one, "
                "before the read"
            )
            self.held.fail_snapshot(StaleSnapshot(msg), shows)

    def steps(self, timeout_s: float, *, majority: bool) -> Look:
        """The conversation of one poll, and of a wait within *timeout_s* where it is too early.

        The first also asks what reads that say nothing get.
        """
        defaults = self._rules.defaults
        if self._implied and defaults.due:
            defaults.learn((yield DEFAULTS))
        self._majority = majority or (self._implied and defaults.majority)
        shim, held = self._rules.shim, self.held
        # Half of the time: the connection is cut where its server has not answered by then. And
        # not before it is known that the pool has a place for a read that waits.
        waits = self._looked and self.again is None
        self._looked = True
        wait_s = held.block_s(timeout_s / 2) if waits else 0.0
        shown = yield from shim.observe(held.writes, majority=self._majority, wait_s=wait_s)
        if not held.promises:
            return shown
        if not shim.promised_in:
            return replace(shown, promise_causes=dict.fromkeys(held.promises, NOWHERE))
        found = yield from records(shim.promised_in, held.promises, majority=self._majority)
        return replace(shown, promises=found)

    def _answer(self) -> None:
        """The read is sent: what no poll can show it is counted, unless it was already."""
        if self._call is not None and not self.held.counted:
            self._call.passed()

    def learn(self, observation: Observation) -> None:
        """Note what the server showed when the floor was met."""
        self._answer()
        if self.held.served:
            if self._call is not None:
                self._call.proved = None
            return
        memory, majority = self._rules.memory, self._majority
        memory.learn(self.connection, observation.server, self.held, majority=majority)


def _starts(command: Mapping[str, Any], session: Any) -> bool:
    """Whether *command* is the first of its transaction, be it dressed for that already or not."""
    return "startTransaction" in command or bool(session._starting_transaction)  # noqa: SLF001


def _reads(name: str, command: Mapping[str, Any]) -> bool:
    if name in READING_WRITES or name in _AGGREGATIONS:
        return True
    return kind_of(name, command) in (Kind.READ, Kind.OTHER)


def _reaches(snapshot: Any, held: Floor) -> bool:
    """Whether a snapshot is as recent as the writes of a floor."""
    return all(version <= version_of(snapshot) for version in positions_of(held).values())


class SyncGuard(Guard):
    """Polls through a synchronous connection."""

    def install(self) -> None:
        """Observe everything that is sent, until :meth:`remove`."""
        connection = self.connection
        command, send_message = connection.command, connection.send_message

        def guarded_command(dbname: str, spec: Any, *args: Any, **options: Any) -> Any:
            self._pass(spec, options.get("session"), options.get("read_concern"))
            self._passed = True
            try:
                return command(dbname, spec, *args, **options)
            finally:
                self._passed = False

        def guarded_send(*args: Any) -> Any:
            if not (self._passed or self._asked) and self._call is not None:
                self._pass(self._call.command, self._call.session)
            self._asked = False
            return send_message(*args)

        connection.command, connection.send_message = guarded_command, guarded_send

    def remove(self) -> None:
        """Undo :meth:`install`."""
        del self.connection.command, self.connection.send_message

    def _pass(self, command: Any, session: Any = None, read_concern: Any = None) -> None:
        majority = self.demand(command, session, read_concern)
        if majority is not None:
            self.hold(majority=majority)
        self._sent = True

    def ask_first(self, query: Any) -> None:
        """Hold the *query* of a cursor back before PyMongo announces it, unless it has to stay.

        Raises:
            TooEarly: as :meth:`hold`.
        """
        if self.again is not None and not (query.session and query.session.in_transaction):
            concern = getattr(query, "read_concern", None)
            self._pass({query.name: ""}, query.session, concern)
            self._asked = True

    def hold(self, *, majority: bool) -> None:
        """Wait until the server shows the floor.

        Raises:
            TooEarly: it does not yet, and another attempt can be made.
            UnmetError: the time is up, or waiting cannot help.
            ConnectionFailure: the connection failed, and there is time for another one.
        """
        shown = Observation("", {})

        def observe(timeout_s: float) -> Observation:
            nonlocal shown
            shown = self._look(timeout_s, majority=majority)
            return shown

        self._passed = True
        try:
            if (again := self.again) is None:
                self.held.hold(observe, places=self._rules.kept)
            elif not again.look(self.held, observe):
                raise TooEarly(again)
        except failures() as error:
            if not is_failure(error):
                raise
            if self.held.left_s <= 0:
                self.held.expire(Unreachable(str(error)))
            give_up(error)
        finally:
            self._passed = False
        self.learn(shown)

    def _look(self, timeout_s: float, *, majority: bool) -> Observation:
        connection, steps = self.connection, self.steps(timeout_s, majority=majority)
        connection.set_conn_timeout(timeout_s)
        try:
            question = next(steps)
            while True:
                question = steps.send(self._ask(*question))
        except StopIteration as end:
            shown: Observation = end.value
            return shown
        finally:
            if not connection.closed:
                connection.set_conn_timeout(connection.opts.socket_timeout)

    def _ask(self, dbname: str, command: dict[str, Any]) -> Any:
        said = dict(command)
        self._rules.gossip(said)
        return asked(self.connection, dbname, said)


class AsyncGuard(Guard):
    """The asyncio twin of :class:`SyncGuard`."""

    def install(self) -> None:
        """Observe everything that is sent, until :meth:`remove`."""
        connection = self.connection
        command, send_message = connection.command, connection.send_message

        async def guarded_command(dbname: str, spec: Any, *args: Any, **options: Any) -> Any:
            await self._pass(spec, options.get("session"), options.get("read_concern"))
            self._passed = True
            try:
                return await command(dbname, spec, *args, **options)
            finally:
                self._passed = False

        async def guarded_send(*args: Any) -> Any:
            if not (self._passed or self._asked) and self._call is not None:
                await self._pass(self._call.command, self._call.session)
            self._asked = False
            return await send_message(*args)

        connection.command, connection.send_message = guarded_command, guarded_send

    def remove(self) -> None:
        """Undo :meth:`install`."""
        del self.connection.command, self.connection.send_message

    async def _pass(self, command: Any, session: Any = None, read_concern: Any = None) -> None:
        majority = self.demand(command, session, read_concern)
        if majority is not None:
            await self.hold(majority=majority)
        self._sent = True

    async def ask_first(self, query: Any) -> None:
        """Hold the *query* of a cursor back before PyMongo announces it, unless it has to stay.

        Raises:
            TooEarly: as :meth:`hold`.
        """
        if self.again is not None and not (query.session and query.session.in_transaction):
            concern = getattr(query, "read_concern", None)
            await self._pass({query.name: ""}, query.session, concern)
            self._asked = True

    async def hold(self, *, majority: bool) -> None:
        """The asyncio twin of :meth:`SyncGuard.hold`."""
        shown = Observation("", {})

        async def observe(timeout_s: float) -> Observation:
            nonlocal shown
            shown = await self._look(timeout_s, majority=majority)
            return shown

        self._passed = True
        try:
            if (again := self.again) is None:
                await self.held.hold_async(observe, places=self._rules.kept)
            elif not await again.look_async(self.held, observe):
                raise TooEarly(again)
        except failures() as error:
            if not is_failure(error):
                raise
            if self.held.left_s <= 0:
                self.held.expire(Unreachable(str(error)))
            give_up(error)
        finally:
            self._passed = False
        self.learn(shown)

    async def _look(self, timeout_s: float, *, majority: bool) -> Observation:
        connection, steps = self.connection, self.steps(timeout_s, majority=majority)
        connection.set_conn_timeout(timeout_s)
        try:
            question = next(steps)
            while True:
                question = steps.send(await self._ask(*question))
        except StopIteration as end:
            shown: Observation = end.value
            return shown
        finally:
            if not connection.closed:
                connection.set_conn_timeout(connection.opts.socket_timeout)

    async def _ask(self, dbname: str, command: dict[str, Any]) -> Any:
        said = dict(command)
        self._rules.gossip(said)
        return await asked_async(self.connection, dbname, said)


@lru_cache(maxsize=1)
def failures() -> tuple[type[Exception], ...]:
    """What a poll raises when it cannot be made on this connection now."""
    return Unreachable, *link_errors()


def any_member() -> Any:
    """The read preference of a question to whatever member the connection goes to."""
    from pymongo import ReadPreference

    return ReadPreference.PRIMARY_PREFERRED


def asked(connection: Any, dbname: str, command: dict[str, Any]) -> Any:
    """What the server answers on *connection*, or its refusal; unseen by the client's monitors."""
    plain, anywhere = type(connection).command, any_member()
    try:
        return plain(connection, dbname, command, anywhere, publish_events=False)
    except refusals() as error:
        return error


async def asked_async(connection: Any, dbname: str, command: dict[str, Any]) -> Any:
    """The asyncio twin of :func:`asked`."""
    plain, anywhere = type(connection).command, any_member()
    try:
        return await plain(connection, dbname, command, anywhere, publish_events=False)
    except refusals() as error:
        return error


def is_failure(error: BaseException) -> bool:
    """Whether *error* is of the connection; ``BarrierTimeout`` is a ``TimeoutError``, too."""
    from antipode import UnmetError

    return not isinstance(error, UnmetError)


def give_up(error: BaseException) -> NoReturn:
    """Let PyMongo choose another connection, or raise what it is used to.

    Raises:
        AutoReconnect: the server has no data to read now.
    """
    if isinstance(error, Unreachable):
        from pymongo.errors import AutoReconnect

        raise AutoReconnect(str(error)) from error
    raise error
