"""Celery tasks in a real worker on a real broker: each has its own scope, from its message on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from celery import chain, group, signals
from opentelemetry.instrumentation.celery import CeleryInstrumentor

import antipode
from antipode import Lineage
from antipode.integrations import celery as antipode_celery
from antipode.shim import scope_in

from . import _app as tasks
from ._workers import ORDERS, Worker, publishing, worker, writes_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from antipode_testing import RabbitMQTopology

pytestmark = pytest.mark.store("rabbitmq")


@pytest.fixture(autouse=True)
def _instrumented() -> Iterator[None]:
    """Celery is instrumented in this process during a test."""
    antipode_celery.instrument()
    yield
    antipode_celery.uninstrument()
    if CeleryInstrumentor().is_instrumented_by_opentelemetry:
        CeleryInstrumentor().uninstrument()


@pytest.fixture(scope="module")
def _shared(
    tmp_path_factory: pytest.TempPathFactory, antipode_rabbitmq: RabbitMQTopology
) -> Iterator[Worker]:
    """A worker of one process, for all tests of this file."""
    url = antipode_rabbitmq.url()
    with publishing(url), worker(tmp_path_factory.mktemp("celery"), url) as started:
        yield started


@pytest.fixture
def one(_shared: Worker) -> Worker:
    """The worker, which has noted nothing yet."""
    _shared.forget()
    return _shared


def test_what_a_task_publishes_has_its_lineage(one: Worker) -> None:
    """Causes and the task's own writes reach the task that it publishes."""
    with antipode.scope(Lineage([tasks.post(1)])):
        tasks.publish.delay(1)
    (seen,) = one.wait("see-2")
    assert seen["writes"] == writes_of(1, own=(1,))


def test_a_task_that_stopped_its_lineage_publishes_none(one: Worker) -> None:
    """``stop()`` in a task: neither a new message nor a retry has what was discarded."""
    with antipode.scope(Lineage([tasks.post(1)])):
        tasks.publish.delay(1, stop=True)
        tasks.retry.delay(20, stop=True)
    (seen,) = one.wait("see-2")
    assert seen["writes"] == []
    assert [each["writes"] for each in one.wait("retry-20", 3)] == [writes_of(1), [], []]


def test_each_attempt_sees_the_writes_of_those_before(one: Worker) -> None:
    """A retried message has the lineage of its attempt, not the first one's header."""
    with antipode.scope(Lineage([tasks.post(1)])):
        tasks.retry.delay(10)
    notes = one.wait("retry-10", 3)
    assert [each["writes"] for each in notes] == [
        writes_of(1),
        writes_of(1, own=(10,)),
        writes_of(1, own=(10, 11)),
    ]
    assert len({each["id"] for each in notes}) == 1


def test_chains_and_groups_carry_lineages(one: Worker) -> None:
    """A chain's next task has the writes of the one before; a group's tasks not each other's."""
    with antipode.scope(Lineage([tasks.post(1)])):
        chain(tasks.see.si(1), tasks.see.si(2), tasks.see.si(3)).apply_async()
        group(tasks.see.si(n) for n in (11, 12)).apply_async()
    notes = {each["what"]: each["writes"] for each in one.wait("see-", 5)}
    assert notes["see-1"] == writes_of(1)
    assert notes["see-2"] == writes_of(1, own=(1,))
    assert notes["see-3"] == writes_of(1, own=(1, 2))
    assert notes["see-11"] == notes["see-12"] == writes_of(1)


def test_callbacks_and_errbacks_have_the_lineage_of_their_task(one: Worker) -> None:
    """``link`` and ``link_error`` are published by the task that ended, with what it wrote."""
    with antipode.scope(Lineage([tasks.post(1)])):
        tasks.see.apply_async([1], link=tasks.see.si(2))
        tasks.fail.apply_async([3], link_error=tasks.see.si(4))
    assert one.wait("see-2")[0]["writes"] == writes_of(1, own=(1,))
    assert one.wait("see-4")[0]["writes"] == writes_of(1, own=(3,))


def test_a_redelivered_task_has_the_lineage_of_its_message(one: Worker) -> None:
    """The process is killed in the task; the next attempt has no write of the first."""
    with antipode.scope(Lineage([tasks.post(1)])):
        tasks.die_once.delay(1)
    notes = one.wait("die-1", 2)
    assert [each["redelivered"] for each in notes] == [False, True]
    assert [each["writes"] for each in notes] == [writes_of(1)] * 2


def test_a_task_published_without_a_scope_has_an_empty_one(one: Worker) -> None:
    """As beat does it: absent is empty, and the task has a scope to write into."""
    tasks.publish.delay(1)
    assert one.wait("publish-1")[0]["writes"] == writes_of(own=(1,))
    assert one.wait("see-2")[0]["writes"] == writes_of(own=(1,))


@pytest.mark.parametrize("header", ["antipode=1~~", "antipode=", 7], ids=["bad", "empty", "int"])
def test_an_unreadable_header_is_incomplete(one: Worker, header: object) -> None:
    """Whatever the header holds, the task runs, and its lineage says what it misses."""
    tasks.see.apply_async([1], headers={"baggage": header})
    (seen,) = one.wait("see-1")
    assert seen["incomplete"] == ["baggage (unreadable)"]


def test_the_members_of_others_stay(one: Worker) -> None:
    """A lineage is added to a header that the application sends; another one in it is merged."""
    other = antipode.serialize(Lineage([tasks.post(2)]))
    sent: list[dict[str, Any]] = []

    def look(headers: dict[str, Any], **_: Any) -> None:
        sent.append(headers)

    signals.before_task_publish.connect(look)
    with antipode.scope(Lineage([tasks.post(1)])):
        tasks.see.apply_async([1], headers={"baggage": f"user=7,antipode={other}"})
    signals.before_task_publish.disconnect(look)
    assert sent[0]["baggage"].endswith(",user=7")
    assert one.wait("see-1")[0]["writes"] == writes_of(1, 2)


@pytest.mark.parametrize("order", ORDERS)
def test_eager_tasks_are_part_of_their_request(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run in place: its writes are in the caller's scope, which goes on; without one, its own."""
    monkeypatch.setattr(tasks, "FOLDER", tmp_path)
    antipode_celery.uninstrument()
    tasks.instrument(order.split(","))
    with antipode.scope(Lineage([tasks.post(1)])) as held:
        assert tasks.see.apply([7]).get() == 7
        assert scope_in() is held
        assert held.open
        assert held.lineage == Lineage([tasks.post(1), tasks.own(7)])
    assert tasks.see.apply([8]).get() == 8
    assert scope_in() is None


def test_instrumenting_is_idempotent_and_undoable() -> None:
    """Twice is once; undone, messages have no header and tasks no scope."""
    antipode_celery.instrument()
    sent: list[dict[str, Any]] = []

    def look(headers: dict[str, Any], **_: Any) -> None:
        sent.append(headers)

    signals.before_task_publish.connect(look)
    with antipode.scope(Lineage([tasks.post(1)])):
        tasks.see.delay(1)
        assert sent[-1]["baggage"].count("antipode=") == 1
        antipode_celery.uninstrument()
        antipode_celery.uninstrument()
        tasks.see.delay(1)
        assert "baggage" not in sent[-1]
    signals.before_task_publish.disconnect(look)
    ours = [r for _, r in signals.task_prerun.receivers if "antipode" in str(r)]
    assert not ours
