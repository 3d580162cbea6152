"""Dramatiq's actors, run by its own worker over real brokers: each message has its own scope."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage
from antipode._setup import targets
from antipode.integrations import dramatiq as antipode_dramatiq
from antipode.shim import scope_in
from antipode_shims import embedded
from antipode_shims.embedded import EmbeddedTopology
from antipode_testing import wait_until
from tests._lines import records_in
from tests.integration.mysql._clients import NOTES, Sql, run
from tests.integration.queues._jobs import own, post, read

dramatiq: Any = pytest.importorskip("dramatiq")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow  # Each starts a worker, and ends it.

TIMEOUT_S = 60.0
BROKERS = [
    pytest.param(name, marks=pytest.mark.store(name), id=name) for name in ("redis", "rabbitmq")
]


class Bench:
    """A broker, its worker in this process, and what the actors saw."""

    def __init__(self, broker: Any) -> None:
        self.broker = broker
        self.seen: list[tuple[str, Lineage]] = []
        self.scopes: list[Any] = []
        self.worker: Any = None
        options = {"broker": broker, "queue_name": "antipode", "min_backoff": 1, "max_backoff": 2}
        self.see = dramatiq.actor(self._see, actor_name="see", **options)
        self.publish = dramatiq.actor(self._publish, actor_name="publish", **options)
        self.follow = dramatiq.actor(self._follow, actor_name="follow", **options)
        self.fail = dramatiq.actor(self._fail, actor_name="fail", max_retries=2, **options)

    def work(self) -> None:
        """Start the worker."""
        self.worker = dramatiq.Worker(self.broker, worker_timeout=50, worker_threads=1)
        self.worker.start()

    def note(self, what: str) -> None:
        """Write down what an actor depends on."""
        held = scope_in()
        assert held is not None
        self.scopes.append(held)
        self.seen.append((what, held.lineage))

    def wait(self, count: int) -> list[tuple[str, Lineage]]:
        """What was seen, in order, once that is so much."""
        wait_until(lambda: len(self.seen) >= count, what="the actors", timeout_s=TIMEOUT_S)
        return self.seen

    def ended(self, count: int) -> None:
        """Return once so many scopes were opened, and all are over."""
        assert len(set(map(id, self.scopes))) == count
        wait_until(
            lambda: not any(held.open for held in self.scopes),
            what="the scopes of messages to end",
            timeout_s=TIMEOUT_S,
        )

    def _see(self, number: int) -> int:
        self.note(f"see {number}")
        antipode.append(own(number))
        return number

    def _publish(self, number: int, *, stop: bool = False) -> None:
        self.note(f"publish {number}")
        antipode.append(own(number))
        if stop:
            antipode.stop()
        self.see.send(number + 1)

    def _follow(self, _: int) -> None:
        self.note("next")

    def _fail(self, number: int) -> None:
        self.note(f"fail {number}")
        antipode.append(own(number + len(self.seen)))
        raise RuntimeError(number)


@pytest.fixture(params=BROKERS)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Dramatiq is instrumented, after its broker was made; nothing stays there."""
    topology = request.getfixturevalue(f"antipode_{request.param}")
    module: Any = import_module(f"dramatiq.brokers.{request.param}")
    if request.param == "redis":
        broker = module.RedisBroker(url=f"redis://{topology.primary}/0")
    else:
        broker = module.RabbitmqBroker(url=topology.url())
    made = Bench(broker)
    antipode_dramatiq.instrument()
    yield made
    antipode_dramatiq.uninstrument()
    if made.worker is not None:
        made.worker.stop()
    broker.flush_all()
    broker.close()
    if request.param == "redis":  # Its close() leaves the connections open.
        broker.client.connection_pool.disconnect()


def test_an_actor_has_the_lineage_of_who_sent_its_message(bench: Bench) -> None:
    """Two messages that one thread processes: each depends on its own sender alone."""
    bench.work()
    for number in (1, 2):
        with antipode.scope(Lineage([post(number)])):
            bench.see.send(number)
    assert dict(bench.wait(2)) == {f"see {n}": Lineage([post(n)]) for n in (1, 2)}


def test_what_an_actor_sends_has_what_it_wrote(bench: Bench) -> None:
    """Its causes and its own writes, in a message that it sends and in a pipeline's next one."""
    bench.work()
    with antipode.scope(Lineage([post(1)])):
        bench.publish.send(1)
        both = [bench.see.message(5), bench.follow.message()]
        dramatiq.pipeline(both, broker=bench.broker).run()
    seen = dict(bench.wait(4))
    assert seen["publish 1"] == seen["see 5"] == Lineage([post(1)])
    assert seen["see 2"] == Lineage([post(1), own(1)])
    assert seen["next"] == Lineage([post(1), own(5)])


def test_each_attempt_has_the_writes_of_those_before(bench: Bench) -> None:
    """A message that is retried has the lineage of its last attempt, not the first option's."""
    bench.work()
    with antipode.scope(Lineage([post(1)])):
        bench.fail.send(10)
    assert [lineage for _, lineage in bench.wait(3)] == [
        Lineage([post(1)]),
        Lineage([post(1), own(11)]),
        Lineage([post(1), own(11), own(12)]),
    ]
    bench.ended(3)


def test_a_delayed_message_has_its_lineage(bench: Bench) -> None:
    """It waits in another queue, and is sent twice."""
    bench.work()
    with antipode.scope(Lineage([post(1)])):
        bench.see.send_with_options(args=(1,), delay=50)
    assert bench.wait(1) == [("see 1", Lineage([post(1)]))]


def test_an_actor_that_stopped_its_lineage_sends_none(bench: Bench) -> None:
    """Nothing of what it discarded leaves."""
    bench.work()
    with antipode.scope(Lineage([post(1)])):
        bench.publish.send(1, stop=True)
    assert bench.wait(2)[1] == ("see 2", Lineage())


def test_a_message_without_a_scope_has_an_empty_one(bench: Bench) -> None:
    """Absent is empty: the worker's thread has nothing of the message before."""
    bench.work()
    with antipode.scope(Lineage([post(1)])):
        bench.see.send(1)
    bench.see.send(2)
    assert dict(bench.wait(2))["see 2"] == Lineage()


@pytest.mark.parametrize("option", ["antipode=1~~", 7], ids=["bad", "int"])
def test_an_unreadable_option_is_incomplete(bench: Bench, option: object) -> None:
    """Whatever the option holds, the actor runs, and its lineage says what it misses."""
    bench.work()
    bench.see.send_with_options(args=(1,), baggage=option)
    ((_, lineage),) = bench.wait(1)
    assert [(mark.subject, mark.reason) for mark in lineage.incomplete] == [
        ("baggage", "unreadable")
    ]


def test_the_members_of_others_stay(bench: Bench) -> None:
    """A lineage is added to baggage that the application sends; another one in it is merged."""
    other = antipode.serialize(Lineage([post(2)]))
    with antipode.scope(Lineage([post(1)])):
        sent = bench.see.send_with_options(args=(1,), baggage=f"user=7,antipode={other}")
    assert sent.options["baggage"].endswith(",user=7")
    bench.work()
    assert bench.wait(1) == [("see 1", Lineage([post(1), post(2)]))]


def test_a_skipped_message_leaves_no_scope(bench: Bench) -> None:
    """Middleware that skips a message ends its scope, and the next one has its own."""

    def skip(_: Any, broker: Any, message: Any) -> None:
        if message.args == (1,):
            bench.scopes.append(scope_in())
            raise dramatiq.middleware.SkipMessage

    skips: Any = type("Skips", (dramatiq.Middleware,), {"before_process_message": skip})
    bench.broker.add_middleware(skips())
    with antipode.scope(Lineage([post(1)])):
        bench.see.send(1)
    bench.see.send(2)
    bench.work()
    assert bench.wait(1) == [("see 2", Lineage())]
    bench.ended(2)


def test_an_actor_of_a_coroutine_runs_in_its_scope(bench: Bench) -> None:
    """On the event loop's thread, too: its writes are the message's."""
    bench.broker.add_middleware(dramatiq.middleware.AsyncIO())

    async def look(number: int) -> None:
        bench.note("look")
        antipode.append(own(number))
        bench.see.send(number + 1)

    actor = dramatiq.actor(look, broker=bench.broker, queue_name="antipode")
    bench.work()
    with antipode.scope(Lineage([post(1)])):
        actor.send(1)
    assert bench.wait(2) == [
        ("look", Lineage([post(1)])),
        ("see 2", Lineage([post(1), own(1)])),
    ]


def test_an_actor_that_is_called_is_part_of_its_request(bench: Bench) -> None:
    """As a function: its writes are in the caller's scope, which goes on."""
    with antipode.scope(Lineage([post(1)])) as held:
        assert bench.see(1) == 1
        assert held.open
        assert held.lineage == Lineage([post(1), own(1)])


def test_setup_covers_it(bench: Bench) -> None:
    """Without a call of its own; ``teardown()`` undoes it."""
    antipode_dramatiq.uninstrument()
    antipode.setup(skip=[name for name in targets.NAMES if name != "dramatiq"])
    try:
        bench.work()
        with antipode.scope(Lineage([post(1)])):
            bench.see.send(1)
        assert bench.wait(1) == [("see 1", Lineage([post(1)]))]
        assert antipode_dramatiq.is_instrumented()
    finally:
        antipode.teardown()
    assert not antipode_dramatiq.is_instrumented()


@pytest.mark.parametrize("waits", [False, True], ids=["stale", "barrier"])
def test_an_actor_reads_at_a_late_replica(bench: Bench, *, waits: bool) -> None:
    """A barrier in it waits for what was written by who sent its message."""
    found: list[bytes | None] = []
    with EmbeddedTopology(lag_ms=500 if waits else 60_000) as topology:

        def look(key: str) -> None:
            found.append(read(topology.replica, key, waits=waits))

        actor = dramatiq.actor(look, broker=bench.broker, queue_name="antipode")
        bench.work()
        writer = embedded.shim("posts", topology.primary, reads_from="primary")
        for number in range(3 if waits else 1):
            with antipode.scope():
                writer.write(f"k{number}", b"there")
                actor.send(f"k{number}")
        wanted = [b"there"] * 3 if waits else [None]
        wait_until(lambda: len(found) == len(wanted), what="the actors", timeout_s=TIMEOUT_S)
    assert found == wanted


def test_a_message_in_an_open_transaction_is_told(bench: Bench, sql: Sql, tmp_path: Path) -> None:
    """The actor may run before the commit, and its lineage has no position of the write."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    connection = sql.connect()
    with antipode.scope():
        run(connection, "BEGIN")
        bench.see.send(1)
        run(connection, "INSERT INTO notes VALUES (2, 'open')")
        bench.see.send(2)
        run(connection, "COMMIT")
        bench.see.send(3)
    antipode.configure(mode="enforce")
    records = records_in(tmp_path)
    (told,) = [each for each in records if each.get("lint") == "in-transaction"]
    assert told["datastore"] == NOTES
    assert told["site"]["function"] == "test_a_message_in_an_open_transaction_is_told"
    assert [each["to"] for each in records if each.get("step") == "sent"] == ["the task see"] * 3


def test_undone_it_leaves_messages_alone(bench: Bench) -> None:
    """Twice is once; undone, messages have no option and actors no scope."""
    antipode_dramatiq.instrument()
    antipode_dramatiq.uninstrument()
    antipode_dramatiq.uninstrument()
    scopes: list[Any] = []

    def look() -> None:
        scopes.append(scope_in())

    actor = dramatiq.actor(look, broker=bench.broker, queue_name="antipode")
    with antipode.scope(Lineage([post(1)])):
        assert "baggage" not in actor.send().options
    bench.work()
    wait_until(lambda: bool(scopes), what="the actor", timeout_s=TIMEOUT_S)
    assert scopes == [None]
