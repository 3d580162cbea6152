"""One operation of an instrumented client: what it wrote, and what enters the lineage."""

from __future__ import annotations

import contextlib
import logging
import weakref
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import (
    Places,
    Repeated,
    StaleRead,
    count,
    floor,
    log_once,
    mark_incomplete,
    own_time,
    record_uncommitted,
    record_write,
)
from antipode_shims.mongodb._commands import TELLING, Kind, kind_of
from antipode_shims.mongodb._position.reply import ASK, INTERRUPTED, MONGOS, STANDALONE

from .known import Defaults, Memory
from .pymongo import known_set_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping

    from typing_extensions import Self

    from antipode import WriteId
    from antipode.shim import Floor
    from antipode_shims.mongodb._look import Question
    from antipode_shims.mongodb._shim.base import BaseMongoShim


logger = logging.getLogger("antipode")

#: The operation that runs in this thread or task; PyMongo's own code lies between its two ends.
CALL: ContextVar[Call | None] = ContextVar("antipode_mongodb_call", default=None)
#: What a cursor is about to send, known before a connection is: PyMongo's own, find or getMore.
QUERY: ContextVar[Any] = ContextVar("antipode_mongodb_query", default=None)

#: Error replies that prove that nothing was done: Unauthorized, CommandNotFound.
_REFUSED = frozenset({13, 59})
#: Next to the server's own interruptions CursorKilled, of a command that reads what it writes.
_INTERRUPTED = INTERRUPTED | {237}

_WRITING = (Kind.WRITE, Kind.OTHER)

_NONE: Mapping[str, WriteId] = {}
#: No operation at all.
_SETTLED: frozenset[tuple[Any, Any] | None] = frozenset()
_NOTHING: MutableMapping[str, Any] = {}
_UNACKNOWLEDGED: MutableMapping[str, Any] = {"bulkWrite": 1, "writeConcern": {"w": 0}}


@dataclass
class SessionState:
    """What happened in one session of the application.

    Attributes:
        wrote: whether its transaction wrote; True for one whose beginning was not seen.
        proved: what its transaction's snapshot is known to show: log and position.
        retries: whether ``with_transaction`` repeats a commit whose outcome is not known.
        in_doubt: that outcome, until it is settled.
    """

    wrote: bool = True
    proved: dict[str, int] = field(default_factory=dict[str, int])
    retries: bool = False
    in_doubt: bool = False


class Rules:
    """What the hooks of one client decide and remember, without I/O."""

    def __init__(self, shim: BaseMongoShim, client: Any) -> None:
        """Decide for *client*, whose datastore *shim* stands for.

        Args:
            shim: the datastore's.
            client: whose operations these are.
        """
        self.shim = shim
        self.majority_cursors = False
        self.memory = Memory()
        options = client.options.pool_options
        #: Of the pool, for operations that are made again, and for those that keep a connection.
        self.places, self.kept = (Places(lambda: options.max_pool_size or 0) for _ in range(2))
        self.defaults = Defaults(shim.datastore)
        self._client = weakref.ref(client)
        self._sessions: weakref.WeakKeyDictionary[Any, SessionState] = weakref.WeakKeyDictionary()

    def found_set_name(self) -> str:
        """The replica set's name; empty while the client has not found it."""
        client = self._client()
        return "" if client is None else known_set_name(client)

    def gossiped(self, question: Question) -> Question:
        """Let a server hear of what this client has heard of: it does not wait for more."""
        client = self._client()
        # As PyMongo does itself, but for this module's hook on it.
        heard = None if client is None else client._topology.max_cluster_time()  # noqa: SLF001
        database, command = question
        return database, ({**command, "$clusterTime": heard} if heard else command)

    def session(self, session: Any) -> SessionState:
        """What is remembered of a session."""
        state = self._sessions.get(session)
        if state is None:
            state = self._sessions[session] = SessionState()
        return state

    @contextlib.contextmanager
    def repeating(self, session: Any) -> Iterator[None]:
        """While ``with_transaction`` runs, which repeats a commit of unknown outcome on its own."""
        state = self.session(session)
        state.retries, state.in_doubt = True, False
        try:
            yield
        finally:
            state.retries = False
            if state.in_doubt:
                mark_incomplete(self.shim.datastore, "in_doubt")

    def check(self, connection: Any) -> None:
        """Refuse what has no positions.

        Raises:
            ConfigurationError: the server is a mongos, or no member of a replica set.
        """
        if not connection.is_repl:
            raise ConfigurationError(MONGOS if connection.is_mongos else STANDALONE)


class Call:
    """What one operation of the application came to, over all attempts of PyMongo.

    A context manager: all that PyMongo does meanwhile is of it.

    Attributes:
        floor: what its reads must see, the same in all attempts: its time goes on between them.
        proved: what a floor that was met demanded, where a snapshot was taken after it.
        session: the application's, if the command that was announced last is of one.
        again: what makes it again while its reads wait; None where that cannot be.
        stale: counts it once it is answered, if it may be stale.
    """

    __slots__ = (
        "_asked",
        "_command",
        "_commits",
        "_doubted",
        "_kind",
        "_name",
        "_open",
        "_repeats",
        "_rules",
        "_token",
        "_told",
        "_writes",
        "again",
        "floor",
        "proved",
        "session",
        "stale",
    )

    def __init__(self, rules: Rules, *, repeats: bool = False) -> None:
        """Nothing happened yet; *repeats*: whether it is made again while its reads wait."""
        self._rules = rules
        self._repeats = repeats
        self.floor: Floor | None = None
        self.again: Repeated | None = None
        self.stale = StaleRead()
        self._name, self._kind = "", Kind.NEUTRAL
        self.session: Any = None
        self._writes: Mapping[str, WriteId] = _NONE
        self._open = self._told = False
        self._asked: Floor | None = None
        self._doubted = _SETTLED
        self._command: MutableMapping[str, Any] = _NOTHING
        self._commits: SessionState | None = None
        self.proved: dict[str, int] | None = None

    @property
    def command(self) -> Mapping[str, Any]:
        """The command that was announced last."""
        return self._command

    def __enter__(self) -> Self:
        """Begin.

        Raises:
            UnmetError: as :func:`antipode.shim.floor`.
        """
        shim = self._rules.shim
        self.floor = floor(shim, reads=False, stale=self.stale)
        if self.floor is not None and self._repeats:
            self.again = Repeated(shim, self._rules.places)
        self._token = CALL.set(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Enter what was written into the scope.

        Raises:
            ConfigurationError: as :meth:`settle`.
        """
        CALL.reset(self._token)
        if error is None:
            self.settle()
        else:
            self.settle_failed()

    @own_time
    def announce(self, command: MutableMapping[str, Any], session: Any) -> None:
        """Take note of a command that is about to be encoded, and ask for what its reply needs."""
        try:
            self._announce(command, session)
        except Exception as error:  # noqa: BLE001 - the application's command goes on
            self._broken(error)

    def _announce(self, command: MutableMapping[str, Any], session: Any) -> None:
        name = next(iter(command))
        self._open = False
        self._name, self._command, self.session = name, command, session
        self._kind = kind = kind_of(name, command)
        if "autocommit" in command:
            self._in_transaction(self._rules.session(session))
        elif kind is Kind.READ:
            self._announce_read()
        elif kind in _WRITING:
            self._announce_write()

    def _broken(self, error: Exception) -> None:
        """What cannot be understood may have been a write."""
        datastore = self._rules.shim.datastore
        mark_incomplete(datastore, "unsampled")
        if isinstance(error, ConfigurationError):
            count("uncovered_write", datastore)
            log_once(
                "mongodb_configuration",
                datastore,
                "",
                "writes to %r have no positions: %s",
                datastore,
                error,
            )
        else:
            logger.warning("a command to %r was not understood", datastore, exc_info=error)

    def presume_write(self) -> None:
        """Take whatever will be sent unannounced for writes that nobody waits for."""
        self._name, self._command, self._kind = "bulkWrite", _UNACKNOWLEDGED, Kind.WRITE
        self._open = True

    def _in_transaction(self, state: SessionState) -> None:
        """Nothing is written before the commit."""
        writes = self._kind in _WRITING
        self._kind = Kind.NEUTRAL
        if "startTransaction" in self._command:
            state.wrote = False
            state.proved = {}
        ends = self._name in ("commitTransaction", "abortTransaction")
        record_uncommitted(self._rules.shim, state, wrote=not ends and (state.wrote or writes))
        if self._name != "commitTransaction":
            state.wrote = state.wrote or writes
        elif state.wrote:
            self._kind = Kind.WRITE
            self._commits = state
            self._announce_write()

    def _announce_read(self) -> None:
        """Let a dry run judge it once; the guard asks for the floor, for each connection again."""
        if not self._told and self._name != "getMore":
            self._told = True
            self._asked = floor(self._rules.shim, stale=self.stale)

    def passed(self) -> None:
        """Its read is answered: it is known to be shown all that a poll can show."""
        if self._asked is not None:
            self._asked.passed()

    def _announce_write(self) -> None:
        self._open = True
        if self._name not in TELLING:
            self._command.update(ASK)

    @property
    def _waits_for(self) -> Any:
        """The write concern's ``w``, which PyMongo adds to a command last."""
        concern = self._command.get("writeConcern")
        return concern.get("w") if concern else None

    @own_time
    def took(self, reply: MutableMapping[str, Any]) -> None:
        """Take a reply in."""
        try:
            self._took(reply)
        except Exception as error:  # noqa: BLE001 - the application gets its reply
            self._broken(error)

    def _took(self, reply: MutableMapping[str, Any]) -> None:
        if self._kind in _WRITING:
            self._open = False
            self._took_write(reply)
            return
        if self._kind is Kind.READ:
            concern = self._command.get("readConcern")
            if concern and concern.get("level") in ("majority", "snapshot"):
                self._rules.majority_cursors = True
        if self._takes_snapshot:
            self._prove()
        else:
            self._begin()

    def _begin(self) -> None:
        """A transaction's snapshot, if it has one, was taken after the floor was shown."""
        if "startTransaction" in self._command:
            self._prove()

    def _prove(self) -> None:
        if self.proved:
            self._rules.session(self.session).proved = self.proved

    @property
    def _takes_snapshot(self) -> bool:
        """Whether its session reads from one snapshot, which its first read takes."""
        return self.session is not None and bool(self.session.options.snapshot)

    def _took_write(self, reply: MutableMapping[str, Any]) -> None:
        if reply.get("ok"):
            self._settled()
            if not self._wrote_nothing(reply):
                self._sample(reply)
            if any(each.get("code") in _INTERRUPTED for each in reply.get("writeErrors", ())):
                self._doubt()
        elif self._commits is not None:
            # With this label the server vouches for it that nothing was committed.
            if "TransientTransactionError" in reply.get("errorLabels", ()):
                self._settled()
            else:
                self._doubt()
        elif self._may_be_half_done(reply):
            self._sample(reply)
        elif reply.get("code") in _INTERRUPTED:
            self._doubt()
        if self._name not in TELLING:
            self._strip(reply)

    @property
    def _operation(self) -> tuple[Any, Any] | None:
        """Session and number, the same in all attempts that count as one; None for one alone."""
        number = self._command.get("txnNumber")
        return None if number is None else (self._command.get("lsid", _NOTHING).get("id"), number)

    def _doubt(self) -> None:
        """Nobody knows what became of the command that was announced last."""
        self._doubted |= {self._operation}

    def _settled(self) -> None:
        """This attempt was answered: it ends the doubt about earlier ones of the same number."""
        if self._doubted and (operation := self._operation) is not None:
            self._doubted -= {operation}

    def _may_be_half_done(self, reply: Mapping[str, Any]) -> bool:
        """Whether what failed may have written before that."""
        if self._kind is Kind.OTHER:
            return reply.get("code") not in _REFUSED
        return self._name in ("aggregate", "mapReduce")

    def _wrote_nothing(self, reply: Mapping[str, Any]) -> bool:
        """Whether no document fitted; an update that failed may have changed some."""
        return reply.get("n") == 0 and (self._name == "insert" or "writeErrors" not in reply)

    def _sample(self, reply: Mapping[str, Any]) -> None:
        shim = self._rules.shim
        shim.set_name = shim.set_name or self._rules.found_set_name()
        majority = (
            self._waits_for == "majority"
            and "writeConcernError" not in reply
            and bool(reply.get("ok"))
        )
        write = shim.minted(reply, majority=majority)
        if write is not None:
            # One log's later position says all of the earlier.
            self._writes = {**self._writes, write.key: write}

    @staticmethod
    def _strip(reply: MutableMapping[str, Any]) -> None:
        """Leave the application's reply as it would be; a raw document cannot be changed."""
        with contextlib.suppress(TypeError, AttributeError, KeyError):
            for name in ASK:
                reply.pop(name, None)

    def failed(self, connection: Any, error: BaseException) -> None:
        """Take note of an attempt that ended without an answer."""
        error = getattr(error, "error", None) or error  # Of a bulk write of the client.
        cancelled = not isinstance(error, Exception)
        if self._kind in _WRITING and (
            (cancelled and self._open) or (connection.closed and (cancelled or _is_lost(error)))
        ):
            self._doubt()
        if self._waits_for != 0:
            self._open = False
        self._begin()

    def settle(self) -> None:
        """Enter what was written into the scope.

        Raises:
            ConfigurationError: there is no scope, and ``on_unscoped="raise"``.
        """
        if self.again is not None:
            self.again.end()
        if self._commits is not None:
            self._settle_commit(self._commits)
        if self._doubted or self._open:  # Open in the end: nobody waited for a reply.
            mark_incomplete(self._rules.shim.datastore, "in_doubt")
        if self._writes:
            record_write(*self._writes.values())
        self.stale.answered()

    def _settle_commit(self, state: SessionState) -> None:
        """Let ``with_transaction`` repeat a commit before its outcome counts as unknown."""
        state.in_doubt = bool(self._doubted) and state.retries
        if state.in_doubt:
            self._doubted = _SETTLED

    def settle_failed(self) -> None:
        """The same after an exception of the client, which goes on to the application."""
        self.stale.failed()
        with contextlib.suppress(ConfigurationError):
            self.settle()


def _is_lost(error: BaseException) -> bool:
    """Whether a request may have been carried out though no reply came."""
    from pymongo.errors import ConnectionFailure

    return isinstance(error, (ConnectionFailure, OSError))
