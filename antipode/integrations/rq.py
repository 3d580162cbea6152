"""RQ: a job has a scope of its own, from its hash in Redis until its worker is done with it.

The lineage of who enqueues a job is in the field ``antipode`` of the job's hash, which RQ itself
does not read: arguments, ``meta`` and results are as they were. Works with every queue and worker
of RQ, whether it was made before or after.
"""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from types import CodeType
from typing import TYPE_CHECKING, Any

from opentelemetry import baggage

from antipode import ConfigurationError, Lineage
from antipode._lineage.codec import encode
from antipode._propagation.extraction import is_ours_alone
from antipode._request.background import outside
from antipode._request.context import scope_in
from antipode._request.lineage_text import encode_bounded, readable
from antipode._request.scope import INCOMING_SUBJECT, NOTHING
from antipode._runtime import observers
from antipode._runtime.config import config
from antipode._runtime.metrics import count, log_once
from antipode._runtime.switch import switchable
from antipode.propagation import MEMBER

from ._incoming import Incoming
from ._method import Method
from ._outgoing import IN_DOUBT

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["instrument", "uninstrument"]

#: The field of a job's hash, and the attribute of a job that has its text; None for no field.
_FIELD, _CAME = "antipode", "_antipode_lineage"
#: The service that marks about jobs are of.
SERVICE = "rq"
_WAITING = frozenset({"created", "queued", "deferred", "scheduled", "rate_limited"})
_UNKNOWN = encode(Lineage(incomplete=[(SERVICE, IN_DOUBT)]))
_methods: list[Method] = []


def __dir__() -> list[str]:
    return __all__


@switchable
def instrument() -> None:
    """Give every job that is enqueued the lineage, and a scope where it is performed. Idempotent.

    For all queues of the process. Call it in what enqueues and in workers.

    Raises:
        ConfigurationError: RQ is not installed.
    """
    try:
        from rq.job import Job
        from rq.worker import Worker
    except ImportError as error:
        text = "RQ is not installed: pip install 'antipode-xcy[rq]'"
        raise ConfigurationError(text) from error
    if not _methods:
        worker = next(kind for kind in Worker.__mro__ if "perform_job" in vars(kind))
        _methods.extend(
            [
                Method(Job, "to_dict", _saved),
                Method(Job, "restore", _restored),
                Method(Job, "retry", _lost),
                Method(Job, "_handle_failure", _lost),
                Method(worker, "perform_job", _performed),
            ]
        )
    for method in _methods:
        method.wrap()


def uninstrument() -> None:
    """Undo :func:`instrument`. Idempotent; jobs that are performed now end in their scopes."""
    for method in _methods:
        method.unwrap()


def is_instrumented() -> bool:
    """Whether :func:`instrument` is in force."""
    return any(method.active for method in _methods[:1])


#: The job that is performed here.
_job: ContextVar[Any] = ContextVar("antipode-rq-job", default=None)


def _performed(
    call: Callable[..., Any], _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A worker performs a job, calls its callbacks, and enqueues what comes after it."""
    job = args[0] if args else kwargs["job"]
    texts = _texts_of(job)
    incoming = Incoming(None, [f"{MEMBER}={text}" for text in texts], context=outside())
    token = _job.set(job)
    if (observer := observers.dry_run) is not None:
        if texts:
            observer.handled(incoming.scope, _named(job))
        else:
            observer.unlabelled(incoming.scope, "", _code_of(job))
    try:
        return call(*args, **kwargs)
    finally:
        _job.reset(token)
        incoming.end()


def _texts_of(job: Any) -> list[str]:
    """What *job* depends on: the lineages that came with it, and of the jobs that it waited for.

    The one of those that ended last has saved this one in its own scope. A hash that is gone, as
    with ``result_ttl=0``, says nothing of the others.
    """
    came = getattr(job, _CAME, None)
    texts = [] if came is None else [came]
    before = list(job._dependency_ids)  # noqa: SLF001 - the public one asks the server
    if before:
        with job.connection.pipeline(transaction=False) as pipe:
            for key in before:
                pipe.hmget(job.key_for(key), _FIELD, "created_at")
            for found, created in pipe.execute():
                if found is not None:
                    texts.append(_text(found))
                elif created is None and len(before) > 1:
                    texts.append(_UNKNOWN)
                    _note_doubt()
    return texts


def _restored(
    call: Callable[..., Any], job: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A job is read from its hash."""
    fields = args[0] if args else kwargs["raw_data"]
    found = fields.get(_FIELD.encode(), fields.get(_FIELD))
    setattr(job, _CAME, None if found is None else _text(found))
    return call(*args, **kwargs)


def _saved(
    call: Callable[..., Any], job: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A job is about to be written to its hash: enqueued, scheduled, retried, or done."""
    fields = call(*args, **kwargs)
    observer, held = observers.dry_run, scope_in()
    if held is not None and observer is not None and _waits(job):
        observer.sent(held, _named(job))
    text = _leaving(job)
    if text is not None:
        fields[_FIELD] = text
    return fields


def _lost(call: Callable[..., Any], job: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A job failed: it runs again, or what waits for it may. Another process may have had it."""
    if _job.get() is not job:  # That is gone, and with it what the job wrote.
        came = getattr(job, _CAME, None) or NOTHING
        missed = readable(INCOMING_SUBJECT, came).marked((SERVICE, IN_DOUBT))
        setattr(job, _CAME, encode_bounded(missed, max_bytes=config().max_lineage_bytes))
        _note_doubt()
    return call(*args, **kwargs)


def _leaving(job: Any) -> str | None:
    """What the hash of *job* says: the lineage of who saves it; None for no change.

    Of a job that came from its hash it is what came, too, unless that job itself is saved here.
    """
    held, came = scope_in(), getattr(job, _CAME, None)
    own = _job.get() is job
    if held is None or baggage.get_baggage(MEMBER) is None:
        return NOTHING if own and came is not None else came
    text = held.text()
    if not own and came is not None:
        text = held.text_with(text, [came])
    setattr(job, _CAME, text)
    return text


def _note_doubt() -> None:
    """Count, and log once, that it is not known what a job wrote."""
    count("incomplete", SERVICE)
    message = "what jobs wrote that others depend on is not known: the others' lineage is marked"
    log_once("jobs_in_doubt", SERVICE, "", message)


def _text(found: bytes | str) -> str:
    """What a hash has; what is of another alphabet is unreadable, and not absent."""
    text = found if isinstance(found, str) else found.decode("ascii", "replace")
    return text if is_ours_alone(f"{MEMBER}={text}") else ""


def _waits(job: Any) -> bool:
    """Whether *job* is yet to be performed."""
    return job.get_status(refresh=False) in _WAITING


def _code_of(job: Any) -> CodeType | None:
    """The code of the function of *job*; None where it is no function, or cannot be imported."""
    try:
        function: Any = inspect.unwrap(job.func)
    except Exception:  # noqa: BLE001 - RQ says so itself, to whom it concerns
        return None
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, CodeType) else None


def _named(job: Any) -> str:
    """What a dry run calls the function of *job*."""
    return f"the task {job.func_name}"
