"""The scopes of tasks, and the lineages of the messages that they publish."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from antipode._request.background import outside
from antipode._request.context import context_with, scope_in
from antipode._runtime import observers
from antipode._runtime.switch import switchable
from antipode.integrations._incoming import Incoming
from antipode.propagation import BAGGAGE

from . import _chords, _errbacks
from ._messages import baggage_to_send
from ._signals import connect, disconnect, signals
from ._task import Task, baggage_of, code_of, named

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from antipode.shim import Scope

_OUTER = "_antipode_outer"
_HELD = "_antipode_held"


@switchable
def instrument() -> None:
    """Give every task a scope of its own, and every message the lineage. Idempotent.

    For all applications of the process. Call it in publishers and in workers, there before
    their processes are forked or in each of them; the order with OpenTelemetry's
    ``CeleryInstrumentor`` does not matter.
    """
    sent = signals()
    connect(sent.task_prerun, _before_receivers, first=True)
    connect(sent.task_prerun, _before_run)
    connect(sent.task_postrun, _after_run, first=True)
    connect(sent.before_task_publish, _before_publish)
    _chords.instrument()
    _errbacks.instrument()


def uninstrument() -> None:
    """Undo :func:`instrument`. Idempotent; tasks that run now end in their scopes."""
    sent = signals()
    disconnect(sent.task_prerun, _before_receivers, _before_run)
    disconnect(sent.before_task_publish, _before_publish)
    _chords.uninstrument()
    _errbacks.uninstrument()


def is_instrumented() -> bool:
    """Whether :func:`instrument` is in force."""
    return any(entry[1] is _before_publish for entry in signals().before_task_publish.receivers)


class _TaskRequest:
    """A task that is a request of its own, apart from whatever its worker was started in."""

    def __init__(self, header: str | None, outer: Scope | None) -> None:
        context = outside() if outer is not None and scope_in() is outer else None
        self._token = None if context is None else otel_context.attach(context)
        self._incoming = Incoming(scope_in(), [] if header is None else [header])

    def end(self) -> None:
        self._incoming.end()
        if self._token is not None:
            otel_context.detach(self._token)


class _EagerTask:
    """A task that runs within a request, in whose scope it stays."""

    def __init__(self, outer: Scope) -> None:
        # An extraction from the task's headers may have begun an empty context.
        lost = scope_in() is not outer
        self._token = otel_context.attach(context_with(outer)) if lost else None

    def end(self) -> None:
        if self._token is not None:
            otel_context.detach(self._token)


def _before_receivers(task: Task, **_: object) -> None:
    """Remember what a task runs within, before other receivers change the context."""
    vars(task.request)[_OUTER] = scope_in()


def _before_run(task: Task, **_: object) -> None:
    """Open the scope of a task, after all other receivers."""
    request = task.request
    outer: Scope | None = vars(request).pop(_OUTER, None)
    if request.is_eager and outer is not None:
        vars(request)[_HELD] = _EagerTask(outer)
    else:
        header = baggage_of(request)
        vars(request)[_HELD] = _TaskRequest(header, outer)
        if (observer := observers.dry_run) is not None and (held := scope_in()):
            if header is None:
                observer.unlabelled(held, "", code_of(task))
            else:
                observer.handled(held, named(task.name))
    _chords.follow(task.backend)


def _after_run(task: Task, **_: object) -> None:
    """End the scope of a task, before all other receivers."""
    held: _TaskRequest | _EagerTask | None = vars(task.request).pop(_HELD, None)
    if held is not None:
        held.end()


def _before_publish(
    sender: object = None, headers: MutableMapping[str, Any] | None = None, **_: object
) -> None:
    """Put the lineage into the headers of a message."""
    if headers is None:
        return
    if (observer := observers.dry_run) is not None and (held := scope_in()):
        observer.sent(held, named(sender))
    header = baggage_to_send(headers.get(BAGGAGE), headers.get("id"))
    if header:
        headers[BAGGAGE] = header
    elif header is not None:
        headers.pop(BAGGAGE, None)
