"""Random jobs of RQ, Dramatiq and huey over a real Redis: each depends on what the model says."""

from __future__ import annotations

import contextvars
import uuid
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
import redis

from antipode.shim import register, unregister
from antipode_shims.embedded import EmbeddedTopology
from antipode_testing import wait_until

from . import _program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import RedisTopology

    from ._program import Job, Program

pytestmark = [pytest.mark.store("redis"), pytest.mark.slow]

REQUESTS, MOST, SEEDS = 4, 30, range(3)


def rq(program: Program, topology: RedisTopology) -> Callable[[], None]:
    """RQ's queue; what runs all of it."""
    library: Any = pytest.importorskip("rq")
    client = redis.Redis(*topology.primary)
    queue = library.Queue(f"antipode-{uuid.uuid4().hex[:8]}", connection=client)

    def send(job: Job) -> None:
        sent = enqueue(job)
        if job.then is not None:
            enqueue(job.then, depends_on=sent)

    def enqueue(job: Job, **options: Any) -> Any:
        retry = library.Retry(max=job.fails) if job.fails else None
        return queue.enqueue(_program.perform, job.number, retry=retry, **options)

    def work() -> None:
        worker = library.SimpleWorker([queue], connection=client)
        worker.work(burst=True, logging_level="CRITICAL")
        queue.delete(delete_jobs=True)
        client.close()

    program.send = send
    return work


def dramatiq(program: Program, topology: RedisTopology) -> Callable[[], None]:
    """Dramatiq's broker of Redis, with two threads."""
    library: Any = pytest.importorskip("dramatiq")
    brokers: Any = import_module("dramatiq.brokers.redis")
    broker = brokers.RedisBroker(url=f"redis://{topology.primary}/0")
    actor = library.actor(
        _program.perform,
        broker=broker,
        queue_name=f"antipode-{uuid.uuid4().hex[:8]}",
        max_retries=2,
        min_backoff=1,
        max_backoff=2,
    )

    def send(job: Job) -> None:
        if job.then is None:
            actor.send(job.number)
        else:
            both = [actor.message(each.number) for each in (job, job.then)]
            library.pipeline(both, broker=broker).run()

    def work() -> None:
        worker = library.Worker(broker, worker_timeout=50, worker_threads=2)
        worker.start()
        wait_until(program.done, what="the actors", timeout_s=120)
        worker.stop()
        broker.flush_all()
        broker.client.connection_pool.disconnect()  # Its close() leaves the connections open.

    program.send = send
    return work


def huey(program: Program, topology: RedisTopology) -> Callable[[], None]:
    """A queue of huey in Redis."""
    library: Any = pytest.importorskip("huey")
    name, url = f"antipode{uuid.uuid4().hex[:8]}", f"redis://{topology.primary}/0"
    queue = library.RedisHuey(name, url=url, blocking=False)
    task = queue.task(retries=2)(_program.perform)

    def send(job: Job) -> None:
        sent = task.s(job.number)
        queue.enqueue(sent if job.then is None else sent.then(task, job.then.number))

    def work() -> None:
        ((worker, _),) = queue.create_consumer(periodic=False).worker_threads
        while len(queue):
            contextvars.Context().run(worker.loop)
        queue.flush()
        queue.storage.close()

    program.send = send
    return work


@pytest.fixture
def program(request: pytest.FixtureRequest) -> Iterator[Program]:
    """Jobs of the seed, over a store whose replica is a little late."""
    with EmbeddedTopology(lag_ms=20) as topology:
        made = _program.Program(topology, request.param, MOST)
        _program.programs.append(made)
        register(made.reader)
        yield made
        unregister("posts")
        _program.programs.clear()


@pytest.mark.parametrize("make", [rq, dramatiq, huey], ids=lambda each: each.__name__)
@pytest.mark.parametrize("program", SEEDS, indirect=True, ids=str)
def test_jobs_depend_on_what_the_model_says(
    program: Program, antipode_redis: RedisTopology, make: Callable[..., Callable[[], None]]
) -> None:
    """Whatever fails, is retried, chained, or sent before its sender writes."""
    ours: Any = import_module(f"antipode.integrations.{make.__name__}")
    ours.instrument()
    try:
        work = make(program, antipode_redis)
        for _ in range(REQUESTS):
            program.request()
        work()
    finally:
        ours.uninstrument()
    assert program.errors == []
    assert program.done()
    assert program.counts["failures"], program.counts
    assert program.counts["rows"] > program.counts["attempts"], program.counts
