"""Tasks that go back to their queue until what they depend on is visible, in real workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from kombu import Queue

import antipode
from antipode import BarrierTimeout, ConfigurationError, Lineage, UnmetError, WriteId
from antipode.integrations import celery as antipode_celery
from antipode.integrations.celery import when_visible
from antipode_shims import embedded
from antipode_testing import wait_until
from tests._lines import records_in

from . import _app as tasks
from ._workers import TIMEOUT_S, publishing, worker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from antipode_testing import RabbitMQTopology

pytestmark = pytest.mark.store("rabbitmq")

FOLLOWERS = 400
SLOTS = 4


@pytest.fixture
def url(antipode_rabbitmq: RabbitMQTopology) -> Iterator[str]:
    """The broker; this process publishes to it."""
    antipode_celery.instrument()
    with publishing(antipode_rabbitmq.url()):
        yield antipode_rabbitmq.url()
    antipode_celery.uninstrument()


@pytest.fixture
def posts(tmp_path: Path) -> Iterator[embedded.Replicator]:
    """Posts in two regions: what is written in one reaches the other once it is started."""
    with embedded.EmbeddedStore(tmp_path / "us.db", create="primary"):
        pass
    replicator = embedded.Replicator(tmp_path / "us.db", tmp_path / "eu.db")
    replicator.pause()
    with replicator:
        yield replicator


def write_post(folder: Path) -> Lineage:
    """A post, written in the region that does not read."""
    with antipode.scope():
        shim = embedded.shim("posts", folder / "us.db", reads_from="primary")
        lineage = shim.write("post", b"hello")
        antipode.shim.unregister("posts")
        shim.close()
        return lineage


def dead_letter(timeout_s: float = TIMEOUT_S) -> Any:
    """The message that was given up."""
    found: list[Any] = []
    with tasks.app.connection_for_read() as connection:
        queue = Queue(tasks.DEAD)(connection.default_channel)
        queue.declare()

        def there() -> bool:
            message = queue.get(no_ack=True)
            if message is not None:
                found.append(message)
            return bool(found)

        wait_until(there, what="the dead letter", timeout_s=timeout_s, interval_s=0.05)
    return found[0]


def declare_dead() -> None:
    """The queue of what is given up."""
    with tasks.app.connection_for_write() as connection:
        Queue(tasks.DEAD)(connection.default_channel).declare()


def test_waiting_tasks_do_not_starve_what_they_wait_for(
    tmp_path: Path, url: str, posts: embedded.Replicator
) -> None:
    """400 tasks depend on a promise that a task behind them keeps: 4 slots do them all."""
    posts.resume()
    with antipode.scope():
        promised = antipode.promise("posts", expires_in_s=600)
        for number in range(FOLLOWERS):
            tasks.follow.delay(number)
        tasks.keep.delay(promised.token)
    with worker(tmp_path, url, pool="threads", concurrency=SLOTS) as started:
        notes = started.wait("follow-", FOLLOWERS, timeout_s=100)
        kept = started.wait("keep")
    assert len(kept) == 1
    assert len({each["what"] for each in notes}) == len(notes) == FOLLOWERS
    assert {each["value"] for each in notes} == {"kept"}
    assert {each["retries"] for each in notes} == {0}


def test_a_task_runs_once_what_it_reads_is_there(
    tmp_path: Path, url: str, posts: embedded.Replicator
) -> None:
    """Deferred in worker processes while the replica lags; then it reads what it depends on."""
    lineage = write_post(tmp_path)
    with worker(tmp_path, url, concurrency=2) as started:
        with antipode.scope(lineage):
            tasks.follow.delay(1)
        wait_until(lambda: "Retry in" in started.log, what="a retry", timeout_s=TIMEOUT_S)
        assert not started.notes("follow")
        posts.resume()
        (seen,) = started.wait("follow-1")
    assert seen["value"] == "hello"


def test_after_its_attempts_a_task_is_a_dead_letter_with_its_first_lineage(
    tmp_path: Path, url: str, posts: embedded.Replicator
) -> None:
    """The error names the outcomes; the message has the header that it was published with.

    Although this worker bounds lineages more tightly than the publisher did.
    """
    lineage = write_post(tmp_path)
    lineage = lineage.merge(Lineage([WriteId(f"store-{n}", "k", 1, 498_669) for n in range(9)]))
    declare_dead()
    tight = {"ANTIPODE_TEST_ATTEMPTS": "3", "ANTIPODE_MAX_LINEAGE_BYTES": "64"}
    with worker(tmp_path, url, environment=tight) as started:
        with antipode.scope(lineage):
            header = f"antipode={antipode.serialize()}"
            tasks.follow.delay(1)
        message = dead_letter()
        wait_until(lambda: "given up" in started.log, what="the log", timeout_s=TIMEOUT_S)
    assert message.headers["baggage"] == header
    assert message.headers["antipode-deferred"] == 2
    assert "BarrierTimeout" in started.log
    assert "given up after 3 attempts" in started.log
    assert "not_yet" in started.log
    assert not started.notes("follow")


def test_what_can_never_be_visible_fails_at_once(
    tmp_path: Path, url: str, posts: embedded.Replicator
) -> None:
    """A log that the store does not know: no attempt is spent on waiting."""
    write_post(tmp_path)
    posts.resume()
    replica = embedded.EmbeddedStore(tmp_path / "eu.db")
    wait_until(lambda: replica.get("post") is not None, what="the post", timeout_s=TIMEOUT_S)
    replica.close()
    declare_dead()
    with worker(tmp_path, url) as started:
        with antipode.scope(Lineage([WriteId("posts", "another-history", 7)])):
            tasks.follow.delay(1)
        message = dead_letter()
    assert "antipode-deferred" not in message.headers
    assert "unknown_log" in started.log


def test_run_in_place_a_task_waits_as_a_barrier(
    tmp_path: Path, posts: embedded.Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eagerly or as a plain function: there is no queue to go back to."""
    monkeypatch.setattr(tasks, "FOLDER", tmp_path)
    lineage = write_post(tmp_path)
    tasks.use_posts()
    antipode_celery.instrument()
    antipode.configure(max_timeout=0.2)
    with antipode.scope(lineage):
        with pytest.raises(BarrierTimeout):
            tasks.follow.apply([1]).get()
        antipode.configure(max_timeout=20)
        posts.resume()
        tasks.follow.apply([1]).get()
        tasks.follow(2)
    antipode_celery.uninstrument()
    for shim in tasks._shims.values():
        shim.close()
    assert [note["value"] for note in records_in(tmp_path / "notes")] == ["hello", "hello"]


def test_the_arguments_of_a_task_are_still_checked() -> None:
    """The decorator shows Celery the function's own signature."""
    with pytest.raises(TypeError, match="number"):
        tasks.follow.delay()
    assert tasks.follow.name == "tests.integration.celery._app.follow"


@pytest.mark.parametrize(
    "terms", [{"max_attempts": 0}, {"delay_s": (0.0, 1.0)}, {"delay_s": (2.0, 1.0)}], ids=str
)
def test_terms_out_of_range_are_refused(terms: dict[str, Any]) -> None:
    """Where the task is defined, not when it runs."""
    with pytest.raises(ConfigurationError):
        when_visible(**terms)


def test_the_error_of_a_task_keeps_its_result() -> None:
    """It crosses from worker processes to their parent."""
    import pickle

    with antipode.scope(Lineage([WriteId("posts", "k", 1)])), pytest.raises(UnmetError) as raised:
        antipode.barrier(timeout=0.1)
    assert pickle.loads(pickle.dumps(raised.value)).result == raised.value.result  # noqa: S301 - ours
