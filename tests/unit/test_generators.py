"""Generators that hold a scope over a ``yield``, and blocks that end out of order."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import pytest
from opentelemetry import context as otel_context

import antipode
from antipode import Lineage, WriteId
from antipode.shim import record_write, scope_in
from antipode.telemetry import Metric, metrics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

HELD = "generator_scope"
OUT_OF_ORDER = "scope_out_of_order"


def write(version: int, datastore: str = "posts") -> None:
    record_write(WriteId(datastore, "log", version))


def counted(name: str, datastore: str = "") -> int:
    return metrics().get(Metric(name, datastore), 0)


def stream(parts: int = 2) -> Iterator[antipode.Lineage]:
    """A streamed answer, whose own writes are in its scope."""
    with antipode.scope():
        for number in range(parts):
            write(number + 1, "own")
            yield antipode.current()


def test_a_write_of_the_caller_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """It enters the generator's scope: counted each time, and logged once with both lines."""
    before = counted(HELD, "posts")
    with antipode.scope() as mine:
        for _ in stream():
            write(7)
        assert mine.lineage == Lineage()
        write(8)
        assert len(mine.lineage) == 1
    assert counted(HELD, "posts") == before + 2
    assert counted(HELD, "own") == 0
    (message,) = [r.getMessage() for r in caplog.records if "generator" in r.getMessage()]
    assert message.count("test_generators.py") == 2


async def test_asynchronous_generators_are_told_alike() -> None:
    """The task that iterates writes between two parts; a task of the generator's does not."""
    before = counted(HELD, "posts")

    async def parts() -> AsyncIterator[int]:
        with antipode.scope():
            await asyncio.create_task(asyncio.to_thread(write, 1))
            yield 1
            await asyncio.sleep(0)
            write(2)
            yield 2

    async for _ in parts():
        write(7)
    assert counted(HELD, "posts") == before + 2


def test_branches_of_a_generator_are_its_own() -> None:
    """A thread that it started works for it while it waits at its yield."""
    before = counted(HELD, "posts")
    go, done = threading.Event(), threading.Event()

    def branch() -> None:
        go.wait(5)
        write(3)
        done.set()

    def parts() -> Iterator[None]:
        with antipode.scope() as held:
            threading.Thread(target=antipode.branch(branch)).start()
            yield
            assert len(held.lineage) == 1

    for _ in parts():
        go.set()
        assert done.wait(5)
    assert counted(HELD, "posts") == before


@contextmanager
def request() -> Iterator[antipode.shim.Scope]:
    with antipode.scope() as held:
        yield held


@asynccontextmanager
async def arequest() -> AsyncIterator[antipode.shim.Scope]:
    with request() as held:
        yield held


@pytest.fixture
def fixture() -> Iterator[antipode.shim.Scope]:
    with antipode.scope() as held:
        yield held


async def test_context_managers_are_meant(fixture: antipode.shim.Scope) -> None:
    """What :mod:`contextlib` makes of a generator, or pytest, holds a scope for its block."""
    before = counted(HELD, "posts")
    with request() as held:
        write(1)
        assert len(held.lineage) == 1
    async with arequest() as held:
        write(2)
        assert len(held.lineage) == 1
    assert counted(HELD, "posts") == before


def test_a_generator_within_context_managers_is_found() -> None:
    """However its scope is opened."""
    before = counted(HELD, "posts")

    def parts() -> Iterator[int]:
        with request():
            yield 1

    def stacked() -> Iterator[int]:
        with ExitStack() as stack:
            stack.enter_context(antipode.scope())
            yield 1

    for each in (parts, stacked):
        for _ in each():
            write(1)
    assert counted(HELD, "posts") == before + 2


def test_blocks_that_end_out_of_order_leave_no_ended_scope(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Two streams that are read in turn: the one that runs on has its scope, and then none has."""
    before = counted(OUT_OF_ORDER)
    start = otel_context.get_current()
    with antipode.scope() as outer:
        first, second = stream(1), stream(2)
        next(first)
        next(second)
        mine = scope_in()
        assert next(first, None) is None
        assert scope_in() is mine
        write(9)
        assert next(second) == Lineage(
            [WriteId("own", "log", 2), WriteId("posts", "log", 9)]
        ).merge(antipode.current())
        assert next(second, None) is None
        assert scope_in() is outer
    assert otel_context.get_current() == start
    assert counted(OUT_OF_ORDER) == before + 1
    assert len([r for r in caplog.records if "a scope ends" in r.getMessage()]) == 1


def test_many_blocks_may_end_before_the_last() -> None:
    """In any order: whoever ends last leaves what was there before all of them."""
    start = otel_context.get_current()
    streams = [stream(1) for _ in range(5)]
    for each in streams:
        next(each)
    for each in (streams[2], streams[0], streams[3], streams[1], streams[4]):
        assert next(each, None) is None
    assert scope_in() is None
    assert otel_context.get_current() == start


def test_what_else_is_current_ends_with_the_block() -> None:
    """A context that was attached within, and never detached, goes with it, as ever."""
    with antipode.scope():
        otel_context.attach(otel_context.set_value("other", 1))
        antipode.root()
    assert scope_in() is None
    assert otel_context.get_value("other") is None
