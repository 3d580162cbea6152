"""RQ: a job has a scope of its own, from its hash in Redis until its worker is done with it.

The lineage of who enqueues a job is in the field ``antipode`` of the job's hash, which RQ itself
does not read: arguments, ``meta`` and results are as they were. Works with every queue and worker
of RQ, whether it was made before or after.
"""

from __future__ import annotations

import inspect
from types import CodeType
from typing import TYPE_CHECKING, Any

from antipode._runtime import observers
from antipode._runtime.switch import switchable

from ._jobs import Jobs, text_of
from ._method import Method, Methods

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["instrument", "uninstrument"]

#: The field of a job's hash that has its lineage.
_FIELD = "antipode"
_WAITING = frozenset({"created", "queued", "deferred", "scheduled", "rate_limited"})


def __dir__() -> list[str]:
    return __all__


@switchable
def instrument() -> None:
    """Give every job that is enqueued the lineage, and a scope where it is performed. Idempotent.

    For all queues of the process. Call it in what enqueues and in workers.

    Raises:
        ConfigurationError: RQ is not installed.
    """
    _methods.wrap()


def uninstrument() -> None:
    """Undo :func:`instrument`. Idempotent; jobs that are performed now end in their scopes."""
    _methods.unwrap()


def is_instrumented() -> bool:
    """Whether :func:`instrument` is in force."""
    return _methods.active


def _found() -> list[Method]:
    """The methods of RQ through which every job goes."""
    from rq.job import Job
    from rq.worker import Worker

    worker, failing = (
        next(kind for kind in Worker.__mro__ if name in vars(kind))
        for name in ("perform_job", "handle_job_failure")
    )
    return [
        Method(Job, "to_dict", _saved),
        Method(Job, "restore", _restored),
        Method(Job, "retry", _lost),
        Method(Job, "_handle_failure", _lost),
        Method(worker, "perform_job", _performed),
        Method(failing, "handle_job_failure", _failed),
    ]


def _performed(
    call: Callable[..., Any], _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A worker performs a job, calls its callbacks, and enqueues what comes after it."""
    job = args[0] if args else kwargs["job"]
    with _jobs.performing(job, _texts_of(job)):
        return call(*args, **kwargs)


def _texts_of(job: Any) -> list[str]:
    """What *job* depends on: the lineages that came with it, and of the jobs that it waited for.

    The one of those that ended last has saved this one in its own scope. A hash that is gone, as
    with ``result_ttl=0``, says nothing of the others.
    """
    came = _jobs.came(job)
    texts = [] if came is None else [came]
    before = list(job._dependency_ids)  # noqa: SLF001 - the public one asks the server
    if before:
        with job.connection.pipeline(transaction=False) as pipe:
            for key in before:
                pipe.hmget(job.key_for(key), _FIELD, "created_at")
            for found, created in pipe.execute():
                if found is not None:
                    texts.append(text_of(found))
                elif created is None and len(before) > 1:
                    texts.append(_jobs.unknown)
                    _jobs.note_doubt()
    return texts


def _restored(
    call: Callable[..., Any], job: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A job is read from its hash."""
    fields = args[0] if args else kwargs["raw_data"]
    found = fields.get(_FIELD.encode(), fields.get(_FIELD))
    _jobs.comes(job, None if found is None else text_of(found))
    return call(*args, **kwargs)


def _saved(
    call: Callable[..., Any], job: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A job is about to be written to its hash: enqueued, scheduled, retried, or done."""
    fields = call(*args, **kwargs)
    if observers.dry_run is not None and _waits(job):
        _jobs.sending(job)
    text = _jobs.leaving(job)
    if text is not None:
        fields[_FIELD] = text
        _jobs.comes(job, text)
    return fields


def _lost(call: Callable[..., Any], job: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A job failed: it runs again, or what waits for it may. Another process may have had it."""
    _jobs.lost(job)
    return call(*args, **kwargs)


def _failed(
    call: Callable[..., Any], worker: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A job failed in a worker: one that leaves failures to others saves nothing of it."""
    if worker.disable_default_exception_handler:
        job = args[0] if args else kwargs["job"]
        _jobs.lost(job)
        text = _jobs.leaving(job)
        if text is not None:
            worker.connection.hset(job.key, _FIELD, text)
            _jobs.comes(job, text)
    return call(*args, **kwargs)


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


_jobs = Jobs("rq", _named, _code_of)
_methods = Methods("RQ", "rq", _found)
