"""``fulfil``: the record of a promise in a pipeline of the application's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, Promise, PromiseAbandoned
from antipode_shims.redis._clients.clients import AsyncPipeline, SyncPipeline
from antipode_shims.redis._clients.redis_py import redis_module

from .records import FULFILLED, refuse_abandoned, set_record, watch_record

if TYPE_CHECKING:
    from antipode_shims.redis._commands import Command


def fulfil(pipeline: Any, promise: Promise | str, *, prefix: str | None = None) -> None:
    """Fulfil *promise* with what *pipeline* writes: all of it in one ``MULTI``, or nothing.

    One round trip, which watches the record: a branch that was given up meanwhile does not
    write. After it everything is queued, as after ``multi()``; the record's own reply is one
    more among those of ``execute()``. That raises redis-py's ``WatchError`` where another record
    came in between: call again, from ``fulfil`` on.

    Args:
        pipeline: of a ``redis.Redis``, transactional, with ``multi()`` called where keys are
            watched. It need not be instrumented.
        promise: the promise, or its ``token``.
        prefix: of the library's keys; None: that of the instrumented client, else ``ap:``.

    Raises:
        PromiseAbandoned: it was given up; the pipeline is reset.
        ConfigurationError: the pipeline is no transaction, or of another datastore.
        LineageDecodeError: *promise* is a text and no token.
    """
    call = _Call(pipeline, promise, prefix, _sync())
    plain: Any = super(SyncPipeline, pipeline) if call.instrumented else pipeline
    record = None
    for command in call.watch:
        record = plain.immediate_execute_command(*command)
    try:
        refuse_abandoned(call.promise, record)
    except PromiseAbandoned:
        pipeline.reset()
        raise
    pipeline.explicit_transaction = True
    plain.execute_command(*call.record)


async def fulfil_async(pipeline: Any, promise: Promise | str, *, prefix: str | None = None) -> None:
    """The twin of :func:`fulfil` for pipelines of ``redis.asyncio.Redis``.

    Raises:
        PromiseAbandoned: as :func:`fulfil`.
        ConfigurationError: as :func:`fulfil`.
        LineageDecodeError: as :func:`fulfil`.
    """
    call = _Call(pipeline, promise, prefix, _asyncio())
    plain: Any = super(AsyncPipeline, pipeline) if call.instrumented else pipeline
    record = None
    for command in call.watch:
        record = await plain.immediate_execute_command(*command)
    try:
        refuse_abandoned(call.promise, record)
    except PromiseAbandoned:
        await pipeline.reset()
        raise
    pipeline.explicit_transaction = True
    plain.execute_command(*call.record)


class _Call:
    """What one fulfilment sends.

    Attributes:
        promise: the promise.
        instrumented: whether the pipeline is; what is sent here is none of the application's.
        watch: sent at once.
        record: queued.
    """

    def __init__(
        self, pipeline: Any, promise: Promise | str, prefix: str | None, wanted: tuple[type, str]
    ) -> None:
        pipeline_class, transactional = wanted
        if not isinstance(pipeline, pipeline_class):
            name = type(pipeline).__name__
            msg = (
                f"expected a {pipeline_class.__module__}.Pipeline, not {name}: a promise is "
                "fulfilled in the transaction of its data; for the other kind of client take "
                "the other of fulfil() and fulfil_async()"
            )
            raise ConfigurationError(msg)
        held: Any = pipeline
        if not (getattr(held, transactional) or held.explicit_transaction):
            msg = "a promise needs a transaction: pipeline(transaction=True), or multi()"
            raise ConfigurationError(msg)
        if held.watching and not held.explicit_transaction:
            msg = "call multi() before a promise is fulfilled: until then nothing is queued"
            raise ConfigurationError(msg)
        self.promise = Promise.parse(promise) if isinstance(promise, str) else promise
        shim = getattr(getattr(held, "_antipode", None), "shim", None)
        self.instrumented = shim is not None
        if shim is not None and shim.datastore != self.promise.datastore:
            msg = f"{self.promise} cannot be fulfilled on {shim.datastore!r}"
            raise ConfigurationError(msg)
        if prefix is None:
            prefix = "ap:" if shim is None else str(shim.prefix)
        self.watch: list[Command] = watch_record(self.promise, prefix)
        self.record: Command = set_record(self.promise, prefix, FULFILLED)


def _sync() -> tuple[type, str]:
    return redis_module().client.Pipeline, "transaction"


def _asyncio() -> tuple[type, str]:
    return redis_module().asyncio.client.Pipeline, "is_transaction"
