"""Who may observe: a dry run, a recorder of histories, telemetry. Start-up fills their slots."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, cast

from . import switch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Hashable, Sequence
    from contextlib import AbstractContextManager
    from types import CodeType, FrameType

    from antipode._lineage.errors import ServerName
    from antipode._lineage.lineage import Lineage
    from antipode._lineage.outcomes import BarrierResult
    from antipode._lineage.unmet_errors import UnmetError
    from antipode._lineage.write_id import Dependency, WriteId

    from .clock import Clock
    from .datastores import Rule

_P = ParamSpec("_P")
_R = TypeVar("_R", bound="BarrierResult | None")
_T = TypeVar("_T")


class Request(Protocol):
    """What an observer sees of a request: a scope.

    Attributes:
        notes: what an observer keeps there; for the branches of the request the same object.
        recorded: what a recorder of histories keeps there, in the same way.
        answered: whether its response has left.
    """

    notes: object
    recorded: object
    answered: bool

    @property
    def known(self) -> Lineage:
        """What it depends on, without what reads deferred."""
        ...

    @property
    def uncommitted(self) -> frozenset[str]:
        """The datastores in which it has written, in transactions that are open."""
        ...


class Client(Protocol):
    """What an observer sees of whoever reads a datastore: a shim.

    Attributes:
        promises: whether it asks for promises.
        floors: whether it holds reads back.
    """

    promises: bool
    floors: bool

    @property
    def datastore(self) -> str:
        """What it reads."""
        ...

    @property
    def reads_from(self) -> str:
        """``primary`` or ``replica``."""
        ...

    @property
    def claimed(self) -> Hashable | None:
        """What distinguishes its server from others of this process."""
        ...

    @property
    def barriers(self) -> str | None:
        """Whether its reads wait automatically: ``auto`` or ``explicit``; None: as configured."""
        ...

    @property
    def clock(self) -> Clock:
        """By which times of its reads are taken."""
        ...


@dataclass(frozen=True, slots=True)
class BarrierCall:
    """A barrier or check that ends well, or would have without a dry run.

    Attributes:
        request: where it was called; None without a scope.
        site: who called.
        at: when it waits: ``now`` or at the ``read``.
        only: the datastores that it is about; None for all.
        exclude: the datastores that it is not about.
        dry: whether it waited for nothing because of a dry run.
        checks: whether it is a check.
        guards: what need not be waited for again.
        fenced: whether a position of a primary stood for what is not known.
        settled: whether there was anything that cannot be waited for.
    """

    request: Request | None
    site: FrameType | None
    at: str
    only: frozenset[str] | None
    exclude: frozenset[str]
    dry: bool
    checks: bool
    guards: tuple[Dependency, ...]
    fenced: bool
    settled: bool


class Notes(Protocol):
    """Who sends notes with lineages: what is no dependency. Nothing here raises or waits."""

    def absorb(self, request: Request, lineage: Lineage) -> Lineage:
        """*lineage* without the notes in it, which *request* keeps."""
        ...

    def notes(self, request: Request) -> frozenset[str]:
        """The items that travel with the lineage of *request*, which leaves now."""
        ...


class Recorder(Notes, Protocol):
    """Who records what processes write, read, send and receive (docs/spec/history.md)."""

    def operation(
        self, kind: str, datastore: str, keyspace: str, key: object, *, vanishes: bool
    ) -> AbstractContextManager[Callable[[object], None]]:
        """A block that is one ``write``, ``delete`` or ``read``; it hands over what came of it.

        Args:
            kind: which.
            datastore: where.
            keyspace: where in it: a table, say; empty where it has one place.
            key: of what.
            vanishes: whether the store deletes on its own account, later, what is written.
        """
        ...

    def label(self) -> frozenset[str]:
        """The note that names the version which is being written; empty outside of a write."""
        ...

    def found(self, notes: frozenset[str]) -> None:
        """A lineage with these *notes* was found stored with a value that is being read."""
        ...

    def counted(self, name: str) -> None:
        """Something was counted."""
        ...

    def close(self) -> None:
        """The history is over."""
        ...


class Observer(Notes, Protocol):
    """What notifies a dry run, in the thread or task that does it. Nothing here raises or waits."""

    def opened(self, request: Request, *, incoming: bool) -> None:
        """A request begins."""
        ...

    def ended(self) -> None:
        """The block of a request is over."""
        ...

    def wrote(self, request: Request, writes: Sequence[Dependency]) -> None:
        """The store acknowledged *writes*, or a branch promised them; they entered *request*."""
        ...

    def reads(self, request: Request, client: Client) -> None:
        """*client* is about to send a read."""
        ...

    def barrier(self, call: BarrierCall) -> None:
        """A barrier is about to succeed."""
        ...

    def showed(self, request: Request | None, client: Client, writes: Sequence[WriteId]) -> None:
        """A read by *client* showed *writes*, by their own tokens."""
        ...

    def before_commit(
        self, request: Request, what: str, datastore: str, wrote: tuple[CodeType, int]
    ) -> None:
        """A ``read`` or ``barrier`` cannot see what *request* wrote at a line, uncommitted yet."""
        ...

    def unlabelled(self, request: Request, datastore: str, handler: CodeType | None) -> None:
        """*request* handles a message without a lineage; *handler* None: who calls now."""
        ...

    def sent(self, request: Request, to: str, destination: str = "") -> None:
        """*request* publishes a message: a task, or to a *destination* in a datastore."""
        ...

    def handled(self, request: Request, to: str, destination: str = "") -> None:
        """*request* handles such a message; each is empty where it is not known."""
        ...

    def called(self, request: Request, service: str) -> None:
        """*request* called a service of the application's, which answered without a lineage."""
        ...

    def unnamed(self, where: str, entry: str, *, ruled: bool) -> None:
        """A client was made that no rule names; *entry* would, and rules are for its kind."""
        ...

    def matched(self, rule: Rule) -> None:
        """A client was made that *rule* names."""
        ...

    def late(self) -> None:
        """``setup()`` was called while a request was handled."""
        ...

    def counted(self, name: str, datastore: str) -> None:
        """Something was counted."""
        ...

    def unscoped(self, what: str, datastore: str) -> None:
        """Something found no scope."""
        ...

    def leaves(self, request: Request) -> None:
        """Something of *request* is sent."""
        ...

    def unsent(self, request: Request, datastores: Collection[str]) -> None:
        """A lineage of *request* is stored without what is open in transactions of these."""
        ...

    def site(self) -> FrameType:
        """Who calls: the nearest frame outside of libraries."""
        ...

    def settle(self, timeout_s: float) -> None:
        """Wait until the evidence of reads that are over has begun; for tests."""
        ...

    def close(self) -> None:
        """The dry run is over."""
        ...


class Telemetry(Protocol):
    """What is recorded by OpenTelemetry's API. Nothing here raises or waits."""

    def recording(self) -> bool:
        """Whether anybody records."""
        ...

    def counted(self, name: str) -> None:
        """The count *name* has its first value."""
        ...

    def left(self, carrier: str, text: str, lineage: Lineage) -> None:
        """*lineage* leaves as *text*, in ``baggage`` or to be ``stored``."""
        ...

    def held(
        self,
        waited_s: float,
        result: Callable[[], BarrierResult],
        server: Callable[[], ServerName | None],
        *,
        raises: bool,
    ) -> None:
        """A floor held a read back, which *raises* where it was not shown enough.

        *result* and *server* are called only where somebody records it.
        """
        ...

    def unmet(self, error: UnmetError) -> None:
        """A read did not get what its floor demands."""
        ...

    def served(self, datastore: str, code: str, server: ServerName | None) -> None:
        """A read of *datastore*, at *server*, was answered although its request depends on more."""
        ...

    def timed(
        self, function: Callable[..., _T], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> _T:
        """Call *function*; how long it took is time that the library took of the request."""
        ...

    def spent(self, seconds: float) -> None:
        """A request is over for which the library's own code ran for *seconds*."""
        ...

    def operation(
        self, name: str
    ) -> AbstractContextManager[Callable[[BarrierResult | None], None]]:
        """A block that is one ``barrier``, ``check`` or ``route``; it hands over its result."""
        ...


#: The dry run of this process; None where there is none: one comparison.
dry_run: Observer | None = None
#: The recorder of this process; None where none was asked for.
history: Recorder | None = None
#: Who notes something with the lineages that leave: the recorder, else the dry run; None: nobody.
noting: Notes | None = None
#: What records for OpenTelemetry. ``antipode._startup`` puts it here before anything is called.
telemetry = cast("Telemetry", None)
#: Whether the library's own time is taken: from before the request that it is of begins.
timing = True
#: The scope of that request, once it has begun.
timed: object = None


def own_time(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Count the time of each call as the library's own, in its request. For what waits for nothing.

    A call within another such call counts once. One request in many is timed.
    """

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        if not timing:
            return function(*args, **kwargs)
        return telemetry.timed(function, args, kwargs)

    return call


def traced(operation: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Record each call as a ``barrier`` or a ``check``. A result of None says: cancelled."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if switch.disabled or not telemetry.recording():
                return function(*args, **kwargs)
            with telemetry.operation(operation) as ended:
                result = function(*args, **kwargs)
                ended(result)
                return result

        return call

    return decorate


def traced_async(
    operation: str,
) -> Callable[[Callable[_P, Coroutine[Any, Any, _R]]], Callable[_P, Coroutine[Any, Any, _R]]]:
    """The asyncio twin of :func:`traced`."""

    def decorate(
        function: Callable[_P, Coroutine[Any, Any, _R]],
    ) -> Callable[_P, Coroutine[Any, Any, _R]]:
        @functools.wraps(function)
        async def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if switch.disabled or not telemetry.recording():
                return await function(*args, **kwargs)
            with telemetry.operation(operation) as ended:
                result = await function(*args, **kwargs)
                ended(result)
                return result

        return call

    return decorate
