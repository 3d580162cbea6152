"""What ``antipode doctor`` can learn of the frameworks and clients that a process has loaded."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from ._check import Check, ok, problem, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode.shim import Config

_OURS = "antipode.integrations."
_THEIRS = "opentelemetry.instrumentation."
#: Our clients' modules, and what OpenTelemetry calls its instrumentation of the same.
_CLIENTS = {"aiohttp": "aiohttp_client", "grpc": "grpc", "httpx": "httpx", "requests": "requests"}
#: Frameworks of servers, and our modules for them, the usual one first.
_SERVERS = {
    "aiohttp_server": ("aiohttp_server",),
    "django": ("django", "asgi", "wsgi"),
    "fastapi": ("asgi",),
    "flask": ("wsgi",),
    "grpc": ("grpc",),
    "starlette": ("asgi",),
}
#: What tells that a framework serves, where its name does not: Celery loads a part of Django's.
_SERVING = {"aiohttp_server": "aiohttp.web", "django": "django.http"}
_ANY_SERVER = "response_propagator"
#: Instrumentations of OpenTelemetry's that send baggage to wherever a client calls.
_SENDERS = {*_CLIENTS.values(), "botocore", "httpx2", "tornado", "urllib", "urllib3"}
_EXCLUDED = re.compile(r"OTEL_PYTHON_(?:([A-Z0-9_]+)_)?EXCLUDED_(?:URLS|SERVICES)")


def loaded() -> frozenset[str]:
    """The names of the modules that this process has loaded."""
    return frozenset(sys.modules)


def integrations(settings: Config, *, imported: bool) -> Iterator[Check]:
    """What there is to say of clients, responses, hosts and excluded URLs.

    Nothing is said of what is not loaded: a process that calls nobody needs no client.

    Args:
        settings: in force.
        imported: whether the application was imported, so that what is absent is missing.
    """
    modules = loaded()
    ours = {name.removeprefix(_OURS) for name in modules if name.startswith(_OURS)}
    ours = {name for name in ours if "." not in name and _active(name)}
    if imported:
        yield from _clients(modules, ours)
        yield from _responses(modules, ours)
    yield from _hosts(settings, modules, ours)
    yield from _excluded(ours)


def _active(name: str) -> bool:
    """Whether our module *name* does something; of those that patch nothing it cannot be seen."""
    module = sys.modules.get(f"{_OURS}{name}")
    return getattr(module, "_original", module) is not None


def _clients(modules: frozenset[str], ours: set[str]) -> Iterator[Check]:
    used = sorted(_CLIENTS.keys() & modules)
    missing = [name for name in used if name not in ours]
    if missing:
        said = (
            f"{', '.join(missing)}: loaded and not instrumented. What responses add is not taken "
            "in, and a call whose outcome is not known leaves no mark"
        )
        calls = " and ".join(f"antipode.integrations.{name}.instrument()" for name in missing)
        yield unknown("clients", said, f"where they call services with lineages, call {calls}")
    elif used:
        yield ok("clients", f"{', '.join(used)}: lineages go with requests and responses")


def _responses(modules: frozenset[str], ours: set[str]) -> Iterator[Check]:
    used = sorted(name for name in _SERVERS if _SERVING.get(name, name) in modules)
    if "fastapi" in used and "starlette" in used:
        used.remove("starlette")  # FastAPI stands on it, and needs one word for both.
    missing = [name for name in used if not {*_SERVERS[name], _ANY_SERVER} & ours]
    if missing:
        said = f"{', '.join(missing)}: loaded, and nothing answers with what a request wrote"
        needed = " and ".join(
            sorted({f"antipode.integrations.{_SERVERS[name][0]}" for name in missing})
        )
        yield unknown("responses", said, f"where they serve requests, use {needed}")
    elif used:
        yield ok("responses", f"{', '.join(used)}: an integration that answers is loaded")


def _hosts(settings: Config, modules: frozenset[str], ours: set[str]) -> Iterator[Check]:
    """Whether ``egress_hosts`` holds for every client that sends baggage."""
    if settings.egress_hosts is None:
        return
    held = {_CLIENTS[name] for name in ours if name in _CLIENTS}
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


def _excluded(ours: set[str]) -> Iterator[Check]:
    """What OpenTelemetry is told to leave alone, and we do not carry instead."""
    theirs = {_CLIENTS[name].upper() for name in ours if name in _CLIENTS}
    theirs |= {name.upper() for name, by in _SERVERS.items() if ours & set(by)}
    for variable, value in sorted(os.environ.items()):
        match = _EXCLUDED.fullmatch(variable)
        if match is not None and value.strip() and match[1] not in theirs:
            said = f"{variable}={value}: no lineage passes what OpenTelemetry leaves alone"
            todo = (
                "use antipode.integrations there, which does not depend on it, or take out what "
                "services with lineages stand behind"
            )
            yield unknown("excluded", said, todo)
