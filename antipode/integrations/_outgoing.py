"""One outgoing call while a client waits for its answer, whatever its protocol."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry import baggage
from opentelemetry import context as otel_context

from antipode import Lineage
from antipode._request.context import context_with, has_member, scope_in
from antipode._request.lineage_text import readable
from antipode._request.scope import NOTHING
from antipode._runtime import egress_hosts as _hosts
from antipode._runtime import observers
from antipode._runtime import peers as _peers
from antipode._runtime.metrics import count, log_once
from antipode.propagation import MEMBER, members, with_member, without_member
from antipode.shim import config

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from opentelemetry.context import Context

    from antipode.shim import Scope

#: Why a call leaves its service incomplete: it may have written, and its answer was not learned.
IN_DOUBT = "in_doubt"
_UNANSWERED = (
    "%r answered without a lineage, although it sends them: the lineage is incomplete. Where "
    "something stands at the same address that never sends one, name its path: "
    'configure(peers={"host/path": "never"})'
)
_UNKNOWN = "the outcome of a call of %r is not known: the lineage is incomplete"
_EMPTY = Lineage()
_MOST_PEERS = 10_000
_lock = threading.Lock()
#: Of each peer whether it ever answered with a lineage; a peer without an answer is missing.
_answers: dict[str, bool] = {}


class Outgoing:
    """A call in the scope that it began in, into which alone its answer is merged.

    A call ends in one of three ways: :meth:`answered`, :meth:`failed`, or neither, where it was
    never sent. One that goes on while its caller does is a branch of the request
    from :meth:`began` to :meth:`finished`.
    """

    __slots__ = ("_allowed", "_expected", "_own", "_peer", "_scope", "_service", "text")

    def __init__(
        self, service: str, host: str, port: int | None = None, *, peer: str = "", path: str = ""
    ) -> None:
        """Begin a call.

        Args:
            service: the subject of marks, and the service's name in messages.
            host: for ``egress_hosts`` and ``peers``.
            port: likewise; None where it is not known.
            peer: by what it is remembered how the service answers, where its name says too little.
            path: what is called there, for ``peers``.
        """
        settings = config()
        self._service = service
        self._peer = peer or service
        self._expected: _peers.Answers = "auto"
        if settings.peers:
            self._expected, above = _peers.expected(settings.peers, host, port, path)
            self._peer += above
        self._allowed = settings.egress_hosts is None or may_leave_to(host, port)
        #: Whether a dry run shall say that it took no part: not of what is somebody else's.
        self._own = (
            observers.dry_run is not None
            and self._expected != "never"
            and (
                self._expected == "always"
                or settings.egress_hosts is not None
                or _hosts.is_internal(host)
            )
        )
        context = otel_context.get_current()
        held = scope_in(context)
        self._scope: Scope | None = held if self._allowed else None
        #: What the request carries; empty where it carries nothing, as after ``baggage.clear()``.
        self.text = ""
        if self._scope is not None and has_member(context):
            self.text = self._scope.text()

    @property
    def allowed(self) -> bool:
        """Whether the host may get lineages, and its answers count."""
        return self._allowed

    def baggage(self, header: str | None) -> str | None:
        """The baggage header to send in place of *header*; empty for none, None for no change.

        A member of ours that is there already came from an instrumentation just now, or from
        headers of another request, of which the caller knows nothing more: both are sent.
        """
        if not self._allowed:
            return without_member(header) if header else None
        if self._scope is None or not self.text:
            return None
        if not header:
            return f"{MEMBER}={self.text}"
        there = members([header])
        if there == (self.text,):
            return None
        return with_member(header, self._scope.text_with(self.text, there))

    @contextmanager
    def sending(self) -> Generator[None]:
        """Let instrumentations inside send what is sent here.

        That is nothing where *host* may not get the lineage. Where somebody put the text that came
        in place of the live handle, as a second extraction does, it is the lineage of now.
        """
        changed = self._changed()
        if changed is None:
            yield
            return
        token = otel_context.attach(changed)
        try:
            yield
        finally:
            otel_context.detach(token)

    def _changed(self) -> Context | None:
        """The context in which to send; None for the current one."""
        if not self._allowed:
            return baggage.remove_baggage(MEMBER)
        if self._scope is None or not self.text:
            return None
        context = otel_context.get_current()
        changed = context_with(self._scope, context)
        return None if changed is context else changed

    def answered(self, text: str | None, *, success: bool = True) -> None:
        """The service answered, with the lineage *text* or without one.

        An answer without one, though this peer is known to send some, lost it on the way, or comes
        from an instance that takes no part: what it wrote is missing, if this call asked for it.

        Args:
            text: None for no lineage.
            success: whether the call succeeded. Only then an answer without a lineage says that
                the peer takes no part: a gateway before it may have given the others.
        """
        if not self._allowed or not (text or self.text):
            return
        if text is None:
            if success and self._own and (observer := observers.dry_run) and self._scope:
                observer.called(self._scope, self._service)
            if self._takes_part:
                self._mark(_UNANSWERED)
            elif success:
                _note(self._peer, speaks=False)
            return
        if not _answers.get(self._peer):
            _note(self._peer, speaks=True)
        if text == NOTHING:
            return
        held = self._scope
        if held is None:
            count("unscoped_response", self._service)
        elif held.open:
            held.merge(readable(self._service, text))
        else:
            count("late_response", self._service)

    def failed(self) -> None:
        """The call was sent, and what became of it is not known.

        Nothing is marked for a peer that answers without lineages: what it does is unknown to us
        however it ends.
        """
        if self._takes_part is not False:
            self._mark(_UNKNOWN)

    @property
    def _takes_part(self) -> bool | None:
        """Whether the peer answers with lineages; None where that is not known yet."""
        if self._expected == "auto":
            return _answers.get(self._peer)
        return self._expected == "always"

    def _mark(self, message: str) -> None:
        held = self._scope
        if held is not None:
            count("incomplete", self._service)
            held.mark_incomplete(self._service, IN_DOUBT)
            log_once("call_in_doubt", self._service, message, message, self._service)

    def later(self, judge: Callable[[], None]) -> None:
        """Let *judge* say how the call ended, when somebody reads the lineage of its scope.

        For finalisers: they run wherever memory is asked for, and must not wait for a lock.
        """

        def sample() -> Lineage:
            judge()
            return _EMPTY

        if self._scope is not None:
            self._scope.later(sample)

    def began(self) -> None:
        """The call goes on concurrently with its caller; what leaves meanwhile says so."""
        if self._scope is not None:
            self._scope.began()

    def finished(self) -> None:
        """It does so no longer."""
        if self._scope is not None:
            self._scope.finished()


def _note(peer: str, *, speaks: bool) -> None:
    """Remember how *peer* answers; one answer with a lineage outweighs all without."""
    known = _answers.get(peer)
    if known is None or (speaks and not known):
        with _lock:
            if len(_answers) >= _MOST_PEERS:
                _answers.clear()  # Known peers are soon known again.
            _answers[peer] = speaks


def may_leave_to(host: str, port: int | None = None) -> bool:
    """Whether ``egress_hosts`` lets lineages go to *host*, a name or an address."""
    allowed = config().egress_hosts
    return allowed is None or _hosts.names(allowed, host, port)


def forget_services() -> None:
    """Forget how services answer; for tests."""
    with _lock:
        _answers.clear()
