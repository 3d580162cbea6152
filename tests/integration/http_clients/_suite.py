"""What the tests of HTTP clients share: each client, with every order of instrumentations."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from opentelemetry.instrumentation.utils import suppress_instrumentation

import antipode
from antipode.integrations._outgoing import forget_services

from ._drivers import DRIVERS, Driver
from ._origin import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

#: How OpenTelemetry's instrumentation of the client stands to ours.
ORDERS = ("absent", "before", "after", "excluded", "suppressed")


@contextlib.contextmanager
def instrumented(driver: Driver, order: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both instrumentations of all clients, in *order*; everything is undone."""
    theirs = driver.instrumentor()  # That of requests reads its variable when it is imported.
    if order == "excluded":
        monkeypatch.setenv(f"OTEL_PYTHON_{driver.otel[2]}_EXCLUDED_URLS", ".*")
    with contextlib.ExitStack() as undo:
        if order == "after":
            driver.ours.instrument()
        if order != "absent":
            theirs.instrument(**_options(order))
            undo.callback(theirs.uninstrument)
        driver.ours.instrument()
        undo.callback(driver.ours.uninstrument)
        if order == "suppressed":
            undo.enter_context(suppress_instrumentation())
        yield


def _options(order: str) -> dict[str, str]:
    """What does the same as the variable, for requests."""
    return {"excluded_urls": ".*"} if order == "excluded" else {}


@contextlib.contextmanager
def serving(host: str = "127.0.0.1") -> Iterator[Origin]:
    """A server of its own; what this process knows of services is forgotten after it."""
    origin = Origin(host)
    try:
        yield origin
    finally:
        origin.close()
        forget_services()


@pytest.fixture
def origin() -> Iterator[Origin]:
    """A server."""
    with serving() as one:
        yield one


@pytest.fixture(params=sorted(DRIVERS))
def driver(request: pytest.FixtureRequest) -> Driver:
    """Each client."""
    return DRIVERS[request.param]


@pytest.fixture(params=ORDERS)
def order(
    request: pytest.FixtureRequest, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Each client, instrumented, with OpenTelemetry's instrumentation in each order."""
    antipode.instrument()
    with instrumented(driver, request.param, monkeypatch):
        yield request.param


@pytest.fixture
def client(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """Each client, instrumented by us alone."""
    with instrumented(driver, "absent", monkeypatch):
        yield driver
