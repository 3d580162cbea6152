"""What a request wrote in transactions that are still open: nobody else can see it yet."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any, Protocol

from antipode._runtime import observers
from antipode._runtime.call_site import call_site, caller
from antipode._runtime.metrics import count, log_once

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Attaches(Protocol):
    """What a scope does here: it keeps what is attached to it."""

    attached: Mapping[object, Any]

    def attach(self, key: object, new: OpenWrites) -> None:
        """Keep *new*, joined with what is attached under *key*."""
        ...


class OpenTransaction:
    """A transaction that has written and is not committed yet.

    Attributes:
        datastore: where.
        line: of the application's code that wrote first: its code, and the number of the line.
        is_over: whether it was committed or rolled back, or its connection is lost.
        left: whether something was sent from its request while it was open.
    """

    __slots__ = ("_who", "datastore", "is_over", "left", "line")

    def __init__(self, datastore: str, who: object) -> None:
        """*who*, a client's connection or session, has just written."""
        self.datastore = datastore
        self.is_over = self.left = False
        frame = caller()
        self.line = frame.f_code, frame.f_lineno
        number = id(who)
        self._who = weakref.ref(who, lambda _: ended(number))

    @property
    def site(self) -> str:
        """``file:line`` of its first write."""
        code, line = self.line
        return f"{code.co_filename}:{line}"


class OpenWrites:
    """The open transactions of one request by the identity of who wrote. Never changed."""

    def __init__(self, of: Mapping[int, OpenTransaction]) -> None:
        """Keep *of*."""
        self.of = of

    def joined(self, later: OpenWrites) -> OpenWrites:
        """Those of both that are open still."""
        both = {**self.of, **later.of}
        return OpenWrites({who: one for who, one in both.items() if not one.is_over})

    def branched(self, own: frozenset[str]) -> OpenWrites:
        """The same for a branch that fulfils the promises of the ids *own*."""
        del own
        return self

    def ended(self) -> None:
        """The request is over: its transactions end by themselves."""


#: All of the process, by the identity of the connection or session. Each change is one operation
#: of a dictionary: a garbage collection, which may end a transaction, could find a lock held.
OPEN: dict[int, OpenTransaction] = {}


def wrote(scope: Attaches | None, datastore: str, who: object) -> None:
    """A transaction of *who* has written in *scope*, and is open."""
    if scope is None:
        return
    number = id(who)
    held = scope.attached.get(OpenWrites)
    if held is not None and (mine := held.of.get(number)) is not None and not mine.is_over:
        return  # As for each statement after the first write.
    found = OPEN.get(number)
    if found is None:
        found = OPEN[number] = OpenTransaction(datastore, who)
    scope.attach(OpenWrites, OpenWrites({number: found}))


def ended(number: int) -> None:
    """The transaction of the connection or session with the identity *number* is over, if any."""
    if OPEN and (found := OPEN.pop(number, None)) is not None:
        found.is_over = True


def open_in(scope: Attaches) -> Iterator[tuple[int, OpenTransaction]]:
    """The open transactions in which *scope* has written, by the identity of who did."""
    if (attached := scope.attached) and (held := attached.get(OpenWrites)) is not None:
        for number, each in held.of.items():
            if not each.is_over:
                yield number, each


def tell_of_unseen(what: str, scope: observers.Request, transaction: OpenTransaction) -> None:
    """Count, and once for each pair of places log, what cannot see the writes of *transaction*.

    Args:
        what: a ``read`` or ``barrier`` of its datastore.
        scope: of the request that does both.
        transaction: which is open.
    """
    datastore = transaction.datastore
    count("read_before_commit", datastore)
    if (observer := observers.dry_run) is not None:
        observer.before_commit(scope, what, datastore, transaction.line)
    here, there = call_site(), transaction.site
    message = (
        "%s of %r at %s cannot see what the same request wrote at %s, in a transaction that is not "
        "committed yet: commit it before, or read within that transaction"
    )
    log_once("read_before_commit", datastore, (here, there), message, what, datastore, here, there)


def tell_of_unsent(scope: Attaches, *, within: object = None) -> frozenset[str]:
    """Count, and once for each pair of places log, what leaves without the writes of *scope*.

    A message, a call, an answer, a value of another store: each transaction that is open counts
    once. The position of its writes does not exist yet.

    Args:
        scope: whose lineage leaves.
        within: the identity of who has the transaction, or its datastore, that stores the lineage
            with the writes themselves.

    Returns:
        The datastores of which it was said now.
    """
    told = set()
    for number, transaction in open_in(scope):
        if not transaction.left and within not in (number, transaction.datastore):
            transaction.left = True
            told.add(transaction.datastore)
            _tell_of_unsent(transaction.datastore, call_site(), transaction.site)
    return frozenset(told)


def _tell_of_unsent(datastore: str, here: str, there: str) -> None:
    count("sent_before_commit", datastore)
    message = (
        "what leaves at %s does not depend on what the same request wrote to %r at %s: its "
        "transaction is not committed yet, so the write has no position. Commit it before"
    )
    log_once("sent_before_commit", datastore, (here, there), message, here, datastore, there)


def _after_fork() -> None:
    """The transactions are the parent's."""
    for number in tuple(OPEN):
        ended(number)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
