"""Responses through OpenTelemetry's hook, where its instrumentations are all that there is.

    instrument()

A convenience next to the middleware of `antipode.integrations.asgi` and `wsgi`, which does the same
and more: an instrumentation has nothing to say about requests that it leaves out, nor about
responses that are made outside of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode._request.context import scope_in
from antipode._runtime.metrics import logger
from antipode._runtime.switch import switchable
from antipode.propagation import RESPONSE_HEADER

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.propagators.textmap import Setter

try:
    from opentelemetry.instrumentation import propagators
except ModuleNotFoundError as error:
    _MESSAGE = f"{__name__} needs pip install opentelemetry-instrumentation"
    raise ModuleNotFoundError(_MESSAGE) from error

__all__ = ["AntipodeResponsePropagator", "instrument", "uninstrument"]


def __dir__() -> list[str]:
    return __all__


#: Its functions have no annotations.
_hook: Any = propagators
_DEFAULT_SETTER = propagators.default_setter


class AntipodeResponsePropagator(propagators.ResponsePropagator):
    """Adds the header to responses of requests whose scope an instrumentation has opened.

    The integrations' own requests, and scopes around the server, are none of its business.
    """

    def __init__(self, inner: propagators.ResponsePropagator | None = None) -> None:
        """Wrap *inner*, which injects first."""
        self.inner = inner

    def inject(
        self,
        carrier: Any,  # noqa: ANN401 - a response of any framework
        context: Context | None = None,
        setter: Setter[Any] = _DEFAULT_SETTER,  # type: ignore[assignment] # theirs are of both kinds
    ) -> None:
        """Put the answer of the current request into *carrier*, as its response starts.

        *context* is no help: where it is given, it has a span and nothing else.
        """
        if self.inner is not None:
            self.inner.inject(carrier, context, setter)
        try:
            held = scope_in()
            if held is not None and held.arrived and _starts(carrier):
                _take_out(carrier)
                setter.set(carrier, RESPONSE_HEADER, held.answer())
        except Exception:  # noqa: BLE001 - the response goes out; without the header its caller knows
            logger.warning("a response goes without its lineage", exc_info=True)


def _starts(carrier: Any) -> bool:  # noqa: ANN401 - a response of any framework
    """Whether the response starts now; ASGI asks at each message, Tornado before the handler."""
    if isinstance(carrier, dict) and "type" in carrier:
        return bool(carrier["type"] == "http.response.start")
    return not any(each.__module__ == "tornado.web" for each in type(carrier).__mro__)


def _take_out(carrier: Any) -> None:  # noqa: ANN401 - a response of any framework
    """Remove the application's own header of that name, where it can be known."""
    if isinstance(carrier, dict) and "type" in carrier:
        # A list of its own: the application may send the same one with other responses.
        kept = [e for e in carrier.get("headers", ()) if e[0].lower() != RESPONSE_HEADER.encode()]
        carrier["headers"] = kept
    elif isinstance(carrier, list):
        carrier[:] = [each for each in carrier if each[0].lower() != RESPONSE_HEADER]
    elif hasattr(carrier, "__delitem__") and RESPONSE_HEADER in carrier:
        del carrier[RESPONSE_HEADER]


@switchable
def instrument() -> None:
    """Set the propagator, around one that is set already. Idempotent."""
    inner = _hook.get_global_response_propagator()
    if not isinstance(inner, AntipodeResponsePropagator):
        _hook.set_global_response_propagator(AntipodeResponsePropagator(inner))


def uninstrument() -> None:
    """Undo :func:`instrument`, where nobody has set another since. Idempotent."""
    held = _hook.get_global_response_propagator()
    if isinstance(held, AntipodeResponsePropagator):
        _hook.set_global_response_propagator(held.inner)


def is_instrumented() -> bool:
    """Whether :func:`instrument` is in force."""
    return isinstance(_hook.get_global_response_propagator(), AntipodeResponsePropagator)
