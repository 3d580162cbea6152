"""Traces and metrics of a request over a real replicator: what waited, where, and for how long."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode_shims import embedded
from tests.unit._telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_shims.embedded import EmbeddedShim

LAG_MS = 60


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Telemetry]:
    """An SDK in memory that the library uses."""
    telemetry = Telemetry()
    telemetry.install(monkeypatch)
    yield telemetry
    telemetry.close()


@pytest.fixture
def reader(antipode_embedded: Any) -> Iterator[EmbeddedShim]:
    """A shim of a replica that lags behind, in a scope that depends on what is not there yet."""
    writer = embedded.shim("posts", antipode_embedded.primary, reads_from="primary")
    near = embedded.shim("posts", antipode_embedded.replica, reads_from="replica")
    antipode_embedded.pause()
    with antipode.scope(), writer, near:
        writer.write("post-1", b"hello")
        yield near


@pytest.fixture
def show_later(antipode_embedded: Any) -> Iterator[Callable[[], None]]:
    """Begins the lag after which the replica shows it; a busy machine spends none of it before."""
    timer = threading.Timer(LAG_MS / 1000, antipode_embedded.resume)
    yield timer.start
    timer.join()


def read(shim: EmbeddedShim) -> bytes | None:
    return shim.read("post-1")[0]


def read_async(shim: EmbeddedShim) -> bytes | None:
    return asyncio.run(shim.read_async("post-1"))[0]


@pytest.mark.usefixtures("reader")
def test_a_barrier_that_waits(sdk: Telemetry, show_later: Callable[[], None]) -> None:
    """The wait at the replica lasts about its lag, and lies within the barrier's span."""
    show_later()
    antipode.barrier(timeout=10)
    wait, barrier = sdk.spans
    assert barrier.start_time <= wait.start_time <= wait.end_time <= barrier.end_time
    assert wait.end_time - wait.start_time > LAG_MS / 2 * 1e6
    assert dict(wait.attributes or {})["antipode.datastore"] == "posts"
    assert sdk.value("antipode.polls", antipode__datastore="posts") >= 1
    assert sdk.value("antipode.unscoped_operations") == 0


@pytest.mark.parametrize("face", [read, read_async])
def test_a_read_that_is_held_back(
    face: Callable[[EmbeddedShim], bytes | None],
    sdk: Telemetry,
    reader: EmbeddedShim,
    show_later: Callable[[], None],
) -> None:
    """With ``at="read"`` the barrier takes no time; the wait is below whoever reads."""
    antipode.barrier(timeout=10, at="read")
    with sdk.tracers.get_tracer("app").start_as_current_span("show post") as request:
        show_later()
        assert face(reader) == b"hello"
    barrier, wait, _ = sdk.spans
    assert (barrier.name, wait.name) == ("antipode.barrier", "antipode.wait")
    assert wait.parent == request.get_span_context()
    assert dict(wait.attributes or {}) == {
        "antipode.at": "read",
        "antipode.datastore": "posts",
        "antipode.outcome": "visible",
    }
    assert barrier.end_time - barrier.start_time < wait.end_time - wait.start_time
    assert sdk.value("antipode.wait.duration", antipode__at="read") == 1


def test_a_read_that_gives_up(sdk: Telemetry, reader: EmbeddedShim) -> None:
    """A read whose floor was not met in time is counted, and its wait says why."""
    antipode.barrier(timeout=0.05, at="read")
    with pytest.raises(antipode.BarrierTimeout):
        read(reader)
    assert dict(sdk.spans[-1].attributes or {})["antipode.outcome"] == "not_yet"
    assert (
        sdk.value(
            "antipode.unmet_dependencies",
            antipode__operation="read",
            antipode__datastore="posts",
            antipode__outcome="not_yet",
        )
        == 1
    )
