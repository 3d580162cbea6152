"""RQ's jobs, performed by its own workers over a real Redis: each has a scope of its own."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import redis

import antipode
from antipode import Lineage
from antipode._runtime import metrics
from antipode._setup import targets
from antipode.integrations import rq as antipode_rq
from antipode_shims import embedded
from antipode_shims.embedded import EmbeddedTopology
from tests._lines import records_in
from tests.integration.mysql._clients import NOTES, Sql, run
from tests.integration.queues import _jobs as jobs
from tests.integration.queues._jobs import own, post, seen

rq: Any = pytest.importorskip("rq")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")
FIELD = "antipode"


class Bench:
    """A queue of its own name, and a worker in this process."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.queue = rq.Queue(f"antipode-{uuid.uuid4().hex[:8]}", connection=client)

    def work(self, kind: Any = rq.SimpleWorker, **options: Any) -> None:
        """Perform what is in the queue."""
        worker = kind([self.queue], connection=self.client, **options)
        worker.work(burst=True, logging_level="CRITICAL")

    def schedule(self) -> None:
        """Let what is scheduled be due now, and enqueue it as RQ's scheduler does."""
        registry = rq.registry.ScheduledJobRegistry(queue=self.queue)
        for key in registry.get_job_ids():
            self.client.zadd(registry.key, {key: 1})
        scheduler = rq.scheduler.RQScheduler([self.queue], connection=self.client)
        scheduler.acquire_locks()
        scheduler.enqueue_scheduled_jobs()
        scheduler.release_locks()

    def field(self, job: Any) -> Any:
        """What the hash of a job has of ours."""
        return self.client.hget(job.key, FIELD)


@pytest.fixture
def bench(antipode_redis: RedisTopology) -> Iterator[Bench]:
    """RQ is instrumented; nothing stays there."""
    seen.clear()
    jobs.scopes.clear()
    with redis.Redis(*antipode_redis.primary) as client:
        made = Bench(client)
        antipode_rq.instrument()
        yield made
        antipode_rq.uninstrument()
        made.queue.delete(delete_jobs=True)


def test_a_job_has_the_lineage_of_who_enqueued_it(bench: Bench) -> None:
    """Two jobs of one worker: each depends on its own request alone, and its result comes back."""
    made = []
    for number in (1, 2):
        with antipode.scope(Lineage([post(number)])):
            made.append(bench.queue.enqueue(jobs.see, number))
    bench.work()
    assert seen == [(f"see {n}", Lineage([post(n)])) for n in (1, 2)]
    assert [job.return_value(refresh=True) for job in made] == [1, 2]
    assert [(job.meta, job.args) for job in made] == [({}, (1,)), ({}, (2,))]
    assert not any(held.open for held in jobs.scopes)


def test_each_attempt_has_the_writes_of_those_before(bench: Bench) -> None:
    """A job that is retried, at once and later, has the lineage of its last attempt."""
    with antipode.scope(Lineage([post(1)])):
        bench.queue.enqueue(jobs.fail, 10, retry=rq.Retry(max=2, interval=[0, 60]))
    bench.work()
    bench.schedule()
    bench.work()
    assert [lineage for _, lineage in seen] == [
        Lineage([post(1)]),
        Lineage([post(1), own(11)]),
        Lineage([post(1), own(11), own(12)]),
    ]


def test_a_scheduled_job_has_its_lineage(bench: Bench) -> None:
    """Another process enqueues it, without a scope."""
    with antipode.scope(Lineage([post(1)])):
        bench.queue.enqueue_in(timedelta(hours=1), jobs.see, 1)
    bench.schedule()
    bench.work()
    assert seen == [("see 1", Lineage([post(1)]))]


@pytest.mark.parametrize("kept_s", [500, 0], ids=["kept", "not kept"])
def test_a_job_depends_on_those_that_it_waits_for(bench: Bench, kept_s: int) -> None:
    """On what they wrote, whichever ends last; where a hash is gone it says what it misses."""
    made = []
    for number in (1, 2):
        with antipode.scope(Lineage([post(number)])):
            made.append(bench.queue.enqueue(jobs.see, number, result_ttl=kept_s))
    with antipode.scope(Lineage([post(3)])):
        bench.queue.enqueue(jobs.see, 3, depends_on=made)
        bench.queue.enqueue(jobs.see, 4, depends_on=made[1])
    bench.work()
    found = dict(seen)
    assert found["see 4"] == Lineage([post(2), own(2), post(3)])
    if kept_s:
        assert found["see 3"] == Lineage([post(1), own(1), post(2), own(2), post(3)])
    else:
        assert {post(2), own(2), post(3)} <= set(found["see 3"])
        assert [(mark.subject, mark.reason) for mark in found["see 3"].incomplete] == [
            ("rq", "in_doubt")
        ]


def test_a_job_depends_on_one_that_failed(bench: Bench) -> None:
    """Where it may run all the same: on what that wrote before."""
    with antipode.scope(Lineage([post(1)])):
        failing = bench.queue.enqueue(jobs.fail, 10)
        good = bench.queue.enqueue(jobs.see, 2)
        after = rq.job.Dependency(jobs=[failing, good], allow_failure=True)
        bench.queue.enqueue(jobs.see, 3, depends_on=after)
    bench.work()
    assert dict(seen)["see 3"] == Lineage([post(1), own(11), own(2)])
    assert failing.is_failed


def test_a_job_depends_on_one_that_failed_whose_handlers_are_off(bench: Bench) -> None:
    """Its worker leaves failures to others and saves none: what the job wrote is known."""
    with antipode.scope(Lineage([post(1)])):
        failing = bench.queue.enqueue(jobs.fail, 10)
        good = bench.queue.enqueue(jobs.see, 2)
        after = rq.job.Dependency(jobs=[failing, good], allow_failure=True)
        bench.queue.enqueue(jobs.see, 3, depends_on=after)
    bench.work(disable_default_exception_handler=True)
    assert dict(seen)["see 3"] == Lineage([post(1), own(11), own(2)])


def test_a_coroutine_runs_in_the_scope_of_its_job(bench: Bench) -> None:
    """What it writes is in what comes after it."""
    with antipode.scope(Lineage([post(1)])):
        job = bench.queue.enqueue(jobs.look, 1)
    bench.queue.enqueue(jobs.see, 2, depends_on=job)
    bench.work()
    assert seen == [("look 1", Lineage([post(1)])), ("see 2", Lineage([post(1), own(1)]))]


def test_a_job_without_a_lineage_runs_as_it_is(bench: Bench) -> None:
    """One of an older version, and one without a scope, have empty ones of their own."""
    with antipode.scope(Lineage([post(1)])):
        old = bench.queue.enqueue(jobs.see, 1)
        bench.client.hdel(old.key, FIELD)
        bench.queue.enqueue(jobs.see, 3)
    bench.queue.enqueue(jobs.see, 2)
    bench.work()
    assert dict(seen) == {"see 1": Lineage(), "see 2": Lineage(), "see 3": Lineage([post(1)])}


@pytest.mark.parametrize("text", [b"1~~", b"\xff", b"1,antipode=1", b"1" * 100_000])
def test_a_lineage_that_cannot_be_read_is_incomplete(bench: Bench, text: bytes) -> None:
    """Whatever the field holds, the job runs, and its lineage says what it misses."""
    job = bench.queue.enqueue(jobs.see, 1)
    bench.client.hset(job.key, FIELD, text)
    bench.work()
    ((_, lineage),) = seen
    assert [(mark.subject, mark.reason) for mark in lineage.incomplete] == [
        ("baggage", "unreadable")
    ]


def test_a_job_that_stopped_its_lineage_leaves_none(bench: Bench) -> None:
    """Its next attempt has nothing of what it discarded."""
    with antipode.scope(Lineage([post(1)])):
        bench.queue.enqueue(jobs.stop, 1, retry=rq.Retry(max=1))
    bench.work()
    assert seen == [("stop 1", Lineage([post(1)])), ("stop 1", Lineage())]


def test_what_another_request_saves_depends_on_both(bench: Bench) -> None:
    """A failed job that somebody requeues; one that is fetched has no more than it had."""
    with antipode.scope(Lineage([post(1)])):
        job = bench.queue.enqueue(jobs.fail, 10)
    bench.work()
    with antipode.scope(Lineage([post(2)])):
        found = rq.job.Job.fetch(job.id, connection=bench.client)
        assert antipode.current() == Lineage([post(2)])
        found.requeue()
    bench.work()
    assert seen[-1] == ("fail 10", Lineage([post(1), own(11), post(2)]))


def test_a_job_whose_process_was_lost_says_what_it_misses(bench: Bench) -> None:
    """Another process retries it, which does not know what it wrote."""
    with antipode.scope(Lineage([post(1)])):
        job = bench.queue.enqueue(jobs.see, 1, retry=rq.Retry(max=1))
    found = rq.job.Job.fetch(job.id, connection=bench.client)
    bench.client.lrem(bench.queue.key, 0, job.id)
    with bench.client.pipeline() as pipeline:
        found.retry(bench.queue, pipeline)
        pipeline.execute()
    bench.work()
    ((_, lineage),) = seen
    assert set(lineage) == {post(1)}
    assert [(mark.subject, mark.reason) for mark in lineage.incomplete] == [("rq", "in_doubt")]


def test_a_queue_that_performs_at_once_is_part_of_the_request(bench: Bench) -> None:
    """``is_async=False``: as a function that is called."""
    at_once = rq.Queue(bench.queue.name, connection=bench.client, is_async=False)
    with antipode.scope(Lineage([post(1)])) as held:
        at_once.enqueue(jobs.see, 1)
        assert held.open
        assert held.lineage == Lineage([post(1), own(1)])


def test_setup_covers_it(bench: Bench) -> None:
    """Without a call of its own; ``teardown()`` undoes it."""
    antipode_rq.uninstrument()
    antipode.setup(skip=[name for name in targets.NAMES if name != "rq"])
    try:
        with antipode.scope(Lineage([post(1)])):
            bench.queue.enqueue(jobs.see, 1)
        bench.work()
        assert seen == [("see 1", Lineage([post(1)]))]
        assert antipode_rq.is_instrumented()
    finally:
        antipode.teardown()
    assert not antipode_rq.is_instrumented()


def test_undone_it_leaves_jobs_alone(bench: Bench) -> None:
    """Twice is once; undone, jobs have no field and no scope."""
    antipode_rq.instrument()
    antipode_rq.uninstrument()
    antipode_rq.uninstrument()
    with antipode.scope(Lineage([post(1)])):
        job = bench.queue.enqueue(jobs.without)
    assert bench.field(job) is None
    bench.work()
    assert job.return_value(refresh=True) is True


@pytest.mark.slow
@pytest.mark.parametrize("waits", [False, True], ids=["stale", "barrier"])
def test_a_worker_of_its_own_reads_at_a_late_replica(bench: Bench, *, waits: bool) -> None:
    """A process that RQ forks for each job: a barrier in it waits for what its enqueuer wrote."""
    with EmbeddedTopology(lag_ms=500 if waits else 60_000) as topology:
        writer = embedded.shim("posts", topology.primary, reads_from="primary")
        made = []
        for number in range(3):
            with antipode.scope():
                writer.write(f"k{number}", b"there")
                arguments = (topology.replica, f"k{number}")
                made.append(bench.queue.enqueue(jobs.read, *arguments, waits=waits))
            if not waits:
                break
        bench.work(rq.Worker)
        found = [job.return_value(refresh=True) for job in made]
        assert [job.latest_result().exc_string for job in made] == [None] * len(made)
    assert found == ([b"there"] * 3 if waits else [None])


@pytest.mark.slow
def test_a_job_in_an_open_transaction_is_told(
    bench: Bench,
    sql: Sql,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With both lines: it may run before the commit, and its lineage has no position."""
    monkeypatch.setattr(metrics, "_logged", set())
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    connection = sql.connect()
    with antipode.scope():
        run(connection, "BEGIN")
        bench.queue.enqueue(jobs.see, 1)
        run(connection, "INSERT INTO notes VALUES (2, 'open')")
        bench.queue.enqueue(jobs.see, 2)
        run(connection, "COMMIT")
        bench.queue.enqueue(jobs.see, 3)
    antipode.configure(mode="enforce")
    records = records_in(tmp_path)
    (told,) = [each for each in records if each.get("lint") == "in-transaction"]
    assert told["datastore"] == NOTES
    assert told["site"]["function"] == "test_a_job_in_an_open_transaction_is_told"
    sent = [each["to"] for each in records if each.get("step") == "sent"]
    assert sent == [f"the task {jobs.__name__}.see"] * 3
    (line,) = [each.getMessage() for each in caplog.records if "leaves at" in each.getMessage()]
    assert __file__ in line
    assert run.__code__.co_filename in line
