"""One incoming call: its scope, and the lineage in its trailing metadata."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from antipode._request.lineage_text import readable
from antipode._runtime.metrics import logger
from antipode.integrations._incoming import Incoming
from antipode.integrations._outgoing import IN_DOUBT
from antipode.propagation import RESPONSE_HEADER, members

from ._metadata import answers, fitting, read_request, trailing_room

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode.shim import Scope

    from ._metadata import Entries


def service_of(method: str | bytes) -> str:
    """The full name of the service of *method*, ``/package.Service/Method``."""
    name = method if isinstance(method, str) else method.decode()
    return name.lstrip("/").rpartition("/")[0]


class Serving(Incoming):
    """A call that is being served, from its metadata to its status."""

    __slots__ = ("_answered", "_repeated", "_service", "error", "metadata")

    def __init__(self, held: Scope | None, metadata: Any, service: str) -> None:
        """Begin the call of *metadata*, in the thread or task that serves it.

        Args:
            held: the current scope.
            metadata: what came with the call.
            service: its full name.
        """
        baggage, sent, self._repeated = read_request(metadata)
        super().__init__(held, baggage, sent=sent)
        if len(baggage) > 1:  # An extraction by a mapping has seen the last one alone.
            self.scope.receive(members(baggage))
        self.scope.carrier = metadata
        #: By which another interceptor of ours knows that this call is served already.
        self.metadata = metadata
        self._service = service
        self._answered = False
        #: What the handler raised.
        self.error: BaseException | None = None

    def trailing(self, own: Any, details: Callable[[], str | bytes | None]) -> Entries:
        """The trailing metadata to send in place of the application's *own*.

        Args:
            own: what the application set; None or empty for nothing.
            details: returns the message of the status, which counts into the same limit.
        """
        self._answered = True
        scope = self.scope
        entries: Entries = tuple(own) if own else ()
        if entries and (texts := answers(entries)):
            # By hand, or by another of these interceptors: the last one speaks for all.
            for text in texts:
                scope.merge(readable(self._service, text))
            entries = tuple([entry for entry in entries if entry[0] != RESPONSE_HEADER])
        if self._repeated:
            # What the attempts before this one did is known to nobody.
            scope.mark_incomplete(self._service, IN_DOUBT)
        if not (text := self.answer()):
            return entries
        message = details()
        if entries or message:
            text = fitting((text,), trailing_room(entries, message))
        return (*entries, (RESPONSE_HEADER, text)) if text else entries

    def finish(self, context: Any, *, here: bool = True) -> None:
        """Answer, unless an abort has, and end. Never raises.

        Args:
            context: the servicer context.
            here: whether this is the thread or task that began.
        """
        try:
            if not self._answered:
                own = context.trailing_metadata()
                trailing = self.trailing(own, partial(self._details, context))
                if trailing or own:
                    context.set_trailing_metadata(trailing)
        except Exception:  # noqa: BLE001 - a hook never fails the call
            logger.warning("a gRPC call cannot be answered with its lineage", exc_info=True)
        self.end(leave=here)

    def _details(self, context: Any) -> str | bytes | None:
        """The message of the status to come."""
        if self.error is None:
            details: str | bytes | None = context.details()
            return details
        return context.details() or f"Exception calling application: {self.error!r:.8000}"


def serving(metadata: Any, held: Scope | None, service: str) -> Serving | None:
    """Begin to serve the call of *metadata*; None where an interceptor of ours does already."""
    if held is not None and metadata and held.carrier is metadata:
        return None
    return Serving(None if held is None or held.stopped else held, metadata, service)
