"""What follows the header of a chord, of any shape, depends on all of it; results are in Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from celery.backends.base import Backend

import antipode
from antipode import Lineage
from antipode.integrations import celery as antipode_celery

from . import _app as tasks
from ._workers import Worker, publishing, worker, writes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import RabbitMQTopology, RedisTopology

pytestmark = [pytest.mark.store("rabbitmq"), pytest.mark.store("redis")]


@pytest.fixture(scope="module")
def _shared(
    tmp_path_factory: pytest.TempPathFactory,
    antipode_rabbitmq: RabbitMQTopology,
    antipode_redis: RedisTopology,
) -> Iterator[Worker]:
    """A worker of one process, with its results in Redis."""
    url = antipode_rabbitmq.url()
    backend = {"ANTIPODE_TEST_BACKEND": f"redis://{antipode_redis.primary}/0"}
    folder = tmp_path_factory.mktemp("celery")
    with publishing(url), worker(folder, url, environment=backend) as started:
        yield started


@pytest.fixture
def one(_shared: Worker) -> Iterator[Worker]:
    """The worker, which has noted nothing yet; this process publishes to it."""
    _shared.forget()
    antipode_celery.instrument()
    yield _shared
    antipode_celery.uninstrument()


@pytest.mark.parametrize("name", sorted(tasks.CANVASES))
def test_whatever_follows_a_header_depends_on_all_of_it(one: Worker, name: str) -> None:
    """The task that writes ends first, and another one publishes what follows."""
    with antipode.scope(Lineage([tasks.post(1)])):
        tasks.start.delay(name)
    for number in tasks.CANVASES[name][1]:
        (after,) = one.wait(f"look-{number}")
        assert (after["writes"], after["incomplete"]) == (writes_of(1, own=(1,)), [])


@pytest.mark.parametrize("name", sorted(tasks.FAILING))
def test_error_callbacks_depend_on_the_task_that_failed(one: Worker, name: str) -> None:
    """It ends first; another one publishes the callbacks of the body, or calls them."""
    if name == "of a group" and not hasattr(Backend, "_handle_group_chord_error"):
        pytest.skip("this release of Celery calls no error callbacks of a group")
    with antipode.scope(Lineage([tasks.post(1)])):
        tasks.start.delay(name)
    (after,) = one.wait("failed")
    assert (after["writes"], after["incomplete"]) == (writes_of(1, own=(1,)), [])
    if name == "called":
        (next_one,) = one.wait("look-60")
        assert (next_one["writes"], next_one["incomplete"]) == (writes_of(1, own=(1,)), [])


def test_error_callbacks_of_a_lost_task_say_what_they_miss(one: Worker) -> None:
    """The worker publishes them: it has the lineage of the message, and not what the task wrote."""
    with antipode.scope(Lineage([tasks.post(1)])):
        tasks.die.apply_async([1], link_error=tasks.failed.s())
    (after,) = one.wait("failed")
    assert (after["writes"], after["incomplete"]) == (writes_of(1), ["celery (in_doubt)"])
