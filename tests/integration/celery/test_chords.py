"""Chords: the body depends on every task of its header, or says that it cannot tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import Lineage
from antipode.integrations import celery as antipode_celery

from . import _app as tasks
from ._workers import publishing, worker, writes_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from antipode_testing import RabbitMQTopology, RedisTopology

pytestmark = pytest.mark.store("rabbitmq")

#: A header of many tasks, which end in any order.
HEADER = tuple(range(1, 13))


@pytest.fixture
def url(antipode_rabbitmq: RabbitMQTopology) -> Iterator[str]:
    """The broker; this process publishes to it."""
    antipode_celery.instrument()
    with publishing(antipode_rabbitmq.url()):
        yield antipode_rabbitmq.url()
    antipode_celery.uninstrument()


@pytest.mark.store("redis")
@pytest.mark.parametrize("order", ["antipode", "propagator,antipode,opentelemetry"])
def test_with_results_in_redis_a_body_depends_on_all_of_its_header(
    tmp_path: Path, url: str, antipode_redis: RedisTopology, order: str
) -> None:
    """Whichever task ends last and publishes the body: what the others wrote is in it."""
    backend = {"ANTIPODE_TEST_BACKEND": f"redis://{antipode_redis.primary}/0"}
    with worker(tmp_path, url, concurrency=3, order=order, environment=backend) as started:
        with antipode.scope(Lineage([tasks.post(1)])):
            tasks.start_chord.delay(list(HEADER), 50)
            tasks.start_chord.delay([20], 51)
        (body,) = started.wait("gather-50")
        (alone,) = started.wait("gather-51")
    assert sorted(body["numbers"]) == list(HEADER)
    assert body["writes"] == writes_of(1, own=HEADER)
    assert alone["writes"] == writes_of(1, own=(20,))
    assert body["incomplete"] == alone["incomplete"] == []


@pytest.mark.parametrize("backend", ["cache+memory://", "file"])
def test_with_results_elsewhere_whatever_follows_says_what_it_misses(
    tmp_path: Path, url: str, backend: str
) -> None:
    """Whether the header's last task publishes it or a task of Celery's own, errors included."""
    (tmp_path / "results").mkdir()
    backend = f"file://{tmp_path / 'results'}" if backend == "file" else backend
    with worker(tmp_path, url, environment={"ANTIPODE_TEST_BACKEND": backend}) as started:
        with antipode.scope(Lineage([tasks.post(1)])):
            for name in ("a chain", "published", "called"):
                tasks.start.delay(name)
        for after in (*started.wait("look-50"), *started.wait("look-51")):
            assert after["incomplete"] == ["celery (in_doubt)"]
        for after in started.wait("failed", 2):
            assert after["incomplete"] == ["celery (in_doubt)"]


def test_with_results_elsewhere_the_body_says_what_it_misses(tmp_path: Path, url: str) -> None:
    """A task of Celery's own publishes the body, and has no lineage of the header."""
    (tmp_path / "results").mkdir()
    backend = {"ANTIPODE_TEST_BACKEND": f"file://{tmp_path / 'results'}"}
    with worker(tmp_path, url, concurrency=2, environment=backend) as started:
        with antipode.scope(Lineage([tasks.post(1)])):
            tasks.start_chord.delay([1, 2, 3], 50)
        (body,) = started.wait("gather-50")
    assert body["writes"] == writes_of(1)
    assert body["incomplete"] == ["celery (in_doubt)"]
