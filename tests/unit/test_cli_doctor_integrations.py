"""`antipode doctor`: clients, responses, hosts and excluded URLs."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode.shim import config
from antipode_cli import _doctor_integrations
from antipode_cli._doctor import examine
from antipode_cli._doctor_applications import applications, tasks
from antipode_cli._doctor_integrations import integrations

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode_cli._check import Check


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is excluded by the environment of whoever runs the tests."""
    for name in _doctor_integrations.os.environ:
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the process have loaded these modules and no others; ours patch nothing."""

    def only(*names: str, **patched: object) -> None:
        for name in [*names, *patched]:
            ours = f"antipode.integrations.{name.rpartition('.')[2]}"
            if name.startswith("antipode.") or name in patched:
                module = ModuleType(ours)
                if name in patched:
                    module.__dict__["_original"] = patched[name]
                monkeypatch.setitem(sys.modules, ours, module)
        every = {*names, *(f"antipode.integrations.{name}" for name in patched)}
        monkeypatch.setattr(_doctor_integrations, "loaded", lambda: frozenset(every))

    return only


def found(*, imported: bool = True) -> dict[str, Check]:
    return {check.subject: check for check in integrations(config(), [], imported=imported)}


def verdicts(*, imported: bool = True) -> dict[str, str]:
    return {name: check.verdict.value for name, check in found(imported=imported).items()}


def test_what_is_not_loaded_is_not_spoken_of(load: Callable[..., None]) -> None:
    """A process that calls nobody and serves nobody needs no integration."""
    load("json")
    assert verdicts() == {}


def test_a_client_that_is_not_instrumented(load: Callable[..., None]) -> None:
    """It may call services without lineages alone: that cannot be told from here."""
    load("httpx", "requests", requests=object())
    check = found()["clients"]
    assert check.verdict.value == "cannot tell"
    assert check.said.startswith("httpx: ")
    assert "antipode.integrations.httpx.instrument()" in check.todo
    assert verdicts(imported=False) == {}


def test_a_client_whose_module_is_loaded_and_does_nothing(load: Callable[..., None]) -> None:
    """Importing it is not enough."""
    load("requests", requests=None)
    assert verdicts() == {"clients": "cannot tell"}


def test_clients_that_are_instrumented(load: Callable[..., None]) -> None:
    """One word for all of them."""
    load("httpx", "requests", httpx=object(), requests=object())
    assert found()["clients"].said.startswith("httpx, requests: ")
    assert verdicts() == {"clients": "ok"}


def test_a_client_of_which_some_are_instrumented(load: Callable[..., None]) -> None:
    """`instrument_client()` is about one client; of the others nothing is known."""
    load("requests", requests=object())
    vars(sys.modules["antipode.integrations.requests"])["_everywhere"] = False
    check = found()["clients"]
    assert check.verdict.value == "cannot tell"
    assert "instrument_client() alone" in check.said


def test_grpc_that_was_imported_and_not_called(load: Callable[..., None]) -> None:
    """Its package is active once `instrument()` ran, and no longer."""
    pytest.importorskip("grpc")
    from antipode.integrations import grpc

    load("grpc", "antipode.integrations.grpc")
    assert verdicts() == {"clients": "cannot tell"}
    grpc.instrument()
    try:
        assert verdicts() == {"clients": "ok"}
    finally:
        grpc.uninstrument()


@pytest.mark.parametrize(
    ("name", "module"),
    [("dramatiq", "dramatiq.broker"), ("rq", "rq.job"), ("huey", "huey.api")],
    ids=["dramatiq", "rq", "huey"],
)
def test_queues_that_nothing_instruments(name: str, module: str) -> None:
    """Where one is loaded its messages carry lineages, or that is a problem with its remedy."""
    pytest.importorskip(name)
    ours: Any = import_module(f"antipode.integrations.{name}")
    (check,) = tasks(frozenset({module}))
    assert check.verdict.value == "problem"
    assert f"antipode.integrations.{name}.instrument()" in check.todo
    ours.instrument()
    try:
        assert [each.verdict.value for each in tasks(frozenset({module}))] == ["ok"]
    finally:
        ours.uninstrument()


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("aiodataloader", "aiodataloader"),
        ("strawberry", "strawberry.dataloader"),
        ("aiocache", "aiocache.decorators"),
    ],
)
def test_what_requests_share_that_nothing_instruments(name: str, module: str) -> None:
    """Where they are loaded they are shared rightly, or that is a problem with its remedy."""
    pytest.importorskip(module)
    ours = import_module(f"antipode.integrations.{name}")
    (check,) = tasks(frozenset({module}))
    assert check.verdict.value == "problem"
    assert f"antipode.integrations.{name}.instrument()" in check.todo
    ours.instrument()
    try:
        assert [each.verdict.value for each in tasks(frozenset({module}))] == ["ok"]
    finally:
        ours.uninstrument()


def test_a_part_of_django_is_no_server(load: Callable[..., None]) -> None:
    """Celery loads one where Django is installed, and serves no requests by it."""
    load("django", "django.utils", "celery")
    assert applications([], _doctor_integrations.loaded()) == []


def test_hosts_are_held_by_all_clients_or_that_is_a_problem(load: Callable[..., None]) -> None:
    """OpenTelemetry's instrumentation of a client that is not ours sends to every host."""
    antipode.configure(egress_hosts=["posts.internal"])
    theirs = "opentelemetry.instrumentation"
    load(f"{theirs}.requests", f"{theirs}.urllib3", f"{theirs}.flask", requests=object())
    check = found()["egress"]
    assert check.verdict.value == "problem"
    assert "does not hold for urllib3:" in check.said
    load(f"{theirs}.requests", requests=object())
    assert "posts.internal" in found()["egress"].said
    assert verdicts()["egress"] == "ok"


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ("OTEL_PYTHON_HTTPX_EXCLUDED_URLS", True),
        ("OTEL_PYTHON_FASTAPI_EXCLUDED_URLS", True),
        ("OTEL_PYTHON_GRPC_EXCLUDED_SERVICES", True),
        ("OTEL_PYTHON_EXCLUDED_URLS", True),
        ("OTEL_PYTHON_REQUESTS_EXCLUDED_URLS", False),
        ("OTEL_PYTHON_LOG_LEVEL", False),
    ],
)
def test_excluded_urls_are_named(
    load: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    told: bool,  # noqa: FBT001 - a case
) -> None:
    """Where we carry lineages ourselves they are nothing; elsewhere no lineage passes them."""
    load(requests=object())
    monkeypatch.setenv(variable, "health,orders")
    check = found(imported=False).get("excluded")
    assert (check is not None) is told
    if check is not None:
        assert f"{variable}=health,orders" in check.said


def test_an_environment_without_baggage_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that does not know of lineages is judged by its environment alone."""
    from opentelemetry import propagate
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    propagate.set_global_textmap(TraceContextTextMapPropagator())
    for value, verdict in (("tracecontext", "problem"), ("", "cannot tell")):
        monkeypatch.setenv("OTEL_PROPAGATORS", value)
        checks = {check.subject: check for check in examine(imported=False, timeout_s=1)}
        assert checks["propagation"].verdict.value == verdict
