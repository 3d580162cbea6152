"""Jobs of queues without headers: each has its lineage beside it, as a text.

A job object has the text that came with it. What it leaves, when it is put into its queue again
or another one is, is of whoever does that.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from opentelemetry import baggage

from antipode import Lineage
from antipode._lineage.codec import encode
from antipode._propagation.extraction import is_ours_alone
from antipode._request.background import outside
from antipode._request.context import scope_in
from antipode._request.lineage_text import encode_bounded, readable
from antipode._request.scope import INCOMING_SUBJECT, NOTHING
from antipode._runtime import observers
from antipode._runtime.config import config
from antipode._runtime.metrics import count, log_once
from antipode.propagation import MEMBER

from ._incoming import Incoming
from ._outgoing import IN_DOUBT

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from types import CodeType

#: The attributes of a job that have the text that came with it, and the scope of its last run.
_CAME, _SCOPE = "_antipode_lineage", "_antipode_scope"


def text_of(found: bytes | str) -> str:
    """A text that anybody may have stored; of another alphabet it is unreadable, not absent."""
    text = found if isinstance(found, str) else found.decode("ascii", "replace")
    return text if is_ours_alone(f"{MEMBER}={text}") else ""


class Jobs:
    """The jobs of one library."""

    def __init__(
        self,
        service: str,
        named: Callable[[Any], str],
        code_of: Callable[[Any], CodeType | None],
    ) -> None:
        """Nothing changes yet.

        Args:
            service: the subject of marks about jobs.
            named: what a dry run calls the function of a job.
            code_of: the code of the function of a job; None where that is not known.
        """
        self._service, self._named, self._code_of = service, named, code_of
        #: The job that is performed here.
        self._job: ContextVar[Any] = ContextVar(f"antipode-{service}-job", default=None)
        #: The lineage of what nobody knows.
        self.unknown = encode(Lineage(incomplete=[(service, IN_DOUBT)]))

    def came(self, job: Any) -> str | None:
        """The text that came with *job*; None for none."""
        found: str | None = getattr(job, _CAME, None)
        return found

    def comes(self, job: Any, text: str | None) -> None:
        """*job* was read, or is about to be stored, with *text* beside it; None for none."""
        setattr(job, _CAME, text)

    def is_performed(self, job: Any) -> bool:
        """Whether *job* itself is performed here."""
        return self._job.get() is job

    def was_performed(self, job: Any) -> bool:
        """Whether *job* is, or was, performed elsewhere in this process."""
        return hasattr(job, _SCOPE) and not self.is_performed(job)

    @contextmanager
    def performing(self, job: Any, texts: Iterable[str]) -> Generator[None]:
        """*job* is performed, in a scope of its own that depends on what *texts* say."""
        came = [f"{MEMBER}={text}" for text in texts]
        incoming = Incoming(None, came, context=outside())
        setattr(job, _SCOPE, incoming.scope)
        token = self._job.set(job)
        if (observer := observers.dry_run) is not None:
            if came:
                observer.handled(incoming.scope, self._named(job))
            else:
                observer.unlabelled(incoming.scope, "", self._code_of(job))
        try:
            yield
        finally:
            self._job.reset(token)
            incoming.end()

    def sending(self, job: Any) -> None:
        """*job* is about to be put into its queue, to be performed by somebody."""
        held = scope_in()
        if held is not None and (observer := observers.dry_run) is not None:
            observer.sent(held, self._named(job))

    def leaving(self, job: Any, more: Iterable[str] = ()) -> str | None:
        """What is to be stored beside *job*: the lineage of who stores it; None for no change.

        Of a job that came from its queue it is what came, too, unless that job itself is
        performed here.

        Args:
            job: the job.
            more: what it depends on besides.
        """
        held, came, own = scope_in(), self.came(job), self.is_performed(job)
        if held is None or baggage.get_baggage(MEMBER) is None:
            return NOTHING if own and came is not None else came
        there = [*more] if own or came is None else [came, *more]
        text = held.text()
        return held.text_with(text, there) if there else text

    def now(self) -> str:
        """What the job that is performed here leaves now."""
        return self.leaving(self._job.get()) or NOTHING

    def lost(self, job: Any) -> None:
        """*job* is stored again by who did not perform it, and may not know what it wrote."""
        if self.is_performed(job):
            return
        held = getattr(job, _SCOPE, None)
        known = readable(INCOMING_SUBJECT, self.came(job) or NOTHING)
        if held is not None:
            known = known.merge(held.known)
        if held is None or held.open:
            known = known.marked((self._service, IN_DOUBT))
            self.note_doubt()
        self.comes(job, encode_bounded(known, max_bytes=config().max_lineage_bytes))

    def note_doubt(self) -> None:
        """Count, and log once, that it is not known what a job wrote."""
        count("incomplete", self._service)
        message = "what jobs wrote that others depend on is not known: the lineage says so"
        log_once("jobs_in_doubt", self._service, "", message)
