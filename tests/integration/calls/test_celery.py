"""Celery: a task is a call whose name no retry and no delivery changes, on real brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from antipode import calls
from tests.integration.calls import _tasks as tasks
from tests.integration.celery._workers import Worker, publishing, worker

if TYPE_CHECKING:
    from collections.abc import Iterator

BROKERS = [pytest.param(name, marks=pytest.mark.store(name)) for name in ("rabbitmq", "redis")]


@pytest.fixture(scope="module", params=BROKERS)
def _shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Worker]:
    """A worker of one process on each broker, for all tests of this file."""
    topology: Any = request.getfixturevalue(f"antipode_{request.param}")
    url = topology.url() if request.param == "rabbitmq" else f"redis://{topology.primary}/0"
    folder = tmp_path_factory.mktemp("celery")
    with publishing(url), worker(folder, url, module=tasks.__name__) as started:
        yield started


@pytest.fixture
def one(_shared: Worker) -> Iterator[Worker]:
    """The worker, which has noted nothing yet; this process publishes with names."""
    _shared.forget()
    calls.instrument_celery(tasks.app)
    yield _shared
    calls.uninstrument_celery(tasks.app)


def test_a_task_is_a_call_by_its_id(one: Worker) -> None:
    """Where it is published outside of any call: two of them are two calls."""
    ids = [tasks.show.delay(1).id for _ in range(2)]
    assert [each["name"] for each in one.wait("show-1", 2)] == [f"message:{each}" for each in ids]


def test_a_handler_that_runs_again_publishes_the_same_calls(one: Worker) -> None:
    """Other messages, with other ids, by the same names."""
    for _ in range(2):
        with calls.call("order-1"):
            tasks.show.delay(1)
            tasks.show.delay(1)
            tasks.show.apply_async([2])
    names = [each["name"] for each in one.wait("show-", 6)]
    assert names[:3] == names[3:]
    assert len(set(names)) == 3


@pytest.mark.parametrize("handled", [False, True], ids=["alone", "of a handler"])
def test_a_retried_task_keeps_its_name(one: Worker, *, handled: bool) -> None:
    """And what it publishes has the same name in each attempt."""
    if handled:
        with calls.call("order-1"):
            tasks.again.delay(3)
    else:
        tasks.again.delay(3)
    attempts = one.wait("again-3", 3)
    assert len({each["name"] for each in attempts}) == 1
    assert attempts[0]["name"].startswith("call:" if handled else "message:")
    assert len({each["name"] for each in one.wait("show-3", 3)}) == 1


def test_a_redelivered_task_keeps_its_name(one: Worker) -> None:
    """The process is killed in it; the next attempt makes the same calls."""
    with calls.call("order-1"):
        tasks.killed_once.delay(4)
    attempts, published = one.wait("killed-4", 2), one.wait("show-4", 2)
    assert len({each["name"] for each in attempts}) == 1
    assert len({each["name"] for each in published}) == 1


def test_what_replaces_a_task_is_another_call(one: Worker) -> None:
    """It has the id of the task that it replaces, and not its name."""
    tasks.replaced.delay(2)
    names = [one.wait(f"replaced-{number}")[0] for number in (2, 1, 0)]
    assert len({each["id"] for each in names}) == 1
    assert len({each["name"] for each in names}) == 3


def test_a_message_with_a_bad_name_runs_by_its_id(one: Worker) -> None:
    """Of a publisher without the library: nobody can refuse a task, and its id does as well."""
    calls.uninstrument_celery(tasks.app)
    found = tasks.show.apply_async([5], headers={"antipode-call": "x" * 10_000})
    assert one.wait("show-5")[0]["name"] == f"message:{found.id}"
