"""One call of an instrumented client: what was added to it, and what enters the lineage."""

from __future__ import annotations

import contextlib
import threading
import weakref
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from antipode import ConfigurationError, Status, UnmetError
from antipode.shim import (
    Floor,
    Repeated,
    StaleRead,
    count,
    floor,
    log_once,
    mark_incomplete,
    move,
    own_time,
    record_read,
    record_write,
    stays,
)
from antipode_shims.redis._commands import READ, WRITE, Kind, kind_of, name_of
from antipode_shims.redis._position import (
    InfoError,
    observation,
    parse_info,
    plainly_shows,
    primary_place,
    refused,
    replica_place,
    unknown_logs,
)

from .primary import MOVED, PRIMARIES, SCANS, is_scan
from .redis_py import places_of
from .tap import Tap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from antipode import Lineage
    from antipode_shims.redis._shim.base import BaseRedisShim
    from antipode_shims.redis._stored.lineages import StoredLineages


_READING = (Kind.READ, Kind.AWAITING)

#: The call that runs in this thread or task; redis-py's own code lies between its two ends.
CALL: ContextVar[Call | None] = ContextVar("antipode_redis_call", default=None)


class Call:
    """What one call of the application came to, over all attempts of redis-py.

    Attributes:
        held: the floor.
        asked: whether it was asked for, for this call's reads already.
        may_wait: whether it may be held back; of most calls it is known at once that they are not.
        verdict: why the read may not be answered. It is kept here and raised outside, because
            redis-py would take a ``TimeoutError`` for its own and try again.
        recorded: the incarnation that showed the floor's promises before the read.
        stale: counts it once it is answered, if it may be stale.
        repeats: whether it can be made again, on another connection, while nothing was sent.
    """

    # Most calls change none of these: what an instance does not set costs it nothing.
    asked = False
    may_wait = True
    verdict: UnmetError | None = None
    recorded = ""
    repeats = False
    _again: Repeated | None = None
    _in_doubt = False
    _positions: tuple[tuple[Any, Any], ...] = ()
    _shown: tuple[Lineage, ...] = ()

    def __init__(
        self, rules: Rules, held: Floor | None = None, stale: StaleRead | None = None
    ) -> None:
        """Nothing happened yet."""
        self.held = held
        self.stale = StaleRead() if stale is None else stale
        self.shim = rules.shim
        self._places = rules.places

    @property
    def again(self) -> Repeated:
        """What makes it again after each pause."""
        if self._again is None:
            self._again = Repeated(self.shim, self._places)
        return self._again

    @property
    def begun(self) -> bool:
        """Whether it waited in an attempt before this one."""
        return self._again is not None and self._again.floor is not None

    @property
    def waits(self) -> bool:
        """Whether its last attempt was too early."""
        return self._again is not None and self._again.waits

    def took(self, tap: Tap) -> None:
        """Adopt an attempt that ended."""
        if tap.lost:
            self._in_doubt = True
        elif tap.sent:
            self._in_doubt = self._in_doubt and not (tap.wrote or tap.ran)
        if tap.wrote:
            self._positions += ((tap.trailed, None),)
        elif tap.ran:
            self._positions += ((tap.trailed, tap.led),)
        if tap.adds:
            self.saw(tap)

    def saw(self, tap: Tap) -> None:
        """Adopt what an attempt's replies depend on."""
        self._shown += tuple(tap.shown)
        if tap.covers:
            self._shown += (self.shim.covering(tap.trailed),)

    @own_time
    def settle(self) -> None:
        """Enter what was written into the scope, raise the verdict.

        Raises:
            UnmetError: a floor was not met.
            ConfigurationError: there is no scope, and ``on_unscoped="raise"``.
        """
        if self._again is not None:
            self._again.end()
        if self._in_doubt:
            mark_incomplete(self.shim.datastore, "in_doubt")
        for behind, before in self._positions:
            write = self.shim.minted(behind, before)
            if write is not None:
                record_write(write)
        for lineage in self._shown:
            record_read(lineage)
        if self.verdict is not None:
            raise self.verdict
        self.stale.answered()

    def settle_failed(self) -> None:
        """The same after an exception of the client, which goes on to the application."""
        self.stale.failed()
        with contextlib.suppress(ConfigurationError, UnmetError):
            self.settle()


class Staying:
    """Keeps a client instrumented until the reads that wait on it are over.

    Each attempt at such a read goes through the client's class: a plain one would read at once.
    """

    def __init__(self, adopt: Callable[[], object], disown: Callable[[], object]) -> None:
        """Of a client that *adopt* instruments, and *disown* leaves plain."""
        self._adopt, self._disown = adopt, disown
        self._reads = 0
        self._lock = threading.Lock()
        self.over = False

    def __enter__(self) -> None:
        """A read begins to wait."""
        with self._lock:
            self._reads += 1
            if self.over and self._reads == 1:  # Between its attempt and here.
                self._adopt()

    def __exit__(self, *_: object) -> None:
        """It waits no longer."""
        with self._lock:
            self._reads -= 1
            if self.over and not self._reads:
                self._disown()

    def leave(self) -> None:
        """Leave the client plain, now or once nothing waits."""
        with self._lock:
            self.over = True
            if not self._reads:
                self._disown()


class Rules:
    """What the hooks of one client decide, without I/O.

    Attributes:
        shim: whose clients they are.
        places: of their pool, for reads that are made again.
        kept: of their pool, for reads that keep their connection while they wait.
        by_hand: whether a ``MULTI`` was ever sent by hand.
    """

    def __init__(self, shim: BaseRedisShim, pool: Any) -> None:
        """Decide for the clients of *shim* on *pool*."""
        self.shim = shim
        self._pool = pool
        self.places, self.kept = places_of(pool), places_of(pool)
        self._queuing: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self.by_hand = False
        self._watching: weakref.WeakSet[Any] = weakref.WeakSet()

    def call(self, args: Any, *, scans: bool = False, movable: bool = True) -> Call | None:
        """What a command that needs more than redis-py does comes to; most reads need no more.

        Of a command with a cursor it is :data:`SCANNING`, unless *scans*.

        Raises:
            UnmetError: it is a read of a request that was moved to the primary, if it is *movable*.
        """
        kind, shim = kind_of(args), self.shim
        if kind is WRITE:
            call = Call(self)
            call.may_wait = False
            return call
        if kind is READ or kind is Kind.AWAITING:
            if not scans and args[0] in SCANS:
                return SCANNING
            stale = StaleRead()
            held = floor(shim, stale=stale)
            if held and movable and (unmet := self.stays(held)) is not None:
                raise unmet
            if not (held or stale or (shim.stored is not None and shim.stored.concerns(args))):
                return None
            call = Call(self, held, stale)
            call.asked = True
            call.may_wait = held is not None
            return call
        if kind is Kind.NEUTRAL and not (shim.stored and is_named(args, "WATCH", "UNWATCH")):
            return None
        return Call(self)

    def floor(self, call: Call, connection: Any, *, reads: bool = True) -> Floor | None:
        """What the reads of *call* on *connection* must see; *reads*: whether it surely reads."""
        if call.shim is not self.shim:  # This one, of another client, is made in that call.
            held = floor(self.shim, reads=reads, stale=call.stale)
        elif call.asked:
            held = call.held
        else:
            call.asked = reads
            held = call.held = floor(self.shim, reads=reads, stale=call.stale)
        if held is not None and self.shim.by_sentinels:
            self.shim.locate(held, connection)
        return held

    def excuse(self, held: Floor, refusal: Exception) -> None:
        """Let a read be answered on a connection that cannot be asked for its position.

        Raises:
            ConfigurationError: the address does not pass ``INFO``.
            UnmetError: it may not be answered there.
        """
        if isinstance(refusal, ConfigurationError):
            raise refusal.with_traceback(None)
        self.judge(held, refusal, final=True, recorded="")

    def judge(self, held: Floor, reply: Any, *, final: bool, recorded: str) -> bool:
        """Whether a read after the poll *reply* may be answered.

        Args:
            held: the floor.
            reply: to ``INFO replication``; an error as a value.
            final: the log history was asked already.
            recorded: the incarnation that showed the floor's promises just before, on the same
                connection. Another one has to be asked again.

        Raises:
            UnmetError: waiting cannot help.
        """
        place = primary_place(reply) or replica_place(reply)
        shows = place is not None and plainly_shows(*place, held.writes)
        if shows and not held.promises:
            held.passed()
            return True
        try:
            state = parse_info(reply)
        except InfoError as error:
            return held.accepts(refused(held.writes, error, held.promises))
        if not state.primary and (moved := MOVED.get()) is not None:
            message = "reads of %r are not made at its primary: what is named as that is none"
            log_once("no_primary", held.datastore, "", message, held.datastore)
            raise moved
        shown = observation(state, held.writes, self.shim.history)
        if shown.server == recorded and (state.primary or not state.syncing):
            shown = replace(shown, promises=dict.fromkeys(held.promises, Status.VISIBLE))
        if not final and unknown_logs(shown):
            return False
        return held.accepts(shown)

    @property
    def primary(self) -> Any:
        """The client of the primary for reads that would be stale here; None for none."""
        if self.shim.primary is not None or self.shim.reads_from == "primary":
            return self.shim.primary
        return PRIMARIES.of(self.shim, self._pool)

    def stays(self, held: Floor, commands: Sequence[Any] = ()) -> UnmetError | None:
        """Why a read under the floor *held* is made at the primary at once; None: it is not.

        Args:
            held: what it must see.
            commands: all of a pipeline's.
        """
        if self.by_hand or not any(each.moves for each in held.demands):
            return None
        if any(map(is_scan, commands)):
            return None
        unmet = stays(self.shim.datastore)
        return None if unmet is None or self.primary is None else unmet

    def elsewhere(self, unmet: UnmetError, commands: Sequence[Any], *, scans: bool = False) -> Any:
        """The client at which *commands* are made, which would be stale here; None for none.

        Nothing that may write, and nothing within a transaction: its connection is this client's.

        Args:
            unmet: why not here.
            commands: all of them.
            scans: whether a cursor that they give is known again.
        """
        if not unmet.at_primary or self.by_hand or (primary := self.primary) is None:
            return None
        if any(kind_of(args) not in _READING for args in commands):
            return None
        if not scans and any(map(is_scan, commands)):
            return None
        count("reads_at_primary", self.shim.datastore)
        move(self.shim.datastore, unmet.result)
        return primary

    def concerns(self, args: Any) -> bool:
        """Whether a lineage is stored, or is to be stored, with what a command names."""
        return self.shim.stored is not None and self.shim.stored.concerns(args)

    def missed(self, commands: Any) -> None:
        """Count those of *commands* that nothing can be added to."""
        if self.shim.stored is not None:
            for args in commands:
                self.shim.stored.missed(args)

    def write_tap(
        self,
        commands: Sequence[Any],
        *,
        alone: bool = True,
        others: bool = False,
        **plan: Any,
    ) -> Tap:
        """What rides along with *commands*, writes among them.

        Args:
            commands: of the application.
            alone: False between ``WATCH`` and ``MULTI``, and in a transaction.
            others: whether there are some that may write and read. A replica takes those that only
                read: it is asked before them, too, whether it is one.
            plan: of the tap.
        """
        if others:
            plan["lead"] = True
            if any(is_named(args, "MIGRATE") for args in commands):
                mark_incomplete(self.shim.datastore, "in_doubt")  # In the log of another server.
            self.missed(args for args in commands if kind_of(args) is Kind.OTHER)
        if (stored := self._stored(commands, **plan)) is None:
            return Tap(trail=True, **plan)
        return stored.tap(alone=alone, trail=True, **plan)

    def read_tap(self, commands: Sequence[Any], *, alone: bool = True, **plan: Any) -> Tap:
        """What rides along with *commands*, reads alone."""
        if (stored := self._stored(commands, **plan)) is None:
            return Tap(**plan)
        return stored.tap(alone=alone, trail=True, wrote=False, **plan)

    def _stored(
        self, commands: Sequence[Any], *, refusal: Exception | None, **_plan: Any
    ) -> StoredLineages | None:
        """What stores and finds the lineages of *commands*: nothing where a proxy is in between.

        One that keeps ``INFO`` back may do so with anything else that is added.
        """
        if self.shim.stored is None or not any(map(self.concerns, commands)):
            return None
        if not isinstance(refusal, ConfigurationError):
            return self.shim.stored
        self.missed(commands)
        if any(kind_of(args) in _READING for args in commands):
            record_read(self.shim.covering(refusal))  # No position can be had.
        return None

    def watched(self, connection: Any, args: Any) -> None:
        """Note a ``WATCH`` sent by hand, which a transaction of ours would end."""
        if is_named(args, "WATCH"):
            self._watching.add(connection)
        elif is_named(args, "DISCARD", "EXEC", "UNWATCH"):
            self._watching.discard(connection)

    def alone(self, connection: Any) -> bool:
        """Whether no ``WATCH`` was sent by hand on *connection*."""
        return connection not in self._watching

    def queuing(self, connection: Any) -> bool:
        """Whether a ``MULTI`` sent by hand is open on *connection*."""
        return connection in self._queuing

    def queued(self, connection: Any, args: Any, tap: Tap) -> None:
        """Take in the reply to a command after a ``MULTI`` sent explicitly."""
        writes = kind_of(args) in (Kind.WRITE, Kind.OTHER)
        if tap.due or not tap.sent:
            self._queuing.pop(connection, None)  # The connection failed, and MULTI with it.
        elif tap.last in (b"QUEUED", "QUEUED"):
            self._queuing[connection] = self._queuing.get(connection, False) or writes
        elif not isinstance(tap.last, Exception):
            # The connection was renewed meanwhile, so the command was done alone.
            self._queuing.pop(connection, None)
            if writes:
                self.shim.unsampled("its MULTI was lost with its connection")

    def opened(self, connection: Any) -> None:
        """Note a ``MULTI`` sent explicitly."""
        self.by_hand = True
        self._queuing[connection] = False

    def ended(self, connection: Any) -> bool:
        """Note its end; whether writes were queued. Without a ``MULTI`` that is not known."""
        return self._queuing.pop(connection, True)


#: What a command with a cursor comes to, at first.
SCANNING = cast("Call", object())


def is_named(args: Any, *names: str) -> bool:
    """Whether a command is one of *names*."""
    return name_of(args) in names
