"""The call that is being handled, and the names of the calls that its handler makes."""

from __future__ import annotations

import secrets
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING

from . import _names
from ._errors import EqualCalls

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Token

#: What a nested call is, without its occurrence: callee, method, digest of its arguments. An effect
#: has its label alone: with other arguments it is divergent.
What = tuple[str, str, str]

_current: ContextVar[Call | None] = ContextVar("antipode-call", default=None)
_explicit: ContextVar[str | None] = ContextVar("antipode-call-name", default=None)


class Call:
    """One call while it is handled: a request, a message, or a block of ``calls.call()``.

    Threads and tasks of the handler share it.

    Attributes:
        name: the same for each repetition of the call.
        caller: whose call it is, a part of what identifies it; empty where nobody said.
        named: False where the name was made here, because nobody sent one: a repetition of this
            call is another call.
    """

    __slots__ = ("_answered", "_flying", "_lock", "caller", "name", "named")

    def __init__(self, name: str | None, *, caller: str = "") -> None:
        """Begin.

        Raises:
            BadName: *name* cannot be one.
        """
        self.named = name is not None
        self.name = f"own:{secrets.token_urlsafe(18)}" if name is None else _names.checked(name)
        self.caller = _names.identity(caller)
        self._lock = threading.Lock()
        #: Of nested calls and effects: how many equal ones were answered, and who is under way.
        self._answered: dict[What, int] = {}
        self._flying: set[str] = set()

    def effect(self, label: str) -> Nested:
        """An effect *label* of this call begins: ``charge``, and ``charge#2`` after its reply.

        In a block of :class:`named` it has that name instead of a number: ``charge@first``.

        Raises:
            EqualCalls: as :meth:`begin`.
        """

        def name_of(number: int) -> str:
            return label if number == 1 else f"{label}#{number}"

        own = _explicit.get()
        return self._begin(("", label, ""), None if own is None else f"{label}@{own}", name_of)

    def begin(self, callee: str, method: str, digest: str) -> Nested:
        """A nested call is about to be sent.

        An equal one that was not answered is being repeated, and keeps its name. After an answer
        the next equal call is another one.

        Raises:
            EqualCalls: an equal one is under way, and none of them has a name of its own.
        """
        what, own, parent = (callee, method, digest), _explicit.get(), (self.caller, self.name)

        def name_of(number: int) -> str:
            return _names.nested(parent, what, number)

        given = None if own is None else _names.explicit(parent, callee, method, own)
        return self._begin(what, given, name_of)

    def _begin(self, what: What, given: str | None, name_of: Callable[[int], str]) -> Nested:
        """*what* begins, with the name that is *given*, or the one of its number."""
        with self._lock:
            number = 0 if given is not None else self._answered.get(what, 0) + 1
            name = name_of(number) if given is None else given
            if name in self._flying:
                about = f"{what[1]} of {what[0]}" if what[0] else what[1]
                msg = (
                    f"two equal calls of {about} are under way: name them, each in a block "
                    '`with calls.named("..."):`'
                )
                raise EqualCalls(msg)
            self._flying.add(name)
        return Nested(self, what, name, number)

    def ended(self, nested: Nested, *, answered: bool) -> None:
        """The nested call is not under way any more."""
        with self._lock:
            self._flying.discard(nested.name)
            if answered and nested.number:
                self._answered[nested.what] = nested.number

    def lost(self, nested: Nested) -> None:
        """The reply of the nested call, of which a part was there, did not come to its end."""
        with self._lock:
            if nested.number and self._answered.get(nested.what) == nested.number:
                self._answered[nested.what] = nested.number - 1


class Nested:
    """A call or an effect of a handler, from before it begins until it is answered or given up."""

    __slots__ = ("_call", "_over", "name", "number", "what")

    def __init__(self, call: Call, what: What, name: str, number: int) -> None:
        """It is under way, as the *number*th of equal ones; 0 where it has a name of its own."""
        self._call = call
        self._over = False
        self.what = what
        self.name = name
        self.number = number

    def ended(self, *, answered: bool) -> None:
        """It is over, with a reply or without one. Only the first call counts."""
        if not self._over:
            self._over = True
            self._call.ended(self, answered=answered)

    def lost(self) -> None:
        """Reading its reply failed: the next equal call is this one, repeated."""
        self._call.lost(self)


class call:  # noqa: N801 - called as the function that it is to its users
    """Handle one call in a block: what is in it has names that follow from *name*.

    For what has no instrumentation: ``with calls.call("order-17"): charge(request)``.

    Args:
        name: the same for each repetition: an order's id, a message's. None: a repetition is
            another call.
        caller: whose call it is.

    Raises:
        BadName: *name* is none.
    """

    __slots__ = ("_call", "_token")

    _token: Token[Call | None]

    def __init__(self, name: str | None, *, caller: str = "") -> None:
        """Begin nothing yet."""
        self._call = Call(name, caller=caller)

    def __enter__(self) -> Call:
        """The block begins."""
        self._token = _current.set(self._call)
        return self._call

    def __exit__(self, *_: object) -> None:
        """The block ends."""
        _current.reset(self._token)


class named:  # noqa: N801 - as above
    """Give the calls of a block a name each: ``with calls.named("first"): client.post(...)``.

    Args:
        name: one for each call that the handler makes; the same when the handler runs again.

    Raises:
        BadName: *name* is none.
    """

    __slots__ = ("_name", "_token")

    _token: Token[str | None]

    def __init__(self, name: str) -> None:
        """Begin nothing yet."""
        self._name = _names.checked(name)

    def __enter__(self) -> None:
        """The block begins."""
        self._token = _explicit.set(self._name)

    def __exit__(self, *_: object) -> None:
        """The block ends."""
        _explicit.reset(self._token)


def current() -> Call | None:
    """The call that is being handled here; None outside of one."""
    return _current.get()


def has_name() -> bool:
    """Whether nested calls get a name here, from a block of :class:`named`."""
    return _explicit.get() is not None
