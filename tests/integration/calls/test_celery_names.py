"""Celery without a broker: which names messages and tasks get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from celery import signals

from antipode import ConfigurationError, calls
from tests.integration.calls import _tasks as tasks
from tests.integration.celery import _app
from tests.integration.celery._workers import publishing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def sent() -> Iterator[list[dict[str, Any]]]:
    """The headers of what is published."""
    found: list[dict[str, Any]] = []

    def look(headers: dict[str, Any], **_: Any) -> None:
        found.append(headers)

    signals.before_task_publish.connect(look)
    yield found
    signals.before_task_publish.disconnect(look)


@pytest.fixture(autouse=True)
def _instrumented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
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


def test_tasks_in_place_are_part_of_their_call() -> None:
    """Run by ``apply()`` within one; alone they are calls."""
    with calls.call("order-1"):
        assert tasks.show.apply([1]).get() == "order-1"
        assert tasks.name() == "order-1"
    alone = tasks.show.apply([1])
    assert alone.get() == f"message:{alone.id}"
    assert tasks.name() is None


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
