"""Threads, timers and thread pools as branches of the request that started them."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage, WriteId
from antipode.integrations import threads
from antipode.shim import Scope, scope_in
from antipode_testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def post(number: int) -> WriteId:
    return WriteId("posts", f"p{number}", 1, written_hour=490_000)


@pytest.fixture(autouse=True)
def _instrumented() -> Iterator[None]:
    """Threads are instrumented during a test."""
    threads.instrument()
    yield
    threads.uninstrument()


def running(held: Scope) -> int:
    """How many branches what leaves now says that run."""
    return antipode.deserialize(held.text()).open_branches


def write(number: int) -> int:
    """A job: one write into whatever scope it runs in."""
    antipode.append(post(number))
    return number


class Held:
    """A job that runs until it is released."""

    def __init__(self) -> None:
        self.began, self.go = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.began.set()
        assert self.go.wait(10)
        write(1)


class Subclass(threading.Thread):
    """A thread with a ``run`` of its own, which calls no other."""

    def run(self) -> None:
        write(2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: threading.Thread(target=write, args=(2,)),
        lambda: threading.Timer(0, write, (2,)),
        Subclass,
    ],
    ids=["thread", "timer", "subclass"],
)
def test_a_thread_writes_into_the_scope_that_started_it(
    make: Callable[[], threading.Thread],
) -> None:
    """Joined before the answer it leaves nothing behind but its writes."""
    with antipode.scope() as held:
        thread = make()
        thread.start()
        thread.join()
        assert held.lineage == Lineage([post(2)])
        assert running(held) == 0
    assert "run" not in vars(thread)


def test_a_thread_that_runs_on_is_an_open_branch() -> None:
    """The answer says so, and the write that comes later is in the scope all the same."""
    job = Held()
    with antipode.scope() as held:
        thread = threading.Thread(target=job)
        thread.start()
        answer = antipode.deserialize(held.answer())
    assert answer.open_branches == 1
    job.go.set()
    thread.join()
    assert held.lineage == Lineage([post(1)])


def test_a_timer_that_is_cancelled_is_over() -> None:
    """It ends without a call of its function."""
    with antipode.scope() as held:
        timer = threading.Timer(60, write, (1,))
        timer.start()
        assert running(held) == 1
        timer.cancel()
        timer.join()
        assert running(held) == 0


def test_a_thread_that_cannot_start_is_no_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the application's; started twice is an error as ever."""

    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("can't start new thread")

    with antipode.scope() as held:
        thread = threading.Thread(target=write, args=(1,))
        name = "_start_new_thread" if hasattr(threading, "_start_new_thread") else ""
        name = name or "_start_joinable_thread"
        with monkeypatch.context() as patched:
            patched.setattr(threading, name, refuse)
            with pytest.raises(RuntimeError, match="new thread"):
                thread.start()
        assert running(held) == 0
        assert "run" not in vars(thread)
        other = threading.Thread(target=write, args=(1,))
        other.start()
        with pytest.raises(RuntimeError, match="once"):
            other.start()
        other.join()
        assert running(held) == 0


def test_threads_of_libraries_are_no_branches_and_have_no_scope() -> None:
    """A reporter's thread that a request happens to start serves the process."""
    seen: list[Scope | None] = []

    def serve() -> None:
        seen.append(scope_in())

    serve.__module__ = "reporter.threads"
    threads.instrument(services=["reporter"])
    with antipode.scope() as held:
        thread = threading.Thread(target=serve)
        thread.start()
        assert running(held) == 0
        thread.join()
    assert seen == [None]


def test_outside_of_a_scope_nothing_changes() -> None:
    """No scope, no branch, no wrapper."""
    thread = threading.Thread(target=write, args=(1,))
    thread.start()
    thread.join()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(scope_in).result() is None


def test_jobs_of_one_pool_thread_keep_to_their_requests() -> None:
    """Two requests and none at all share a thread; each job has its own scope or none."""
    with ThreadPoolExecutor(1) as pool:
        for number in range(3):
            with antipode.scope() as held:
                assert pool.submit(write, number).result() == number
                assert held.lineage == Lineage([post(number)])
                assert running(held) == 0
            assert pool.submit(scope_in).result() is None


def test_map_is_made_of_branches() -> None:
    """All of them are over when the results are there."""
    with ThreadPoolExecutor(4) as pool, antipode.scope() as held:
        assert list(pool.map(write, range(50))) == list(range(50))
        assert len(held.lineage) == 50
        assert running(held) == 0


def test_a_job_that_was_not_awaited_shows_in_the_answer() -> None:
    """Open until it ends, whether it runs or waits for a thread."""
    job = Held()
    with ThreadPoolExecutor(1) as pool:
        with antipode.scope() as held:
            pool.submit(job)
            pool.submit(write, 2)
            assert antipode.deserialize(held.answer()).open_branches == 2
        job.go.set()
    assert running(held) == 0
    assert held.lineage == Lineage([post(1), post(2)])


def test_a_cancelled_job_is_over() -> None:
    """By ``cancel`` and by ``shutdown(cancel_futures=True)``."""
    job = Held()
    pool = ThreadPoolExecutor(1)
    with antipode.scope() as held:
        pool.submit(job)
        assert job.began.wait(10)
        waiting, another = pool.submit(write, 2), pool.submit(write, 3)
        assert running(held) == 3
        assert waiting.cancel()
        assert running(held) == 2
        pool.shutdown(wait=False, cancel_futures=True)
        assert running(held) == 1
        job.go.set()
        pool.shutdown()
        assert running(held) == 0
        with pytest.raises(CancelledError):
            another.result()
        assert held.lineage == Lineage([post(1)])


def test_a_pool_that_takes_no_jobs_leaves_no_branch() -> None:
    """Shut down, or broken by its initializer."""

    def refuse() -> None:
        raise LookupError

    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    broken = ThreadPoolExecutor(1, initializer=refuse)
    with antipode.scope() as held:
        with pytest.raises(RuntimeError):
            pool.submit(write, 1)
        with pytest.raises(RuntimeError):  # BrokenThreadPool
            broken.submit(write, 1).result()
        wait_until(lambda: running(held) == 0, what="the branch to end", timeout_s=5)
        assert held.lineage.incomplete == frozenset()
    broken.shutdown()


def test_jobs_of_other_interpreters_are_counted_and_left_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are pickled, which a branch cannot be; the scope stays in this interpreter."""
    from concurrent import futures

    class Elsewhere(ThreadPoolExecutor):
        """Stands for the pool of Python 3.14."""

    monkeypatch.setattr(futures, "InterpreterPoolExecutor", Elsewhere, raising=False)
    job = Held()
    with Elsewhere(1) as pool, antipode.scope() as held:
        future = pool.submit(job)
        assert job.began.wait(10)
        assert running(held) == 1
        job.go.set()
        future.result()
        wait_until(lambda: running(held) == 0, what="the branch to end", timeout_s=5)
        assert pool.submit(scope_in).result() is None
        assert held.lineage == Lineage()


def test_exceptions_of_jobs_are_as_ever() -> None:
    """The future has them, and the branch is over."""

    def fail() -> None:
        write(1)
        raise LookupError("x")

    with ThreadPoolExecutor(1) as pool, antipode.scope() as held:
        future: Future[None] = pool.submit(fail)
        with pytest.raises(LookupError, match="x"):
            future.result()
        assert running(held) == 0
        assert held.lineage == Lineage([post(1)])


def test_instrumenting_is_idempotent_and_undoable() -> None:
    """Twice is once, and undone is as it was."""
    threads.uninstrument()
    plain = threading.Thread.start, ThreadPoolExecutor.submit
    threads.instrument()
    once = threading.Thread.start, ThreadPoolExecutor.submit
    threads.instrument()
    assert (threading.Thread.start, ThreadPoolExecutor.submit) == once != plain
    threads.uninstrument()
    threads.uninstrument()
    assert (threading.Thread.start, ThreadPoolExecutor.submit) == plain


def test_undone_beneath_another_wrapper_it_passes_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever wrapped ours keeps working; ours comes back without a second one."""
    import functools

    ours = threading.Thread.start

    @functools.wraps(ours)
    def theirs(self: threading.Thread) -> None:
        ours(self)

    monkeypatch.setattr(threading.Thread, "start", theirs)
    threads.uninstrument()
    with antipode.scope() as held:
        thread = threading.Thread(target=write, args=(1,))
        thread.start()
        thread.join()
        assert held.lineage == Lineage()
        threads.instrument()
        assert threading.Thread.start is theirs
        thread = threading.Thread(target=write, args=(1,))
        thread.start()
        thread.join()
        assert held.lineage == Lineage([post(1)])


def test_scopes_are_collected_when_their_branches_are_over() -> None:
    """Neither the pool's threads nor the futures keep them."""
    with ThreadPoolExecutor(2) as pool:
        with antipode.scope() as held:
            futures = [pool.submit(write, n) for n in range(4)]
            thread = threading.Thread(target=write, args=(9,))
            thread.start()
            thread.join()
            for future in futures:
                future.result()
            gone = weakref.ref(held)
        del held

        def collected() -> bool:
            gc.collect()
            return gone() is None

        wait_until(collected, what="the scope to be collected", timeout_s=5)
        assert len(futures) == 4
