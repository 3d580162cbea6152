"""Celery's pools, with every order of the instrumentations: nothing leaks between tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import Lineage
from antipode.integrations import celery as antipode_celery

from . import _app as tasks
from ._workers import ORDERS, publishing, worker, writes_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from antipode_testing import RabbitMQTopology

pytestmark = pytest.mark.store("rabbitmq")


@pytest.fixture
def url(antipode_rabbitmq: RabbitMQTopology) -> Iterator[str]:
    """The broker; this process publishes to it."""
    antipode_celery.instrument()
    with publishing(antipode_rabbitmq.url()):
        yield antipode_rabbitmq.url()
    antipode_celery.uninstrument()


@pytest.mark.parametrize(
    ("pool", "order"),
    [*(("prefork", order) for order in ORDERS), *(("threads", order) for order in ORDERS[::3])],
)
def test_tasks_see_their_message_and_nothing_of_the_task_before(
    tmp_path: Path, url: str, pool: str, order: str
) -> None:
    """One slot handles many tasks in turn; each has what its publisher had, and no more."""
    with worker(tmp_path, url, pool=pool, order=order) as started:
        for number in range(6):
            with antipode.scope(Lineage([tasks.post(number)])):
                (tasks.fail if number % 3 == 2 else tasks.see).delay(number)
        tasks.see.apply_async([6])
        with antipode.scope(Lineage([tasks.post(1)])):
            tasks.retry.delay(10)
        started.wait("retry-10", 3)
        notes = {each["what"]: each for each in started.wait("see-6") and started.notes()}
    for number in range(6):
        name = f"{'fail' if number % 3 == 2 else 'see'}-{number}"
        assert notes[name]["writes"] == writes_of(number)
    assert notes["see-6"]["writes"] == []
    assert notes["see-6"]["scope"]
    assert notes["retry-10-2"]["writes"] == writes_of(1, own=(10, 11))
    seen = [each for name, each in notes.items() if name != "forked"]
    assert len({each["pid"] for each in seen}) == 1
    assert not any(each["incomplete"] for each in seen)
