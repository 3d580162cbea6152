"""What a program does with the current lineage explicitly (Table 2)."""

from __future__ import annotations

import sys
from contextlib import ContextDecorator
from typing import TYPE_CHECKING

from opentelemetry import context as otel_context

from antipode._lineage.codec import decode
from antipode._lineage.grammar import is_of_writes
from antipode._lineage.lineage import Lineage
from antipode._runtime import observers
from antipode._runtime.config import config

from .context import KEY, context_with, enter, leave, scope_in
from .generators import holder
from .lineage_text import encode_bounded, received
from .recording import unscoped
from .scope import Scope

if TYPE_CHECKING:
    from contextvars import Token
    from types import FrameType

    from opentelemetry.context import Context

    from antipode._lineage.write_id import WriteId


class scope(ContextDecorator):  # noqa: N801 - called as the function that it is to its users
    """Run a block as one request, with a scope of its own; or each call of a decorated function.

    A class and no generator: every request and every message pays for it.

    Args:
        lineage: what the request starts from: a lineage, its text, or nothing.

    Raises:
        LineageDecodeError: as the block begins: the text is no lineage.
        RuntimeError: it is used for a second block.
    """

    __slots__ = ("_begun", "_held", "_start", "_token")

    _held: Scope
    _token: Token[Context]

    def __init__(self, lineage: Lineage | str | None = None) -> None:
        """Begin nothing yet."""
        self._start = lineage
        self._begun = False

    def __enter__(self) -> Scope:
        """The block begins."""
        if self._begun:
            msg = "a scope is of one block: call antipode.scope() for each"
            raise RuntimeError(msg)
        self._begun = True
        start = self._start
        if not isinstance(start, str):
            held = Scope(start)
        elif is_of_writes(text := str(start)):
            held = Scope(incoming=(text,), answers=False)
        else:
            held = Scope(received(start))
        self._held, self._token = held, begin_scope(held, sys._getframe(1))  # noqa: SLF001 - its caller
        return held

    def __exit__(self, *_: object) -> None:
        """The block ends, and with it the request."""
        end_scope(self._held, self._token)

    def _recreate_cm(self) -> scope:
        """One for each call of a decorated function."""
        return scope(self._start)


def begin_scope(held: Scope, frame: FrameType) -> Token[Context]:
    """The block in *frame* begins, and its scope is *held*; what :func:`end_scope` needs."""
    held.holder = holder(frame)
    token = enter(held)
    if (observer := observers.dry_run) is not None:
        observer.opened(held, incoming=False)
    return token


def end_scope(held: Scope, token: Token[Context]) -> None:
    """The block of *held* ends, and with it the request."""
    held.end()
    if (observer := observers.dry_run) is not None:
        observer.ended()
    leave(held, token)


def root() -> Lineage:
    """Begin a request here with an empty lineage (Table 2's ``root``).

    For code that has no block to run a request in; prefer :func:`scope`. Everything that runs
    in this context afterwards belongs to it, until :func:`stop`.
    """
    held = Scope()
    token = otel_context.attach(context_with(held))
    held.root_token = token
    if (observer := observers.dry_run) is not None:
        observer.opened(held, incoming=False)
    return held.lineage


def stop() -> None:
    """Discard the current lineage, for all branches of the request (Table 2's ``stop``).

    Without a scope it does nothing.
    """
    held = scope_in()
    if held is None:
        return
    held.stop()
    if (observer := observers.dry_run) is not None:
        observer.ended()
    token, held.root_token = held.root_token, None
    if token is not None and otel_context.get_value(KEY) is held:
        otel_context.detach(token)


def current(*, context: Context | None = None) -> Lineage:
    """The lineage so far of *context*, default the current one; empty without a scope."""
    held = scope_in(context)
    return held.lineage if held is not None else Lineage()


def uncommitted(*, context: Context | None = None) -> frozenset[str]:
    """The datastores in which the current request has written, in transactions that are open.

    No other connection sees those writes, and no barrier waits for them. A router of reads that
    sends those of such a datastore to its primary, through the same connection, lets a request see
    what it wrote itself. Empty without a scope. Instrumented clients of MySQL, MariaDB and MongoDB
    know of transactions.
    """
    held = scope_in(context)
    return held.uncommitted if held is not None else frozenset()


def append(write: WriteId, *, context: Context | None = None) -> Lineage:
    """Add a dependency to the current lineage (Table 2's ``append``).

    An entry without a written hour gets the current one.

    Raises:
        ConfigurationError: there is no scope, and ``on_unscoped="raise"``.
    """
    held = scope_in(context)
    if held is None:
        unscoped("append", write.datastore)
        return Lineage([write])
    return held.append(write)


def remove(write: WriteId, *, context: Context | None = None) -> Lineage:
    """Drop a dependency from the current lineage (Table 2's ``remove``)."""
    held = scope_in(context)
    return held.remove(write) if held is not None else Lineage()


def transfer(source: Lineage | str | Scope, *, target: Lineage | Scope | None = None) -> Lineage:
    """Add the dependencies of *source* to *target* (Table 2's ``transfer``).

    What *source* says of the future is removed: it may have been deserialised.

    Args:
        source: the lineage, its text or its scope.
        target: a scope, which changes; a lineage, which does not; default the current scope.

    Returns:
        The lineage with both.

    Raises:
        LineageDecodeError: *source* is a text and no lineage.
        ConfigurationError: there is no current scope, and ``on_unscoped="raise"``.
    """
    source = received(source.lineage if isinstance(source, Scope) else source)
    if isinstance(target, Lineage):
        return target.merge(source)
    held = target if target is not None else scope_in()
    if held is None:
        unscoped("transfer", "")
        return source
    return held.merge(source)


def serialize(lineage: Lineage | None = None, *, max_bytes: int | None = None) -> str:
    """The text of *lineage*, default the current one, for a header, a message or a column.

    As everything that leaves the process it names the datastores of ``egress`` alone, and has at
    most *max_bytes*, in which ``antipode=`` counts; default ``max_lineage_bytes``. What may not
    leave or does not fit is dropped and the text says so: deserialised, it is ``incomplete``. The
    current one says how many branches of its request are still running.

    Raises:
        LineageTooLarge: *max_bytes* is too small for even that mark.
    """
    if lineage is None:
        held = scope_in()
        lineage = held.leaving if held is not None else Lineage()
    settings = config()
    most = settings.max_lineage_bytes if max_bytes is None else max_bytes
    return encode_bounded(lineage, max_bytes=most, egress=settings.egress)


def deserialize(text: str) -> Lineage:
    """The lineage that *text* stands for, to the letter.

    What others say of the future is removed where a text is received: give ``scope``,
    ``transfer`` and ``barrier`` the text itself.

    Raises:
        LineageDecodeError: it is no lineage; ``code`` says why.
    """
    # The handle in the baggage says the lineage of this moment. Anything but text is refused.
    return decode(str(text) if isinstance(text, str) else text)
