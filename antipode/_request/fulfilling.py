"""The branch that fulfils a promise: all of its request but this."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from antipode._lineage.lineage import Lineage
from antipode._lineage.write_id import Promise

from .context import enter, leave, scope_in
from .gaining import Gaining
from .scope import stamped

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from antipode._lineage.write_id import WriteId

    from .scope import Scope


class Branch(Gaining):
    """A scope that begins with what another one has, and ends by joining it."""

    def __init__(self, outer: Scope, promise: Promise) -> None:
        """Begin with everything of *outer* but *promise*, which never enters here."""
        super().__init__()
        self.joins = True
        #: The scope that this one has joined; what a thread adds afterwards goes there, too.
        self._joined: Scope | None = None
        self.answered = outer.answered
        self.own = outer.own | {promise.name}
        self.notes, self.recorded = outer.notes, outer.recorded
        self._allowance = outer.allowance()
        lineage, self._came, self._deferred, attached, self._branches = outer.parts()
        self._lineage = self._noted(lineage)
        ids = frozenset(name.id for name in self.own)
        self.attached = {key: each.branched(ids) for key, each in attached.items()}

    def join(self, outer: Scope) -> None:
        """Hand over what was gathered, what is attached, and whether it was stopped."""
        if self.stopped:
            outer.stop()
            return
        self.end()
        self._joined = outer  # First: what is added from now on is handed on, or is in the parts.
        _ = self.known  # What came and was not decoded yet.
        outer.merge(self._gained)
        if self.wrote and isinstance(outer, Gaining):
            outer.wrote = True
        for sample in self._samples:
            outer.defer(sample)
        for key, each in self.attached.items():
            outer.attach(key, each)

    def append(self, *writes: WriteId) -> Lineage:
        """Add *writes*, also where this scope has joined."""
        found = super().append(*writes)
        if self._joined is not None:
            self._joined.merge(Lineage(map(stamped, writes)))
        return found

    def merge(self, lineage: Lineage) -> Lineage:
        """Add everything of *lineage*, also where this scope has joined."""
        found = super().merge(lineage)
        if self._joined is not None:
            self._joined.merge(lineage)
        return found

    def defer(self, sample: Callable[[], Lineage]) -> None:
        """Add what *sample* returns when it is read, also where this scope has joined."""
        super().defer(sample)
        if self._joined is not None:
            self._joined.defer(sample)

    def later(self, sample: Callable[[], Lineage]) -> None:
        """As :meth:`defer`, without a lock."""
        if self._joined is None:
            super().later(sample)
        else:
            self._joined.later(sample)


@contextmanager
def fulfilling(promise: Promise | str) -> Generator[Promise]:
    """Run a block as the branch that fulfils *promise*.

    The lineage that came with the branch's message holds that very promise: waiting for it here,
    or in a service that is called from here, would wait for this block itself. So the block runs
    in a scope of its own, which has everything of the current one but the promise; what it
    gathers enters the current scope at its end, however that comes.

    Leaving the block records nothing. The branch fulfils the promise in the transaction of its
    data, by its store's ``fulfil`` or ``fulfils=``. After an error a queue may deliver the
    message again; who gives up for good says so with :func:`abandon`.

    Args:
        promise: the promise, or its ``token``.

    Raises:
        LineageDecodeError: *promise* is a text and no token.
    """
    mine = promise_of(promise)
    outer = scope_in()
    if outer is None:
        yield mine
        return
    inner = Branch(outer, mine)
    token = enter(inner)
    try:
        yield mine
    finally:
        leave(inner, token)
        inner.join(outer)


def promise_of(promise: Promise | str) -> Promise:
    """A promise, or the one that a token stands for.

    Raises:
        LineageDecodeError: it is a text and no token.
    """
    return Promise.parse(promise) if isinstance(promise, str) else promise
