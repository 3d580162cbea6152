"""Celery: a task is a call whose name no retry and no delivery changes, on real brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from celery import signals

from antipode import ConfigurationError, calls
from tests.integration.calls import _tasks as tasks
from tests.integration.celery import _app
from tests.integration.celery._workers import Worker, publishing, worker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BROKERS = [pytest.param(name, marks=pytest.mark.store(name)) for name in ("rabbitmq", "redis")]


@pytest.fixture
def sent(quiet: None) -> Iterator[list[dict[str, Any]]]:
    """The headers of what is published."""
    found: list[dict[str, Any]] = []

    def look(headers: dict[str, Any], **_: Any) -> None:
        found.append(headers)

    signals.before_task_publish.connect(look)
    yield found
    signals.before_task_publish.disconnect(look)


@pytest.fixture
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Messages have names, and go nowhere; what tasks note goes there too."""
    monkeypatch.setattr(_app, "FOLDER", tmp_path)
    with publishing("memory://"):
        calls.instrument_celery(tasks.app)
        yield
        calls.uninstrument_celery(tasks.app)


def test_names_are_given_or_made(sent: list[dict[str, Any]]) -> None:
    """By a header, by a block, by the arguments; without a call there is none."""
    tasks.show.delay(1)
    with calls.call("order-1"):
        tasks.show.apply_async([1], headers={"antipode-call": "first"})
        for block in ("a", "a", "b"):
            with calls.named(block):
                tasks.show.delay(1)
        tasks.show.delay(1)
        tasks.show.delay(2)
    names = [each.get("antipode-call") for each in sent]
    assert names[:2] == [None, "first"]
    assert names[2] == names[3]
    assert len(set(names)) == 6


def test_arguments_beyond_json_need_a_name(sent: list[dict[str, Any]]) -> None:
    """Refused before anything is published."""
    with calls.call("order-1"):
        with pytest.raises(calls.CallError, match="named"):
            tasks.show.apply_async([object()], serializer="pickle")
        assert not sent
        with calls.named("a"):
            tasks.show.apply_async([complex(1)], serializer="pickle")
    assert "antipode-call" in sent[0]


def test_a_message_that_was_not_published_is_published_by_the_same_name(
    sent: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker may have it or not."""

    def fail(*_: Any, **__: Any) -> None:
        raise ConnectionError

    with calls.call("order-1"):
        with monkeypatch.context() as patch:
            patch.setattr("kombu.Producer.publish", fail)
            with pytest.raises(ConnectionError):
                tasks.show.delay(1)
        tasks.show.delay(1)
        tasks.show.delay(1)
    first, second, third = (each["antipode-call"] for each in sent)
    assert first == second != third


@pytest.mark.usefixtures("quiet")
def test_tasks_in_place_are_part_of_their_call() -> None:
    """Run by ``apply()`` within one; alone they are calls."""
    with calls.call("order-1"):
        assert tasks.show.apply([1]).get() == "order-1"
        assert tasks.name() == "order-1"
    alone = tasks.show.apply([1])
    assert alone.get() == f"message:{alone.id}"
    assert tasks.name() is None


@pytest.mark.usefixtures("quiet")
def test_an_id_that_is_no_name_has_one() -> None:
    """Whatever the application's ids are made of, a task has the same name each time."""
    names = [tasks.show.apply([1], task_id=each).get() for each in ("a b", "a b", "x" * 300)]
    assert names[0] == names[1] != names[2]


def test_other_applications_are_left_alone(sent: list[dict[str, Any]]) -> None:
    """Their tasks are no calls, and their messages have no names."""
    assert tasks.show_plain.apply().get() is None
    with calls.call("order-1"):
        tasks.show_plain.delay()
    assert "antipode-call" not in sent[0]


def test_instrumenting_is_idempotent_and_undoable(sent: list[dict[str, Any]]) -> None:
    """By the name of either side; undone, messages have no header and tasks no call."""
    calls.uninstrument_celery(tasks.app)
    plain = tasks.app.send_task
    for instrument in (calls.instrument_client, calls.instrument_server, calls.instrument_celery):
        assert instrument(tasks.app) is tasks.app
    with calls.call("order-1"):
        tasks.show.delay(1)
        calls.uninstrument_client(tasks.app)
        calls.uninstrument_celery(tasks.app)
        tasks.show.delay(1)
    assert ["antipode-call" in each for each in sent] == [True, False]
    assert tasks.app.send_task == plain
    assert tasks.show.apply([1]).get() is None
    with pytest.raises(ConfigurationError, match="Celery"):
        calls.instrument_celery(object())


def test_a_bad_name_is_refused(
    sent: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    """Before it is published; a task that comes with one runs by its id, which is logged."""
    with pytest.raises(calls.BadName):
        tasks.show.apply_async([1], headers={"antipode-call": "x" * 10_000})
    assert not sent
    ran = tasks.show.apply([1], headers={"antipode-call": "a b"})
    assert ran.get() == f"message:{ran.id}"
    assert "runs by its id" in caplog.text


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
