"""What ``antipode doctor`` can learn of the frameworks and clients that a process has loaded."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from ._check import Check, ok, problem, unknown
from ._doctor_applications import By, grpc_instrumented

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode.shim import Config

    from ._doctor_applications import Application

_OURS = "antipode.integrations."
_THEIRS = "opentelemetry.instrumentation."
#: Our clients' modules, and what OpenTelemetry calls its instrumentation of the same.
_CLIENTS = {"aiohttp": "aiohttp_client", "grpc": "grpc", "httpx": "httpx", "requests": "requests"}
#: What OpenTelemetry calls the frameworks that our modules are for.
_SERVERS = {
    "aiohttp_server": ("AIOHTTP_SERVER",),
    "asgi": ("ASGI", "FASTAPI", "STARLETTE"),
    "django": ("DJANGO",),
    "wsgi": ("FLASK", "WSGI"),
}
#: Instrumentations of OpenTelemetry's that send baggage to wherever a client calls.
_SENDERS = {*_CLIENTS.values(), "botocore", "httpx2", "tornado", "urllib", "urllib3"}
_EXCLUDED = re.compile(r"OTEL_PYTHON_(?:([A-Z0-9_]+)_)?EXCLUDED_(?:URLS|SERVICES)")


def loaded() -> frozenset[str]:
    """The names of the modules that this process has loaded."""
    return frozenset(sys.modules)


def integrations(settings: Config, found: list[Application], *, imported: bool) -> Iterator[Check]:
    """What there is to say of clients, hosts and excluded URLs.

    Nothing is said of what is not loaded: a process that calls nobody needs no client.

    Args:
        settings: in force.
        found: the application objects.
        imported: whether the application was imported, so that what is absent is missing.
    """
    modules = loaded()
    ours = {name for name in _CLIENTS if f"{_OURS}{name}" in modules and _active(name)}
    if imported:
        yield from _clients(modules, ours)
    yield from _hosts(settings, modules, ours)
    yield from _excluded(ours, found)


def _active(name: str) -> bool:
    """Whether our module *name* was called, for all clients or some."""
    if name == "grpc":
        return grpc_instrumented()
    return getattr(sys.modules[f"{_OURS}{name}"], "_original", None) is not None


def _everywhere(name: str) -> bool:
    """Whether all clients of a module of ours that is active carry lineages."""
    return bool(getattr(sys.modules[f"{_OURS}{name}"], "_everywhere", True))


def _clients(modules: frozenset[str], ours: set[str]) -> Iterator[Check]:
    used = sorted(_CLIENTS.keys() & modules)
    missing = [name for name in used if name not in ours]
    some = [name for name in used if name in ours and not _everywhere(name)]
    if missing:
        said = (
            f"{', '.join(missing)}: loaded and not instrumented. What responses add is not taken "
            "in, and a call whose outcome is not known leaves no mark"
        )
        calls = " and ".join(f"antipode.integrations.{name}.instrument()" for name in missing)
        yield unknown("clients", said, f"where they call services with lineages, call {calls}")
    elif some:
        said = f"{', '.join(some)}: lineages go with the clients given to instrument_client() alone"
        calls = " and ".join(f"antipode.integrations.{name}.instrument()" for name in some)
        yield unknown("clients", said, f"for all of them, call {calls}")
    elif used:
        yield ok("clients", f"{', '.join(used)}: lineages go with requests and responses")


def _hosts(settings: Config, modules: frozenset[str], ours: set[str]) -> Iterator[Check]:
    """Whether ``egress_hosts`` holds for every client that sends baggage."""
    if settings.egress_hosts is None:
        return
    held = {_CLIENTS[name] for name in ours}
    senders = {name for name in _SENDERS if f"{_THEIRS}{name}" in modules} - held
    if senders:
        said = (
            f"egress_hosts does not hold for {', '.join(sorted(senders))}: OpenTelemetry's "
            "instrumentation sends the baggage to every host"
        )
        todo = (
            "instrument these clients by antipode.integrations as well, or keep OpenTelemetry "
            "from it: OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"
        )
        yield problem("egress", said, todo)
        return
    names = ", ".join(sorted(settings.egress_hosts)) or "no host"
    yield ok("egress", f"instrumented clients send lineages to {names}")


def _excluded(ours: set[str], found: list[Application]) -> Iterator[Check]:
    """What OpenTelemetry is configured to leave alone, and we do not carry instead."""
    theirs = {_CLIENTS[name].upper() for name in ours}
    for app in found:
        if app.by is By.OURS:
            theirs.update(_SERVERS[app.integration])
    for variable, value in sorted(os.environ.items()):
        match = _EXCLUDED.fullmatch(variable)
        if match is not None and value.strip() and match[1] not in theirs:
            said = f"{variable}={value}: no lineage passes what OpenTelemetry leaves alone"
            todo = (
                "use antipode.integrations there, which does not depend on it, or take out what "
                "services with lineages stand behind"
            )
            yield unknown("excluded", said, todo)
