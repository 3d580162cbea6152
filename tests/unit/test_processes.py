"""Jobs of process pools: the lineage goes into the child, and what it added comes back."""

from __future__ import annotations

import gc
import multiprocessing
import os
import weakref
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage, WriteId
from antipode.integrations import processes
from antipode.shim import Scope, scope_in
from antipode_testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
CAUSE = WriteId("users", "u", 1, written_hour=490_000)
IN_DOUBT = Lineage(incomplete=[("process-pool", "in_doubt")])
METHODS = ["fork", "spawn", "forkserver"]


def post(number: int) -> WriteId:
    return WriteId("posts", f"p{number}", 1, written_hour=490_000)


def write(number: int) -> tuple[int, list[str]]:
    """A job: what it depends on, and a write."""
    seen = sorted(map(str, antipode.current()))
    antipode.append(post(number))
    return number, seen


class Refused(Exception):  # noqa: N818 - a test's
    """An error with arguments of its own."""


class Rebuilt(Exception):  # noqa: N818 - a test's
    """An error that pickles in its own way."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")
        self.parts = (one, two)

    def __reduce__(self) -> tuple[Any, ...]:
        return Rebuilt, self.parts


def refuse() -> None:
    antipode.append(post(1))
    raise Refused("x", 3)


def refuse_rebuilt() -> None:
    antipode.append(post(1))
    raise Rebuilt(1, 2)


def exit_at_once() -> None:
    antipode.append(post(1))
    os._exit(3)


def return_what_cannot_be_pickled() -> Callable[[], None]:
    antipode.append(post(1))
    return lambda: None


def wait_for(path: str) -> None:
    wait_until(lambda: os.path.exists(path), what="the file", timeout_s=20)  # noqa: PTH110 - a job


def nested(number: int) -> int:
    """A job that submits another one to a pool of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(write, number).result()
    return len(antipode.current())


def unscoped() -> bool:
    return scope_in() is None


def running(held: Scope) -> int:
    """How many branches what leaves now says that run."""
    return antipode.deserialize(held.text()).open_branches


@pytest.fixture(autouse=True)
def _instrumented() -> Iterator[None]:
    """Process pools are instrumented during a test, and no job is left over."""
    processes.instrument()
    yield
    processes.uninstrument()
    assert not processes._jobs


@pytest.fixture(params=METHODS)
def pool(request: pytest.FixtureRequest) -> Iterator[ProcessPoolExecutor]:
    """A pool of one process, for each way of starting it."""
    context = multiprocessing.get_context(request.param)
    with ProcessPoolExecutor(1, mp_context=context) as one:
        yield one


def test_a_job_has_the_lineage_and_its_writes_come_back(pool: ProcessPoolExecutor) -> None:
    """With the result itself: who has it depends on them already."""
    with antipode.scope(Lineage([CAUSE])) as held:
        future = pool.submit(write, 1)
        assert future.result() == (1, ["users:u@1"])
        assert held.lineage == Lineage([CAUSE, post(1)])
        assert running(held) == 0


def test_jobs_of_one_child_keep_to_their_requests(pool: ProcessPoolExecutor) -> None:
    """The child that one request had forked has nothing of it for the next, nor for none."""
    for number in range(3):
        with antipode.scope() as held:
            assert pool.submit(write, number).result() == (number, [])
            assert held.lineage == Lineage([post(number)])
        assert pool.submit(unscoped).result()


def test_map_is_made_of_branches(pool: ProcessPoolExecutor) -> None:
    """In chunks too: all writes are there when the results are, and none of it still runs."""
    with antipode.scope() as held:
        results = list(pool.map(write, range(20), chunksize=3))
        assert [number for number, _ in results] == list(range(20))
        assert len(held.lineage) == 20
        assert held.lineage.open_branches == 0 == running(held)


@pytest.mark.parametrize("job", [refuse, refuse_rebuilt])
def test_the_error_of_a_job_is_as_ever_and_brings_its_lineage(
    pool: ProcessPoolExecutor, job: Callable[[], None]
) -> None:
    """Class, arguments and the child's traceback stay; what was written before is known."""
    with antipode.scope() as held:
        with pytest.raises((Refused, Rebuilt)) as raised:
            pool.submit(job).result()
        assert held.lineage == Lineage([post(1)])
        assert running(held) == 0
    error = raised.value
    assert error.args == (("x", 3) if job is refuse else ("1 and 2",))
    assert "__reduce_ex__" not in vars(error)
    assert f"in {job.__name__}" in str(error.__cause__)


def test_a_child_that_dies_leaves_its_job_in_doubt(pool: ProcessPoolExecutor) -> None:
    """It may have written: whoever sees the error has the mark already."""
    with antipode.scope() as held:
        with pytest.raises(BrokenProcessPool):
            pool.submit(exit_at_once).result()
        assert held.lineage == IN_DOUBT
        assert running(held) == 0


def test_a_result_that_cannot_be_pickled_leaves_its_job_in_doubt(
    pool: ProcessPoolExecutor,
) -> None:
    """The job ran, and its lineage was lost with its result."""
    with antipode.scope() as held:
        with pytest.raises((AttributeError, TypeError, PicklingError)):
            pool.submit(return_what_cannot_be_pickled).result()
        assert held.lineage == IN_DOUBT


def test_a_job_that_cannot_be_sent_leaves_no_mark(pool: ProcessPoolExecutor) -> None:
    """It certainly did not run."""
    with antipode.scope() as held:
        with pytest.raises((AttributeError, TypeError, PicklingError)):
            pool.submit(write, lambda: 1).result()
        wait_until(lambda: running(held) == 0, what="the branch to end", timeout_s=5)
        assert held.lineage == Lineage()


def test_a_cancelled_job_leaves_no_mark(pool: ProcessPoolExecutor, tmp_path: Any) -> None:
    """One that waits in the queue never ran."""
    released = tmp_path / "go"
    with antipode.scope() as held:
        futures = [pool.submit(wait_for, str(released)) for _ in range(3)]
        last = pool.submit(write, 1)
        assert last.cancel()
        assert running(held) == 3
        released.touch()
        for future in futures:
            future.result()
        assert running(held) == 0
        assert held.lineage == Lineage()


def test_a_result_after_the_request_enters_nothing(
    pool: ProcessPoolExecutor, tmp_path: Any
) -> None:
    """It is counted: the response has gone, and said that a branch was running."""
    released = tmp_path / "go"
    before = antipode.telemetry.metrics().get(
        antipode.telemetry.Metric("late_response", "process-pool"), 0
    )
    with antipode.scope() as held:
        future = pool.submit(wait_for, str(released))
        assert antipode.deserialize(held.answer()).open_branches == 1
    released.touch()
    future.result()
    assert held.lineage == Lineage()
    assert (
        antipode.telemetry.metrics()[antipode.telemetry.Metric("late_response", "process-pool")]
        == before + 1
    )


def test_a_pool_that_takes_no_jobs_leaves_no_branch() -> None:
    """The error is the application's."""
    pool = ProcessPoolExecutor(1)
    pool.shutdown()
    with antipode.scope() as held:
        with pytest.raises(RuntimeError):
            pool.submit(write, 1)
        assert held.lineage == Lineage()
        assert running(held) == 0


def test_jobs_of_jobs_bring_their_lineages(pool: ProcessPoolExecutor) -> None:
    """A child that has a pool of its own passes on what that pool's jobs wrote, if it is on."""
    with antipode.scope(Lineage([CAUSE])) as held:
        found = pool.submit(nested, 1).result()
        inherited = pool._mp_context.get_start_method() == "fork"  # type: ignore[attr-defined]
        assert found == (2 if inherited else 1)
        assert held.lineage == Lineage([CAUSE, post(1)] if inherited else [CAUSE])


def test_children_of_other_pools_have_no_scope() -> None:
    """A pool made in a request serves the process: no job has a copy of that request's scope."""
    with antipode.scope():
        other = multiprocessing.get_context("fork").Pool(1)
    assert other.apply(unscoped)
    other.close()
    other.join()


def test_instrumenting_is_idempotent_and_undoable() -> None:
    """Twice is once, and undone is as it was."""
    processes.uninstrument()
    plain = ProcessPoolExecutor.submit
    processes.instrument()
    once = ProcessPoolExecutor.submit
    processes.instrument()
    assert ProcessPoolExecutor.submit is once is not plain
    processes.uninstrument()
    processes.uninstrument()
    assert ProcessPoolExecutor.submit is plain


def test_scopes_are_collected_when_their_jobs_are_over(pool: ProcessPoolExecutor) -> None:
    """Futures that somebody still holds do not keep them."""
    with antipode.scope() as held:
        future = pool.submit(write, 1)
        future.result()
        gone = weakref.ref(held)
    del held

    def collected() -> bool:
        gc.collect()
        return gone() is None

    wait_until(collected, what="the scope to be collected", timeout_s=5)
    assert future.done()
