"""Error callbacks of Celery: they depend on the task that failed, whoever calls them.

A task that fails publishes or calls its own. Those of a chord's body are called by the task of the
header that ends last, which may be another one; those of a task whose process was lost, or that
was over its time limit, by the worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from antipode._request.background import outside
from antipode._request.context import context_with, scope_in
from antipode.integrations._method import Method
from antipode.propagation import members
from antipode.shim import Scope

from ._chords import lineages_of_header
from ._messages import joined
from ._task import baggage_of, running_task, unknown_lineage

if TYPE_CHECKING:
    from collections.abc import Callable

_methods: list[Method] = []


def instrument() -> None:
    """Let error callbacks have the lineages of what failed."""
    from celery.backends.base import Backend

    if not _methods:
        _methods.append(Method(Backend, "_call_task_errbacks", _called))
    _methods[0].wrap()


def uninstrument() -> None:
    """Undo :func:`instrument`."""
    for method in _methods:
        method.unwrap()


def _called(call: Callable[..., Any], _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Error callbacks are published, or called right here if they take an error."""
    held = _scope_for(args[0] if args else kwargs["request"])
    if held is None:
        return call(*args, **kwargs)
    token = otel_context.attach(context_with(held, outside()))
    try:
        return call(*args, **kwargs)
    finally:
        held.end()
        otel_context.detach(token)


def _scope_for(request: Any) -> Scope | None:
    """A scope for the error callbacks of *request*; None where the current one is right."""
    if running_task() is not None:
        texts, current = lineages_of_header(), scope_in()
        found = None if texts is None else joined(current or Scope(), texts)
        return None if found is current else found
    header = baggage_of(request)
    came = members([header]) if header else ()
    return joined(Scope(), [*came, unknown_lineage()])
