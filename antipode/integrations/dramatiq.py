"""Dramatiq: an actor's message has a scope of its own, from its options until it is processed.

What an actor publishes (messages, retries, pipelines) carries its lineage, in the
message's option ``baggage``, which every broker sends as it is. Works with every broker of
Dramatiq, whether it was made before or after.
"""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from types import CodeType
from typing import TYPE_CHECKING, Any

from opentelemetry import baggage

from antipode._request.background import outside
from antipode._request.context import scope_in
from antipode._runtime import observers
from antipode._runtime.switch import switchable
from antipode.propagation import BAGGAGE, MEMBER, members, with_member, without_member

from ._incoming import Incoming
from ._method import Method, Methods

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

__all__ = ["instrument", "uninstrument"]

_PROCESS, _SKIP, _ENQUEUE = "process_message", "skip_message", "enqueue"


def __dir__() -> list[str]:
    return __all__


@switchable
def instrument() -> None:
    """Give every message that is sent the lineage, and a scope where it is processed. Idempotent.

    For all brokers of the process. Call it in publishers and in workers.

    Raises:
        ConfigurationError: Dramatiq is not installed.
    """
    _methods.wrap()


def uninstrument() -> None:
    """Undo :func:`instrument`. Idempotent; messages that are processed now end in their scopes."""
    _methods.unwrap()


def is_instrumented() -> bool:
    """Whether :func:`instrument` is in force."""
    return _methods.active


def _found() -> list[Method]:
    """The methods of Dramatiq through which every message goes."""
    from dramatiq.broker import Broker

    return [
        Method(Broker, "emit_before", _before),
        Method(Broker, "emit_after", _after, stays=True),
    ]


class _Processed:
    """A message while it is processed: a request apart from what its worker was started in."""

    def __init__(self, broker: Any, message: Any) -> None:
        self.came = _text_of(message.options.get(BAGGAGE))
        baggage_came = [] if self.came is None else [self.came]
        self.incoming = Incoming(None, baggage_came, context=outside())
        self._held = _processed.set(self)
        if (observer := observers.dry_run) is not None:
            if self.came is None:
                observer.unlabelled(self.incoming.scope, "", _code_of(broker, message))
            else:
                observer.handled(self.incoming.scope, _named(message))

    def end(self) -> None:
        self.incoming.end()
        _processed.reset(self._held)


_processed: ContextVar[_Processed | None] = ContextVar("antipode-dramatiq-message", default=None)


def _before(
    call: Callable[..., Any], broker: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A broker is about to do something: to send a message, or to process one."""
    signal = args[0] if args else kwargs["signal"]
    if signal == _PROCESS and len(args) > 1:
        _Processed(broker, args[1])
    elif signal == _ENQUEUE and len(args) > 1:
        _send(args[1])
    return call(*args, **kwargs)


def _after(call: Callable[..., Any], _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A broker did something. What its middleware sends then is of the message that it ends."""
    try:
        return call(*args, **kwargs)
    finally:
        signal = args[0] if args else kwargs["signal"]
        held = _processed.get() if signal in (_PROCESS, _SKIP) else None
        if held is not None:
            held.end()


def _send(message: Any) -> None:
    """Put the lineage into the options of a message.

    A retried message has the option that came with it: that is replaced by what the actor depends
    on now. Another lineage in it, which the application put there, is merged.
    """
    options: MutableMapping[str, Any] = message.options
    held = scope_in()
    if held is not None and (observer := observers.dry_run) is not None:
        observer.sent(held, _named(message))
    present, processed = options.get(BAGGAGE), _processed.get()
    header = present if isinstance(present, str) else None
    came = None if processed is None else processed.came
    if held is None or baggage.get_baggage(MEMBER) is None:
        if header and header == came:
            _put(options, without_member(header))
        return
    earlier = frozenset(members([came] if came else []))
    others = [text for text in members([header] if header else []) if text not in earlier]
    _put(options, with_member(header, held.text_with(held.text(), others)))


def _put(options: MutableMapping[str, Any], header: str | None) -> None:
    """Let a message have this header; empty for none, None for no change."""
    if header:
        options[BAGGAGE] = header
    elif header is not None:
        options.pop(BAGGAGE, None)


def _text_of(option: object) -> str | None:
    """The option as a header; what is of no type that is sent is unreadable, and not absent."""
    return option if option is None or isinstance(option, str) else f"{MEMBER}="


def _code_of(broker: Any, message: Any) -> CodeType | None:
    """The code of the function that a message is for; None where it is no function."""
    actor = broker.actors.get(message.actor_name)
    code = getattr(inspect.unwrap(actor.fn), "__code__", None) if actor is not None else None
    return code if isinstance(code, CodeType) else None


def _named(message: Any) -> str:
    """What a dry run calls the actor of a message."""
    return f"the task {message.actor_name}"


_methods = Methods("Dramatiq", "dramatiq", _found)
