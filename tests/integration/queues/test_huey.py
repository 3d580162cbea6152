"""huey's tasks, executed by its own workers over a real Redis: each has a scope of its own."""

from __future__ import annotations

import contextvars
import json
import os
import pickle
import subprocess
import sys
import threading
import uuid
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage
from antipode._runtime import metrics
from antipode._setup import targets
from antipode.integrations import huey as antipode_huey
from antipode_shims import embedded
from antipode_shims.embedded import EmbeddedTopology
from tests._lines import records_in
from tests.integration.mysql._clients import NOTES, Sql, run
from tests.integration.queues import _jobs as jobs
from tests.integration.queues._jobs import own, post, seen

library: Any = pytest.importorskip("huey")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")

MARK = [("huey", "in_doubt")]


def marks(lineage: Lineage) -> list[tuple[str, str]]:
    """What a lineage says that it misses."""
    return [(mark.subject, mark.reason) for mark in lineage.incomplete]


class Bench:
    """A queue of its own name, its tasks, and a worker in this process."""

    def __init__(self, url: str, **options: Any) -> None:
        name = f"antipode{uuid.uuid4().hex[:8]}"
        self.huey = library.RedisHuey(name, url=url, blocking=False, **options)
        task = self.huey.task
        self.see, self.stop, self.read, self.without = (
            task()(each) for each in (jobs.see, jobs.stop, jobs.read, jobs.without)
        )
        self.follow = task()(jobs.follow)
        self.fail = task()(jobs.fail)

    def work(self, now: datetime | None = None, most: int = 100) -> None:
        """Execute what is in the queue, as a consumer's thread does."""
        consumer = self.huey.create_consumer(periodic=False)
        ((worker, _),) = consumer.worker_threads
        while len(self.huey) and most:
            contextvars.Context().run(worker.loop, now)
            most -= 1

    def schedule(self) -> None:
        """Let what is scheduled be due, and execute it."""
        now = datetime.fromisoformat("2100-01-01")
        scheduler = self.huey.create_consumer(periodic=False)._create_scheduler()
        scheduler.stop_flag.set()
        contextvars.Context().run(scheduler.loop, now)
        self.work(now)

    def messages(self) -> list[bytes]:
        """What is in the queue."""
        return list(self.huey.storage.enqueued_items())


@pytest.fixture
def options() -> dict[str, Any]:
    """Of the queue."""
    return {}


@pytest.fixture
def bench(antipode_redis: RedisTopology, options: dict[str, Any]) -> Iterator[Bench]:
    """The library is instrumented; nothing stays there."""
    seen.clear()
    jobs.scopes.clear()
    made = Bench(f"redis://{antipode_redis.primary}/0", **options)
    antipode_huey.instrument()
    yield made
    antipode_huey.uninstrument()
    made.huey.flush()
    made.huey.storage.close()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": True},
        {"compression": True, "use_zlib": True},
        {"serializer": library.serializer.SignedSerializer(secret="s")},  # noqa: S106 - of nothing
    ],
    ids=["pickle", "gzip", "zlib", "signed"],
)
def test_a_task_has_the_lineage_of_who_enqueued_it(bench: Bench) -> None:
    """Two tasks of one worker: each depends on its own request alone, and its result comes back."""
    made = []
    for number in (1, 2):
        with antipode.scope(Lineage([post(number)])):
            made.append(bench.see(number))
    bench.work()
    assert seen == [(f"see {n}", Lineage([post(n)])) for n in (1, 2)]
    assert [each.get() for each in made] == [1, 2]
    assert not any(held.open for held in jobs.scopes)


@pytest.mark.parametrize(
    "options",
    [{}, {"compression": True}, {"compression": True, "use_zlib": True}],
    ids=["pickle", "gzip", "zlib"],
)
def test_a_consumer_without_the_library_sees_the_message(bench: Bench) -> None:
    """As one of an older version does during a deployment."""
    with antipode.scope(Lineage([post(1)])):
        made = bench.see.s(1).then(bench.without)
        results = bench.huey.enqueue(made)
    antipode_huey.uninstrument()
    (message,) = bench.huey.pending()
    assert (message.id, message.args, message.kwargs) == (made.id, (1,), {})
    bench.huey.flush()
    antipode_huey.instrument()
    with antipode.scope(Lineage([post(1)])):
        results = bench.without()
    antipode_huey.uninstrument()
    bench.work()
    assert results.get() is True


def test_each_attempt_has_the_writes_of_those_before(bench: Bench) -> None:
    """A task that is retried, at once and later, has the lineage of its last attempt."""
    with antipode.scope(Lineage([post(1)])):
        bench.huey.enqueue(bench.fail.s(10, retries=1))
        bench.huey.enqueue(bench.fail.s(20, retries=1, retry_delay=60))
    bench.work()
    bench.schedule()
    assert seen == [
        ("fail 10", Lineage([post(1)])),
        ("fail 20", Lineage([post(1)])),
        ("fail 10", Lineage([post(1), own(11)])),
        ("fail 20", Lineage([post(1), own(22)])),
    ]


def test_a_scheduled_task_has_its_lineage(bench: Bench) -> None:
    """The consumer's scheduler enqueues it, without a scope."""
    with antipode.scope(Lineage([post(1)])):
        bench.see.schedule((1,), delay=3600)
    bench.schedule()
    assert seen == [("see 1", Lineage([post(1)]))]


def test_what_follows_a_task_has_what_it_wrote(bench: Bench) -> None:
    """The next of a pipeline, and what handles an error."""
    with antipode.scope(Lineage([post(1)])):
        bench.huey.enqueue(bench.see.s(1).then(bench.follow))
        bench.huey.enqueue(bench.fail.s(10).error(bench.follow))
    bench.work()
    assert dict(seen)["follow 1"] == Lineage([post(1), own(1)])
    assert dict(seen)["follow 10"] == Lineage([post(1), own(12)])


@pytest.mark.parametrize("order", ["as they are", "the last one first"])
def test_what_follows_a_chord_depends_on_all_of_it(bench: Bench, order: str) -> None:
    """On what each member wrote, whichever ends last, failed ones included."""
    with antipode.scope(Lineage([post(1)])):
        members = [bench.see.s(1), bench.fail.s(10), bench.see.s(2).then(bench.follow)]
        bench.huey.enqueue(library.group(members).then(bench.follow))
    if order != "as they are":
        first, *others = bench.messages()
        bench.huey.storage.conn.delete(bench.huey.storage.queue_key)
        for each in (*reversed(others), first):
            bench.huey.storage.enqueue(each)
    bench.work()
    *_, (what, lineage) = seen
    assert what.startswith("follow [")
    failed = own(11 + [each for each, _ in seen].index("fail 10"))
    assert lineage == Lineage([post(1), own(1), own(2), failed])


def test_a_member_of_a_chord_without_the_library_is_marked(bench: Bench) -> None:
    """Its consumer says nothing of what it wrote."""
    with antipode.scope(Lineage([post(1)])):
        bench.huey.enqueue(library.group([bench.see.s(1), bench.see.s(2)]).then(bench.follow))
    antipode_huey.uninstrument()
    with antipode.scope():
        task = bench.huey.dequeue()
        bench.huey.execute(task)
    antipode_huey.instrument()
    bench.work()
    *_, (_, lineage) = seen
    assert set(lineage) == {post(1), own(2)}
    assert marks(lineage) == MARK


def test_a_task_without_a_lineage_runs_as_it_is(bench: Bench) -> None:
    """One of an older version, and one without a scope, have empty ones of their own."""
    antipode_huey.uninstrument()
    with antipode.scope(Lineage([post(1)])):
        bench.see(1)
        antipode_huey.instrument()
        bench.see(3)
    bench.see(2)
    bench.work()
    assert dict(seen) == {"see 1": Lineage(), "see 2": Lineage(), "see 3": Lineage([post(1)])}


@pytest.mark.parametrize("text", [b"1~~", b"\xff", b"1,antipode=1", b"1" * 100_000])
def test_a_lineage_that_cannot_be_read_is_incomplete(bench: Bench, text: bytes) -> None:
    """Whatever stands there, the task runs, and its lineage says what it misses."""
    bench.see(1)
    data = bench.huey.storage.dequeue()
    bench.huey.storage.enqueue(data + text + len(text).to_bytes(4, "big") + b"antipode")
    bench.work()
    ((_, lineage),) = seen
    assert marks(lineage) == [("baggage", "unreadable")]


def test_a_task_that_stopped_its_lineage_leaves_none(bench: Bench) -> None:
    """Its next attempt has nothing of what it discarded, nor has what follows a chord."""
    with antipode.scope(Lineage([post(1)])):
        bench.huey.enqueue(bench.stop.s(1, retries=1))
    bench.work()
    assert seen == [("stop 1", Lineage([post(1)])), ("stop 1", Lineage())]
    with antipode.scope(Lineage([post(1)])):
        bench.huey.enqueue(library.group([bench.stop.s(1)]).then(bench.follow))
    bench.work()
    assert seen[-1][1] == Lineage()


def test_a_task_that_is_rescheduled_depends_on_both(bench: Bench) -> None:
    """On who enqueued it, and on who did so again."""
    with antipode.scope(Lineage([post(1)])):
        result = bench.see.schedule((1,), delay=3600)
    with antipode.scope(Lineage([post(2)])):
        result.reschedule(delay=7200)
    bench.schedule()
    assert seen == [("see 1", Lineage([post(1), post(2)]))]


def test_a_task_that_was_given_up_says_what_it_misses(bench: Bench) -> None:
    """The application enqueues it again as its consumer stops, while it runs."""

    def interrupted(_: Any, task: Any) -> None:
        bench.huey.enqueue(task)

    bench.huey.signal(library.signals.SIGNAL_INTERRUPTED)(interrupted)

    def work() -> None:
        jobs.note("work")
        antipode.append(own(len(seen)))
        if len(seen) == 1:
            stopping = threading.Thread(target=bench.huey.notify_interrupted_tasks)
            stopping.start()
            stopping.join(60)

    task = bench.huey.task()(work)
    with antipode.scope(Lineage([post(1)])):
        task()
    bench.work()
    (_, first), (_, second) = seen
    assert first == Lineage([post(1)])
    assert set(second) == {post(1), own(1)}
    assert marks(second) == MARK


def to_json(_: Any, data: Any) -> bytes:
    """What a serializer of the application's own writes."""
    return json.dumps(data).encode()


def of_json(_: Any, data: bytes) -> Any:
    """What it reads: a message, or a result."""
    found = json.loads(data)
    return library.registry.Message(*found) if isinstance(found, list) else found


OWN: Any = type(
    "Own", (library.serializer.Serializer,), {"_serialize": to_json, "_deserialize": of_json}
)


@pytest.mark.parametrize("options", [{"serializer": OWN()}])
def test_a_serializer_of_ones_own_is_said_to_carry_none(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once; the task runs all the same."""
    monkeypatch.setattr(metrics, "_logged", set())
    with antipode.scope(Lineage([post(1)])):
        for number in (1, 2):
            bench.see(number)
    bench.work()
    assert seen == [("see 1", Lineage()), ("see 2", Lineage())]
    (line,) = [each.getMessage() for each in caplog.records if "serializer" in each.getMessage()]
    assert "carry no lineage" in line


@pytest.mark.parametrize("options", [{"immediate": True}])
def test_a_queue_that_executes_at_once_is_part_of_the_request(bench: Bench) -> None:
    """As a function that is called."""
    with antipode.scope(Lineage([post(1)])) as held:
        bench.see(1)
        bench.huey.enqueue(library.group([bench.see.s(2)]).then(bench.follow))
        assert held.open
        assert held.lineage == Lineage([post(1), own(1), own(2)])


def test_setup_covers_it(bench: Bench) -> None:
    """Without a call of its own; ``teardown()`` undoes it."""
    antipode_huey.uninstrument()
    antipode.setup(skip=[name for name in targets.NAMES if name != "huey"])
    try:
        with antipode.scope(Lineage([post(1)])):
            bench.see(1)
        bench.work()
        assert seen == [("see 1", Lineage([post(1)]))]
        assert antipode_huey.is_instrumented()
    finally:
        antipode.teardown()
    assert not antipode_huey.is_instrumented()


def test_undone_it_leaves_tasks_alone(bench: Bench) -> None:
    """Twice is once; undone, messages are what huey makes of them, and tasks have no scope."""
    antipode_huey.instrument()
    antipode_huey.uninstrument()
    antipode_huey.uninstrument()
    with antipode.scope(Lineage([post(1)])):
        result = bench.without()
    (data,) = bench.messages()
    assert data == pickle.dumps(pickle.loads(data), pickle.HIGHEST_PROTOCOL)  # noqa: S301 - it is ours
    bench.work()
    assert result.get() is True


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"store_none": True}])
@pytest.mark.parametrize("waits", [False, True], ids=["stale", "barrier"])
def test_a_consumer_of_its_own_reads_at_a_late_replica(
    bench: Bench, antipode_redis: RedisTopology, *, waits: bool
) -> None:
    """A barrier in another process waits for what was written by who enqueued the task."""
    command = ["-m", "huey.bin.huey_consumer", f"{__package__}._huey_app.huey", "-w", "1", "-n"]
    url = f"redis://{antipode_redis.primary}/0"
    consumer = subprocess.Popen(
        [sys.executable, *command],
        env={**os.environ, "ANTIPODE_HUEY": bench.huey.name, "ANTIPODE_HUEY_URL": url},
        stderr=subprocess.DEVNULL,
    )
    try:
        with EmbeddedTopology(lag_ms=500 if waits else 60_000) as topology:
            writer = embedded.shim("posts", topology.primary, reads_from="primary")
            warm = bench.read(topology.replica, "none", waits=False)
            assert warm.get(blocking=True, timeout=120) is None
            made = []
            for number in range(3 if waits else 1):
                with antipode.scope():
                    writer.write(f"k{number}", b"there")
                    made.append(bench.read(topology.replica, f"k{number}", waits=waits))
            found = [each.get(blocking=True, timeout=120) for each in made]
    finally:
        consumer.terminate()
        consumer.wait(60)
    assert found == ([b"there"] * 3 if waits else [None])


@pytest.mark.slow
def test_a_task_in_an_open_transaction_is_told(
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
        bench.see(1)
        run(connection, "INSERT INTO notes VALUES (2, 'open')")
        bench.see(2)
        run(connection, "COMMIT")
        bench.see(3)
    bench.work()
    antipode.configure(mode="enforce")
    records = records_in(tmp_path)
    (told,) = [each for each in records if each.get("lint") == "in-transaction"]
    assert told["datastore"] == NOTES
    assert told["site"]["function"] == "test_a_task_in_an_open_transaction_is_told"
    for step in ("sent", "handled"):
        names = [each["to"] for each in records if each.get("step") == step]
        assert names == [f"the task {jobs.__name__}.see"] * 3
    (line,) = [each.getMessage() for each in caplog.records if "leaves at" in each.getMessage()]
    assert __file__ in line
    assert run.__code__.co_filename in line


def test_a_task_without_a_lineage_is_told(bench: Bench, tmp_path: Path) -> None:
    """With the line of its function: who enqueued it has no library, or no scope."""
    bench.see(1)
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    bench.work()
    antipode.configure(mode="enforce")
    (told,) = [e for e in records_in(tmp_path) if e.get("lint") == "message-without-lineage"]
    assert told["site"]["function"] == "see"


def test_a_time_on_the_way_does_not_count(bench: Bench) -> None:
    """A task that expired is not executed, and leaves nothing open."""
    with antipode.scope(Lineage([post(1)])):
        bench.huey.enqueue(bench.see.s(1, expires=timedelta(seconds=1)))
    bench.work(datetime.fromisoformat("2100-01-01"))
    assert seen == []
