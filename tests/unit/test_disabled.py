"""``ANTIPODE_DISABLED=true``: a process is as it would be without the library."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading

import pytest
from opentelemetry import context as otel_context
from opentelemetry.baggage.propagation import W3CBaggagePropagator

import antipode
from antipode import Lineage, WriteId
from antipode._runtime import observers, switch
from antipode.propagation import AntipodeBaggagePropagator
from antipode.shim import record_write, scope_in
from tests.unit._fake_server import LINEAGE, FakeServer


@pytest.fixture(autouse=True)
def disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process is that was started with it."""
    monkeypatch.setattr(switch, "disabled", True)


def test_barriers_return_at_once() -> None:
    """With nothing in their results, whatever they are asked, and wherever."""
    posts = FakeServer()
    antipode.shim.register(posts)
    done = threading.Event()
    assert antipode.barrier(timeout=9).outcomes == ()
    assert antipode.barrier(LINEAGE, timeout=9, at="read")
    assert antipode.barrier("no lineage", timeout=9)
    assert antipode.barrier(Lineage(incomplete=[("posts", "in_doubt")]), timeout=9)
    assert antipode.check(LINEAGE)
    assert asyncio.run(antipode.barrier_async(LINEAGE, timeout=9))
    assert asyncio.run(antipode.check_async())
    antipode.barrier_callback(lambda result: result and done.set(), LINEAGE, timeout=9)
    assert done.wait(9)
    assert posts.looks_made == posts.opened == 0


def test_routers_read_at_the_replica() -> None:
    """Though no client is instrumented: that is what a router without the library does."""
    assert antipode.reads_from("posts") == "replica"
    assert asyncio.run(antipode.reads_from_async("posts")) == "replica"


def test_nothing_is_in_any_context() -> None:
    """A scope can be opened, and what runs in it sends, joins and counts nothing."""
    antipode.configure(on_unscoped="raise")
    with antipode.scope(LINEAGE) as held:
        assert held.lineage == LINEAGE
        assert scope_in() is None
        assert otel_context.get_current() == {}
        record_write(WriteId("posts", "log", 8))
        antipode.append(WriteId("posts", "log", 8))
        headers: dict[str, str] = {}
        antipode.propagation.inject_response(headers)
        W3CBaggagePropagator().inject(headers)
        assert headers == {}
        assert antipode.current() == Lineage()
    antipode.root()
    antipode.stop()
    assert antipode.branch(print) is print


def test_the_entry_point_is_plain_baggage() -> None:
    """``OTEL_PROPAGATORS=tracecontext,antipode`` passes on what comes, as any service does."""
    sent = {"baggage": "antipode=1posts.log.7,user=7", "antipode-sent": "1"}
    ours, plain = AntipodeBaggagePropagator(), W3CBaggagePropagator()
    context = ours.extract(sent)
    assert list(context.values()) == list(plain.extract(sent).values())
    again: dict[str, str] = {}
    ours.inject(again, context)
    assert again["baggage"] == "antipode=1posts.log.7,user=7"


def test_no_dry_run_begins() -> None:
    """Whatever mode is set besides."""
    antipode.configure(mode="dry-run")
    assert observers.dry_run is None


@pytest.mark.parametrize(
    ("text", "expected", "warns"),
    [
        ("true", True, False),
        (" TRUE ", True, False),
        ("false", False, False),
        ("", False, False),
        ("1", False, True),
        ("yes", False, True),
    ],
)
def test_only_true_disables(
    *, text: str, expected: bool, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """As for ``OTEL_SDK_DISABLED``: what is neither is said, and disables nothing."""
    with caplog.at_level(logging.WARNING, "antipode"):
        assert switch.is_set(text) is expected
    assert bool(caplog.records) is warns


def test_the_environment_is_read_as_the_process_starts() -> None:
    """The variable, and nothing in the code, decides."""
    program = "import antipode; print(antipode.barrier('?', timeout=9).ok)"
    environment = {**os.environ, "ANTIPODE_DISABLED": "true"}
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True"]
