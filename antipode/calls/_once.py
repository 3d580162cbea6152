"""``once``: a function whose effect, name and reply commit together."""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import antipode
from antipode.shim import count, log_once, scope_in

from ._conversation import Key, converse, drive, drive_async
from ._current import Call, current
from ._errors import TooManyDuplicates
from ._names import digest_of, identity
from ._replies import Codec, Declined, canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import Concatenate, ParamSpec

    from pymongo.asynchronous.database import AsyncDatabase
    from pymongo.database import Database

    from ._conversation import Store
    from ._replies import Reply
    from ._sql import SqlTarget

    Target = SqlTarget | Database[Any] | AsyncDatabase[Any]
    _P = ParamSpec("_P")

_R = TypeVar("_R")

#: Bytes of the largest reply that is kept, unless somebody says another size.
MAX_REPLY = 1_000_000
#: How many calls of one name hold a connection in this process, the first of them included.
DUPLICATES = 4
_UNNAMED = (
    "%s runs in no call: nobody sent a name, so a repetition is another call. Name it: "
    "calls.instrument_server(app), or `with calls.call(name):`"
)

_lock = threading.Lock()
#: Of each call how many hold a connection, or wait for one.
_under_way: Counter[tuple[str, str, str]] = Counter()


def once(
    target: Target,
    *,
    datastore: str | None = None,
    name: str | None = None,
    digest: Callable[..., object] | None = None,
    reply: type[Any] | None = None,
    declines: Sequence[type[Exception]] = (),
    timeout: float = 5.0,
    duplicates: int = DUPLICATES,
    max_reply: int = MAX_REPLY,
) -> _Once:
    """Let a function of ``(session, *arguments)`` have its effect once, however often it is called.

    The decorated function takes the arguments alone. It opens a session, takes the call's name,
    runs the function, stores what it returned, and commits all of that together. Where the name is
    taken it waits until that call is committed, and returns the same reply, or runs where it was
    rolled back. A function that fails leaves nothing behind, and runs when it is called again; it
    also runs again where its transaction was the victim of a conflict. So it has no effect but by
    its session.

    *Once* means within a history of the database: a fail-over that loses the commit loses the name.

    Args:
        target: an engine or a maker of sessions of SQLAlchemy, synchronous or not: PostgreSQL,
            MySQL or MariaDB; or a database of PyMongo on a replica set, whose collections the
            function reaches with ``session=``. The calls are in the database of the effect.
        datastore: as the engine is instrumented: a repetition's caller depends on the first one's
            commit by the position that the primary has when it is repeated.
        name: of the effect, default the function's module and name. It stays when either changes.
        digest: makes the declared arguments of the arguments, default all of them: a call with the
            same name and others is refused.
        reply: what the function returns, where that is no plain JSON: a dataclass or a Pydantic
            model.
        declines: exceptions that are replies: what the function did is taken back, the error is
            stored, and repetitions raise it again, made from its arguments.
        timeout: seconds until which conflicts are repeated and a duplicate waits. MySQL waits as
            long as the connection's ``innodb_lock_wait_timeout`` says.
        duplicates: how many of this process hold a connection for one name; others are refused.
        max_reply: bytes of the largest reply.

    Raises:
        ConfigurationError: here, where *target* is no such database; when it is called, where the
            table is missing.
        Divergent: when it is called: the name was used with other arguments.
        DuplicateWaits: when it is called: the first call goes on still after *timeout*.
        TooManyDuplicates: when it is called: as many as may wait for this name already.
        InDoubt: when it is called: the name is committed without a reply.
        TransactionEnded: when it is called: the function ends its transaction itself.
        ReplyTooLarge: when it is called: nothing is committed.
        TypeError: when it is called: arguments or a reply that JSON cannot say.
    """
    settings = _Settings(name, datastore, digest, timeout, duplicates)
    return _Once(_store_of(target), Codec(reply, declines, max_reply), settings)


class _Once:
    """The decorator."""

    def __init__(self, store: Store, codec: Codec, settings: _Settings) -> None:
        self._store = store
        self._codec = codec
        self._settings = settings

    def __call__(self, function: Callable[Concatenate[Any, _P], _R]) -> Callable[_P, _R]:
        effect = _Effect(function, self._store, self._codec, self._settings)
        called = _in_tasks(effect) if inspect.iscoroutinefunction(function) else _in_threads(effect)
        decorated: Any = functools.update_wrapper(called, function)
        of_function: Callable[_P, _R] = decorated
        return of_function


def _in_threads(effect: _Effect) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the function's own
        return effect.call(args, kwargs)

    return call


def _in_tasks(effect: _Effect) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the function's own
        return await effect.call_async(args, kwargs)

    return call


def _store_of(target: Target) -> Store:
    """Where the calls of *target* are."""
    one: Any = target
    if type(target).__module__.partition(".")[0] == "pymongo":
        from ._mongodb import mongo_store

        return mongo_store(one)
    from ._sql import sql_store

    return sql_store(one)


class _Settings(NamedTuple):
    """What was said of a function; see :func:`once`."""

    name: str | None
    datastore: str | None
    digest: Callable[..., object] | None
    timeout_s: float
    duplicates: int


class _Effect:
    """One decorated function."""

    def __init__(
        self,
        function: Callable[..., Any],
        store: Store,
        codec: Codec,
        settings: _Settings,
    ) -> None:
        self._function = function
        self._label = settings.name or f"{function.__module__}.{function.__qualname__}"
        self._store = store
        self._codec = codec
        self._settings = settings

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - the function's own
        """Call it in a thread."""
        run = _Run(self._function, args, kwargs, self._codec)
        with self._begun(args, kwargs) as key:
            reply = drive(self._conversation(key, run, run.run))
        if not run.committed(reply):
            self._depend(reply)
        return self._codec.value(reply)

    async def call_async(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - as above
        """Call it in a task."""
        run = _Run(self._function, args, kwargs, self._codec)
        with self._begun(args, kwargs) as key:
            reply = await drive_async(self._conversation(key, run, run.run_async))
        if not run.committed(reply):
            await self._depend_async(reply)
        return self._codec.value(reply)

    def _conversation(self, key: Key, run: _Run, execute: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - a conversation
        return converse(
            self._store,
            key,
            execute,
            deadline_s=time.monotonic() + self._settings.timeout_s,
            declining=run.declined if self._codec.declines else None,
        )

    @contextmanager
    def _begun(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Generator[Key]:
        """One more of the effects of the current call; without a reply the next one is the same.

        Raises:
            EqualCalls: the same one is under way in this call.
            TooManyDuplicates: as many calls of this name are under way as may be.
        """
        declare = self._settings.digest
        declared: object = [args, kwargs] if declare is None else declare(*args, **kwargs)
        held = current()
        if held is None or not held.named:
            count("call_unnamed")
            log_once("call_unnamed", "", self._label, _UNNAMED, self._label)
        if held is None:
            held = Call(None)
        digest = digest_of(canonical(declared))
        effect = held.effect(self._label)
        replied = False
        try:
            key = Key(held.caller, held.name, identity(effect.name), digest)
            with self._counted(key):
                yield key
            replied = True
        finally:
            effect.ended(answered=replied)

    @contextmanager
    def _counted(self, key: Key) -> Generator[None]:
        """One more of this name is under way.

        Raises:
            TooManyDuplicates: there are as many as may be.
        """
        which = key.caller, key.name, key.effect
        with _lock:
            if _under_way[which] >= self._settings.duplicates:
                msg = f"{_under_way[which]} calls {key.name!r} are under way: ask again later"
                raise TooManyDuplicates(msg)
            _under_way[which] += 1
        try:
            yield
        finally:
            with _lock:
                _under_way[which] -= 1
                if not _under_way[which]:
                    del _under_way[which]

    def _depend(self, reply: Reply) -> None:
        """The caller depends on what the first call's did, and on its commit."""
        count("call_repeated")
        if scope_in() is None:
            return
        if reply.lineage:
            antipode.transfer(reply.lineage)
        if (datastore := self._settings.datastore) is not None:
            antipode.transfer(antipode.as_of_now(datastore, timeout=self._settings.timeout_s))

    async def _depend_async(self, reply: Reply) -> None:
        """As :meth:`_depend`."""
        count("call_repeated")
        if scope_in() is None:
            return
        if reply.lineage:
            antipode.transfer(reply.lineage)
        if (datastore := self._settings.datastore) is not None:
            timeout_s = self._settings.timeout_s
            antipode.transfer(await antipode.as_of_now_async(datastore, timeout=timeout_s))


class _Run:
    """The function with the arguments of one call, each time that the conversation runs it."""

    __slots__ = ("_args", "_codec", "_function", "_kwargs", "_reply")

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        codec: Codec,
    ) -> None:
        self._function = function
        self._args = args
        self._kwargs = kwargs
        self._codec = codec
        self._reply: Reply | None = None

    def committed(self, reply: Reply) -> bool:
        """Whether *reply* is of this call, and not of an earlier one."""
        return reply is self._reply

    def run(self, handle: Any) -> Reply:  # noqa: ANN401 - the store's
        """Run it, with the session of *handle*."""
        session = handle.give()
        try:
            value = self._function(session, *self._args, **self._kwargs)
        except self._codec.declines as error:
            raise Declined(error) from error
        finally:
            handle.returned()
        handle.check()
        return self._returned(value)

    async def run_async(self, handle: Any) -> Reply:  # noqa: ANN401 - as above
        """As :meth:`run`."""
        session = handle.give()
        try:
            value = await self._function(session, *self._args, **self._kwargs)
        except self._codec.declines as error:
            raise Declined(error) from error
        finally:
            handle.returned()
        handle.check()
        return self._returned(value)

    def declined(self, error: Exception) -> Reply:
        """The reply that *error* is."""
        self._reply = self._codec.declined(error, _lineage())
        return self._reply

    def _returned(self, value: object) -> Reply:
        self._reply = self._codec.returned(value, _lineage())
        return self._reply


def _lineage() -> str:
    """What the request depends on so far; what this transaction writes is in its commit."""
    if scope_in() is None:
        return ""
    lineage = antipode.current()
    return antipode.serialize(lineage) if lineage else ""
