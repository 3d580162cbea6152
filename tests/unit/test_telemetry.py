"""Spans and metrics of the barrier's faces, of floors and of lineages, in an SDK in memory."""

from __future__ import annotations

import asyncio
import threading
import time
from itertools import count as count_up
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode

import antipode
from antipode import Lineage, WriteId
from antipode._request import scope as _scope
from antipode._telemetry import telemetry as _telemetry
from antipode.integrations._incoming import Incoming
from antipode.shim import (
    Observation,
    Unreachable,
    count,
    mark_incomplete,
    own_time,
    record_write,
)
from antipode_testing import wait_until
from antipode_testing.contract.base import pass_time
from tests.conftest import antipode_threads
from tests.unit._fake_server import LINEAGE, POST, FakeConnection, FakeServer
from tests.unit._floors import floor_of
from tests.unit._telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode import BarrierResult


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Telemetry]:
    """An SDK in memory that the library uses."""
    telemetry = Telemetry()
    telemetry.install(monkeypatch)
    yield telemetry
    telemetry.close()


@pytest.fixture
def posts() -> FakeServer:
    """A registered store on which nothing is visible yet."""
    server = FakeServer()
    antipode.shim.register(server)
    return server


def by_thread(timeout: float) -> None:
    antipode.barrier(LINEAGE, timeout=timeout, on_unmet="return")


def by_asyncio(timeout: float) -> None:
    asyncio.run(antipode.barrier_async(LINEAGE, timeout=timeout, on_unmet="return"))


def by_callback(timeout: float) -> None:
    ended = threading.Event()
    antipode.barrier_callback(lambda _: ended.set(), LINEAGE, timeout=timeout)
    assert ended.wait(timeout + 5)


FACES = pytest.mark.parametrize("face", [by_thread, by_asyncio, by_callback])


def attributes(span: Any) -> dict[str, Any]:
    return dict(span.attributes)


@FACES
def test_a_barrier_is_a_span(
    face: Callable[[float], None], sdk: Telemetry, posts: FakeServer
) -> None:
    """Each face makes one span, a child of the request's, that says how the barrier ended."""
    posts.position = 7
    with sdk.tracers.get_tracer("app").start_as_current_span("request") as request:
        face(5)
    found = [span for span in sdk.spans if span.name == "antipode.barrier"]
    assert len(found) == 1
    assert found[0].parent is not None
    assert found[0].parent.span_id == request.get_span_context().span_id
    assert found[0].status.status_code is StatusCode.UNSET
    said = attributes(found[0])
    assert said.pop("antipode.waited") >= 0
    assert said == {
        "antipode.status": "ok",
        "antipode.dependencies": 1,
        "antipode.datastores": ("posts",),
    }
    assert sdk.value("antipode.barrier.duration", antipode__status="ok") == 1


@FACES
def test_a_wait_is_a_child_span(
    face: Callable[[float], None], sdk: Telemetry, posts: FakeServer
) -> None:
    """A datastore that kept the barrier waiting has a span and a duration of its own."""

    def show() -> None:
        pass_time(0.05)
        posts.position = 7

    showing = posts.after_a_look(show)
    face(5)
    showing.join()
    wait, barrier = sdk.spans
    assert wait.name == "antipode.wait"
    assert wait.parent is not None
    assert wait.parent.span_id == barrier.context.span_id
    assert attributes(wait) == {
        "antipode.at": "now",
        "antipode.datastore": "posts",
        "antipode.outcome": "visible",
    }
    assert wait.end_time - wait.start_time > 30_000_000
    ((said, point),) = sdk.points("antipode.wait.duration")
    assert said == attributes(wait)
    assert 0.03 < point.sum < 5


@FACES
def test_a_returned_result_is_no_error(
    face: Callable[[float], None], sdk: Telemetry, posts: FakeServer
) -> None:
    """What is unmet and returned is told by attributes; only what is raised is an error."""
    face(0.2)
    wait, barrier = sdk.spans
    assert attributes(wait)["antipode.outcome"] == "not_yet"
    assert barrier.status.status_code is StatusCode.UNSET
    assert attributes(barrier)["antipode.status"] == "barrier_timeout"
    assert attributes(barrier)["antipode.unmet"] == ("posts not_yet",)
    assert "error.type" not in attributes(barrier)
    assert sdk.value("antipode.barrier.duration", antipode__status="barrier_timeout") == 1
    assert sdk.value("antipode.unmet_dependencies", antipode__outcome="not_yet") == 1


def test_a_raised_error_is_the_spans(sdk: Telemetry, posts: FakeServer) -> None:
    """The span of a barrier that raised is an error of the stable code, without any write."""
    with pytest.raises(antipode.BarrierTimeout):
        antipode.barrier(LINEAGE, timeout=0.02)
    barrier = sdk.spans[-1]
    assert barrier.status.status_code is StatusCode.ERROR
    assert attributes(barrier)["error.type"] == "barrier_timeout"
    assert not barrier.events
    assert sdk.value("antipode.barrier.duration", error__type="barrier_timeout") == 1


def test_nothing_tells_a_write(sdk: Telemetry, posts: FakeServer) -> None:
    """Neither spans nor metrics hold a key, a log or a position."""
    secret = Lineage([WriteId("posts", "log-of-secrets", 7_654_321)])
    with pytest.raises(antipode.BarrierTimeout):
        antipode.barrier(secret, timeout=0.02)
    said = "".join(span.to_json() for span in sdk.spans) + str(sdk.metrics())
    assert "secrets" not in said
    assert "7654321" not in said


def test_wrong_arguments_are_errors(sdk: Telemetry) -> None:
    """A barrier that never began to wait is an error of its exception's name."""
    with pytest.raises(ValueError, match="timeout must be"):
        antipode.barrier(LINEAGE, timeout=-1)
    assert attributes(sdk.spans[0]) == {"antipode.status": "ValueError", "error.type": "ValueError"}


def test_a_check_is_its_own_operation(sdk: Telemetry, posts: FakeServer) -> None:
    """A check has spans and durations of its own, and waits for nothing."""
    assert not antipode.check(LINEAGE)
    assert not asyncio.run(antipode.check_async(LINEAGE))
    assert [span.name for span in sdk.spans] == ["antipode.check", "antipode.check"]
    assert sdk.value("antipode.barrier.duration", antipode__operation="check") == 2
    assert not sdk.points("antipode.wait.duration")


def test_the_span_is_current_while_it_waits(sdk: Telemetry, posts: FakeServer) -> None:
    """What the barrier does in the caller's thread are its children; afterwards it is as before."""
    seen: list[trace.Span] = []
    posts.position = 7
    antipode.barrier(LINEAGE, timeout=5)  # Connects, so that the next one looks from here.
    wait_until(lambda: not antipode_threads(), what="the watcher to end", timeout_s=5)
    observe = FakeConnection.observe

    def watching(self: Any, *args: Any, **kwargs: Any) -> Observation:
        seen.append(trace.get_current_span())
        return observe(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.unit._fake_server.FakeConnection.observe", watching)
        antipode.barrier(LINEAGE, timeout=5)
    assert seen[0].get_span_context() == sdk.spans[-1].context
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_a_watchers_looks_are_no_traces(sdk: Telemetry, posts: FakeServer) -> None:
    """Instrumentations of client libraries are told to make no spans of the watchers' looks."""
    seen: list[object] = []
    posts.position = 7
    observe = FakeConnection.observe

    def watching(self: Any, *args: Any, **kwargs: Any) -> Observation:
        seen.append(otel_context.get_value("suppress_instrumentation"))
        return observe(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FakeConnection, "observe", watching)
        antipode.barrier(LINEAGE, timeout=5)
    assert seen == [True]
    assert otel_context.get_value("suppress_instrumentation") is None


def test_a_callback_runs_in_its_callers_context(sdk: Telemetry, posts: FakeServer) -> None:
    """The barrier's span has ended when the callback runs: what that does is the request's."""
    posts.position = 7
    seen: list[trace.Span] = []
    with sdk.tracers.get_tracer("app").start_as_current_span("request") as request:
        antipode.barrier_callback(
            lambda _: seen.append(trace.get_current_span()), LINEAGE, timeout=5
        )
        wait_until(lambda: bool(seen), what="the callback", timeout_s=5)
    assert seen == [request]


async def test_a_cancelled_task_ends_its_span(sdk: Telemetry, posts: FakeServer) -> None:
    """Cancelling is no error of the barrier, and leaves the context as it was."""
    task = asyncio.create_task(antipode.barrier_async(LINEAGE, timeout=30))
    assert await asyncio.to_thread(posts.looked.wait, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (span,) = sdk.spans
    assert attributes(span) == {"antipode.status": "cancelled"}
    assert span.status.status_code is StatusCode.UNSET
    assert sdk.value("antipode.barrier.duration", antipode__status="cancelled") == 1


def test_a_cancelled_callback_ends_its_span(sdk: Telemetry, posts: FakeServer) -> None:
    """A cancelled barrier in the background ends its span in its own thread."""
    handle = antipode.barrier_callback(lambda _: None, LINEAGE, timeout=30)
    assert posts.looked.wait(5)
    handle.cancel()
    wait_until(lambda: bool(sdk.spans), what="the span", timeout_s=5)
    assert attributes(sdk.spans[0]) == {"antipode.status": "cancelled"}


def test_tasks_have_their_own_spans(sdk: Telemetry, posts: FakeServer) -> None:
    """Barriers of concurrent tasks are siblings: none becomes the other's parent."""
    posts.position = 7

    async def both() -> None:
        await asyncio.gather(*(antipode.barrier_async(LINEAGE, timeout=5) for _ in range(3)))

    asyncio.run(both())
    spans = [span for span in sdk.spans if span.name == "antipode.barrier"]
    assert [span.parent for span in spans] == [None, None, None]


def test_a_floor_that_holds_a_read_is_a_wait(sdk: Telemetry) -> None:
    """A read that a floor held back is a wait at the read, until it was visible or gave up."""
    floor = floor_of("posts", POST, timeout_s=0.05)
    with pytest.raises(antipode.BarrierTimeout):
        floor.hold(lambda _: Observation("server-1", {}))
    (span,) = sdk.spans
    assert span.name == "antipode.wait"
    assert attributes(span) == {
        "antipode.at": "read",
        "antipode.datastore": "posts",
        "antipode.outcome": "not_yet",
        "error.type": "barrier_timeout",
    }
    assert span.status.status_code is StatusCode.ERROR
    assert sdk.value("antipode.wait.duration", antipode__at="read") == 1
    assert sdk.value("antipode.unmet_dependencies", antipode__operation="read") == 1


def test_a_read_that_ends_by_a_silent_server_waited_for_that(sdk: Telemetry) -> None:
    """Its wait ended as unreachable; a read after it says for how long both waited."""
    floor = floor_of("posts", POST, timeout_s=0.05)
    with pytest.raises(antipode.BarrierTimeout, match=r"not visible after 0\.(0[5-9]|[1-9])"):
        floor.expire(Unreachable("no reply"))
    (span,) = sdk.spans
    assert attributes(span)["antipode.outcome"] == "unreachable"
    with pytest.raises(antipode.BarrierTimeout, match=r"not visible after 0\.(0[5-9]|[1-9])"):
        floor.hold(lambda _: Observation("server-1", {}))


def test_own_time_is_of_the_request(sdk: Telemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    """One value a request, of what the library's code took; a call within another counts once."""
    monkeypatch.setattr(_scope, "TIMED_EVERY", 1)
    ticks = count_up()
    clock = SimpleNamespace(
        perf_counter=lambda: float(next(ticks)), monotonic=time.monotonic, time_ns=time.time_ns
    )
    monkeypatch.setattr(_telemetry, "time", clock)

    @own_time
    def outer() -> None:
        record_write(WriteId("posts", "log", 2))

    with antipode.scope():
        record_write(WriteId("posts", "log", 1))
        outer()
    with antipode.scope():
        pass  # Whether the next one is timed is known before it begins.
    request = Incoming(None, ["antipode=1"])
    request.answer()
    request.end()
    record_write(WriteId("posts", "log", 3))  # Of no request.
    ((about, point),) = sdk.points("antipode.request.overhead")
    assert about == {}
    assert (point.count, point.sum) == (2, 4)


def test_own_time_is_taken_of_one_request_in_many(sdk: Telemetry) -> None:
    """The others pay for no clock; a request that never ends does not keep its turn."""
    antipode.root()
    for _ in range(3 * _scope.TIMED_EVERY):
        with antipode.scope():
            record_write(WriteId("posts", "log", 1))
    ((_, point),) = sdk.points("antipode.request.overhead")
    assert 1 <= point.count <= 3


def test_counts_are_counters(sdk: Telemetry, posts: FakeServer) -> None:
    """What ``metrics()`` counts, OpenTelemetry counts, by its datastore and kind."""
    record_write(WriteId("posts", "log", 1))
    mark_incomplete("posts", "in_doubt")
    count("uncovered_write", "posts", 3)
    count("baggage_over_limit")
    count("of_another_shim", "posts")
    with antipode.scope():
        antipode.transfer(Lineage())
        antipode.propagation.extract_response({"antipode-lineage": "?"}, service="upload")
    posts.fault = Unreachable("gone")
    antipode.check(LINEAGE)
    assert sdk.points("antipode.unscoped_operations")[0][0] == {
        "antipode.datastore": "posts",
        "antipode.operation": "write",
    }
    assert sdk.value("antipode.incomplete_marks", antipode__datastore="posts") == 1
    assert sdk.value("antipode.uncovered_writes") == 3
    assert sdk.points("antipode.baggage_overflows")[0][0] == {}
    assert sdk.value("antipode.of_another_shim") == 1
    assert sdk.value("antipode.unreadable_lineages", antipode__datastore="upload") == 1
    assert sdk.value("antipode.failed_polls") == 1
    assert sdk.metrics()["antipode.uncovered_writes"].unit == "{write}"


def test_lineages_are_measured_as_they_leave(sdk: Telemetry) -> None:
    """The length and the entries of what goes into baggage, and of what is stored."""
    from antipode.shim import stored_text

    with antipode.scope(LINEAGE) as scope:
        text = scope.text()
    stored = stored_text(LINEAGE.append(WriteId("users", "log", 1)))
    sizes = {said["antipode.carrier"]: p.sum for said, p in sdk.points("antipode.lineage.size")}
    assert sizes == {"baggage": len(text), "stored": len(stored)}
    entries = {
        said["antipode.carrier"]: p.sum for said, p in sdk.points("antipode.lineage.entries")
    }
    assert entries == {"baggage": 1, "stored": 2}


def test_forged_names_make_no_series(sdk: Telemetry, posts: FakeServer) -> None:
    """Lineages from outside cannot make metrics without end; those registered keep their name."""
    forged = Lineage([WriteId(f"forged-{number}", "log", 1) for number in range(200)])
    assert not antipode.barrier(forged, timeout=0.02, on_unmet="return", on_unknown="raise")
    posts.fault = RuntimeError("no")
    assert not antipode.barrier(LINEAGE, timeout=0.02, on_unmet="return")
    names = {said["antipode.datastore"] for said, _ in sdk.points("antipode.unmet_dependencies")}
    assert len(names) == _telemetry.MOST_NAMES + 2
    assert {"posts", "_OTHER"} <= names
    assert sdk.value("antipode.unmet_dependencies") == 201
    assert len(attributes(sdk.spans[0])["antipode.unmet"]) == _telemetry.MOST_LISTED


def test_unsampled_requests_make_no_spans(
    monkeypatch: pytest.MonkeyPatch, posts: FakeServer
) -> None:
    """Metrics count what traces leave out."""
    telemetry = Telemetry(sampler=ALWAYS_OFF)
    telemetry.install(monkeypatch)
    posts.position = 7
    assert antipode.barrier(LINEAGE, timeout=5)
    assert not telemetry.spans
    assert telemetry.value("antipode.barrier.duration") == 1
    telemetry.close()


class Broken:
    """Telemetry that fails whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        msg = "broken"
        raise RuntimeError(msg)


class BrokenSpan(Broken):
    def is_recording(self) -> bool:
        return True


class BrokenTracer:
    def start_span(self, *args: Any, **kwargs: Any) -> BrokenSpan:
        return BrokenSpan()


@pytest.mark.parametrize("tracer", [Broken, BrokenTracer])
@FACES
def test_broken_telemetry_never_reaches_the_application(
    face: Callable[[float], None],
    tracer: Callable[[], Any],
    sdk: Telemetry,
    posts: FakeServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the SDK or an exporter raises, barriers, writes and counts go on."""
    made = _telemetry.instruments()
    for name in ("durations", "waits", "sizes", "entries", "unmet", "meter"):
        monkeypatch.setattr(made, name, Broken())
    monkeypatch.setattr(made, "tracer", tracer())
    before = otel_context.get_current()
    face(0.02)
    posts.position = 7
    face(5)
    count("never_counted_before_at_all", face.__name__)
    with antipode.scope(LINEAGE) as scope:
        assert scope.text()
    assert otel_context.get_current() == before


def test_results_are_untouched(sdk: Telemetry, posts: FakeServer) -> None:
    """A traced barrier returns what it returns untraced, and its functions keep their names."""
    posts.position = 7
    result: BarrierResult = antipode.barrier(LINEAGE, timeout=5)
    assert result.ok
    assert antipode.barrier.__name__ == "barrier"
    assert asyncio.iscoroutinefunction(antipode.barrier_async)
    assert antipode.barrier.__doc__
