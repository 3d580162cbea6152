"""One call of an instrumented client of a store of AWS: what its reply says. No I/O."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from antipode.shim import (
    StaleRead,
    config,
    count,
    log_once,
    own_time,
    record_write,
    scope_in,
    unscoped,
)

from .botocore import did_nothing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from antipode import WriteId
    from antipode.shim import Scope

    from .shim import RegionShim

_REFUSED = 300


class Kind(Enum):
    """What an operation means for a lineage."""

    READ = "read"
    WRITE = "write"
    OTHER = "other"
    NEUTRAL = "neutral"


class Question(NamedTuple):
    """A request of the library's own, which a call needs before it.

    Attributes:
        method: of the client.
        params: what it takes.
    """

    method: str
    params: dict[str, Any]


@dataclass(slots=True)
class BaseCall:
    """One call, from the moment that its parameters are built.

    Attributes:
        operation: its name, as the API has it.
        kind: what it means.
        scope: the request that it is of, whatever thread its reply comes in.
        uncovered: whether it may write what is not known.
        doubtful: attempts of which it is not known that they did nothing.
        stale: counts it once it is answered, if it may be stale.
    """

    operation: str
    kind: Kind
    scope: Scope | None = None
    uncovered: bool = False
    doubtful: int = 0
    stale: StaleRead = field(default_factory=StaleRead)


C = TypeVar("C", bound=BaseCall)
S = TypeVar("S", bound="RegionShim")


class BaseCalls(ABC, Generic[C, S]):
    """What an instrumented client does before and after each call.

    Args:
        shim: what the client registered.
    """

    #: What a call is made of.
    call_class: type[C]
    #: Errors by which a reply says what is there, such as nothing.
    telling: frozenset[int] = frozenset()

    def __init__(self, shim: S) -> None:
        self.shim = shim

    @abstractmethod
    def kind_of(self, operation: str, params: dict[str, Any]) -> Kind:
        """What a call of *operation* with *params* means for a lineage."""

    @own_time
    def begin(self, operation: str, params: dict[str, Any]) -> C:
        """A call that is about to be made.

        Raises:
            ConfigurationError: it writes outside of a scope, and ``on_unscoped="raise"``.
        """
        call = self.call_class(operation, self.kind_of(operation, params), scope_in())
        if call.kind is Kind.WRITE and call.scope is None and config().on_unscoped == "raise":
            unscoped("write", self.shim.datastore)
        return call

    def reads(self, call: C, params: dict[str, Any]) -> bool:
        """Whether a floor holds it back."""
        del params
        return call.kind is Kind.READ

    def snapshot(self, call: C, params: dict[str, Any]) -> str:
        """Let a read show what its region has now; why it cannot, empty where it does."""
        del call, params
        return ""

    def questions(self, call: C, params: dict[str, Any]) -> Iterable[Question]:
        """What must be asked before *call* is planned."""
        del call, params
        return ()

    def learn(self, call: C, question: Question, answer: dict[str, Any]) -> None:
        """Merge the *answer* to one of `questions`."""
        raise NotImplementedError

    @abstractmethod
    def plan(self, call: C, params: dict[str, Any], *, own_token: bool) -> None:
        """Add to *params* what *call* is to carry; whatever is inside of them stays as it is.

        Args:
            call: what is to be made.
            params: its parameters, as the API has them.
            own_token: whether the application gave a token that makes the call idempotent.
        """

    def answered(self, call: C, response: Any, error: BaseException | None) -> None:
        """Take in how an attempt ended: the client may make another one."""
        if did_nothing(response, error):
            call.doubtful -= 1

    @own_time
    def replied(self, call: C, status: int, reply: dict[str, Any]) -> None:
        """Take in the reply to *call*, from which whatever is ours goes."""
        if status < _REFUSED or status in self.telling:
            call.stale.answered()
        try:
            if status >= _REFUSED:
                self._doubt(call)
            elif call.uncovered:
                self._uncovered(call)
            else:
                self._record(call, reply)
        finally:
            self._hide(call, reply)

    @abstractmethod
    def _record(self, call: C, reply: dict[str, Any]) -> None:
        """Record what *call* did, by its *reply*."""

    @abstractmethod
    def _hide(self, call: C, reply: dict[str, Any]) -> None:
        """Take what is ours out of *reply*."""

    def _append(self, call: C, writes: Iterable[WriteId]) -> None:
        if call.scope is not None:
            call.scope.append(*writes)
        else:
            record_write(*writes)

    def failed(self, call: C) -> None:
        """Take in that *call* ended without a reply."""
        self._doubt(call)

    def _doubt(self, call: C) -> None:
        if call.doubtful and call.kind in (Kind.WRITE, Kind.OTHER):
            self._mark(call, "in_doubt")

    def _uncovered(self, call: C, why: str = "is not covered") -> None:
        """A write, or what may be one, of which the version is not known."""
        datastore = self.shim.datastore
        count("uncovered_write", datastore)
        message = "%s on %r %s: what it wrote is no dependency of its request"
        subject = (call.operation, why)
        log_once("uncovered_write", datastore, subject, message, call.operation, datastore, why)
        self._mark(call, "unsampled")

    def _mark(self, call: C, reason: str) -> None:
        count("incomplete", self.shim.datastore)
        if call.scope is not None:
            call.scope.mark_incomplete(self.shim.datastore, reason)

    def not_followed(self, call: C, error: Exception) -> None:
        """Note that something of ours failed, which must not fail the application's call."""
        message = "%s on %r could not be followed: %r"
        what, datastore = call.operation, self.shim.datastore
        log_once("not_followed", datastore, what, message, what, datastore, error)
        if call.kind is not Kind.READ:
            call.uncovered = True

    def lost(self, call: C, error: Exception) -> None:
        """Note the same of a reply: what a write wrote is not known any more."""
        self.not_followed(call, error)
        if call.uncovered:
            self._mark(call, "unsampled")
