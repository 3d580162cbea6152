"""What ``antipode doctor`` looks at in a process: settings, propagation, scopes, datastores."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING

from antipode import AntipodeError, Lineage, WriteId, configure
from antipode._lineage.codec import encode
from antipode._request.context import context_with, scope_in
from antipode._runtime import switch
from antipode.propagation import MEMBER
from antipode.shim import Scope, config

from ._check import Check, Verdict, ok, problem, unknown
from ._doctor_integrations import integrations
from ._doctor_stores import stores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.propagators.textmap import TextMapPropagator

    from antipode.shim import Config

__all__ = ["Check", "Verdict", "examine"]

_APP = "name your application: antipode doctor --app package.module"
_INSTRUMENT = (
    "call antipode.instrument() after the propagator is set, or set "
    "OTEL_PROPAGATORS=tracecontext,antipode"
)
_BAGGAGE = (
    "set OTEL_PROPAGATORS=tracecontext,antipode, or keep baggage in set_global_textmap() and call "
    "antipode.instrument() after it"
)
_PROBE = Lineage([WriteId("antipode-doctor", "probe", 1)])
_INSTRUMENTATION = "opentelemetry.instrumentation."
#: Instrumentations of OpenTelemetry's that extract what incoming requests carry.
_SERVERS = frozenset(
    {
        "aio_pika",
        "asgi",
        "aws_lambda",
        "celery",
        "django",
        "falcon",
        "fastapi",
        "flask",
        "grpc",
        "pika",
        "pyramid",
        "starlette",
        "tornado",
        "wsgi",
    }
)

#: Those that take nothing but the span of what comes in: no lineage arrives by them.
_SPAN_ALONE = frozenset({"aiohttp_server", "aiokafka", "boto3sqs", "confluent_kafka", "kafka"})
#: Our modules that open a scope for each request or message.
_OURS = ("aiohttp_server", "asgi", "celery", "django", "grpc", "wsgi")


def examine(*, imported: bool, timeout_s: float) -> Iterator[Check]:
    """All checks, in the order in which their failures explain each other.

    Args:
        imported: whether the application was imported, so that what is absent is missing.
        timeout_s: the longest one connection to a datastore may take.
    """
    if switch.disabled:
        said = f"{switch.VARIABLE}=true: this process runs as it would without the library"
        yield problem("settings", said, f"take {switch.VARIABLE} out of its environment")
        return
    try:
        settings = config()
    except AntipodeError as error:
        yield problem("settings", str(error), "correct the variable, or the configure() call")
        return
    yield _settings(settings)
    if settings.mode == "dry-run":
        configure(mode="enforce")  # What is tried below is no request of the application's.
    # It logs what it also raises, and here the one line below is enough.
    logging.getLogger("opentelemetry.propagate").addHandler(logging.NullHandler())
    try:
        from opentelemetry import propagate  # Loads what OTEL_PROPAGATORS names.

        propagator = propagate.get_global_textmap()
    except Exception as error:  # noqa: BLE001 - a propagator of the environment may not exist
        named = os.environ.get("OTEL_PROPAGATORS", "")
        yield problem("propagation", f"OTEL_PROPAGATORS={named!r}: {error}", _BAGGAGE)
        return
    yield _propagation(propagator, imported=imported)
    yield _ingress(propagator, imported=imported)
    yield _server(imported=imported)
    yield from integrations(settings, imported=imported)
    automatic = settings.barriers == "auto"
    yield from stores(imported=imported, timeout_s=timeout_s, automatic=automatic)


def _settings(settings: Config) -> Check:
    where = f", region {settings.region}" if settings.region else ""
    said = f"mode {settings.mode}{where}, barriers of at most {settings.max_timeout:g} s"
    if settings.mode == "off":
        todo = "set ANTIPODE_MODE=enforce, or configure(mode='enforce')"
        return problem("settings", f"{said}: barriers return at once", todo)
    if settings.mode == "dry-run" and settings.dry_run_dir is None:
        todo = "set ANTIPODE_DRY_RUN_DIR, or configure(dry_run_dir=...)"
        return problem("settings", f"{said}: no record is written", todo)
    return ok("settings", said)


def _propagation(propagator: TextMapPropagator, *, imported: bool) -> Check:
    """Whether a lineage that leaves here arrives."""
    if "baggage" not in propagator.fields:
        said = "the global propagator carries no baggage, so no lineage travels"
        if not imported and (named := os.environ.get("OTEL_PROPAGATORS", "")):
            # What every process with this environment does, until its code says something else.
            said = f"OTEL_PROPAGATORS={named!r} has no baggage: no lineage passes such a process"
            return problem("propagation", said, _BAGGAGE)
        return (
            problem("propagation", said, _BAGGAGE)
            if imported
            else unknown(
                "propagation", f"{said} from a process set up by its environment alone", _APP
            )
        )
    carrier: dict[str, str] = {}
    try:
        # The setter's own default is annotated for other carriers than it takes.
        propagator.inject(carrier, context_with(Scope(_PROBE)))  # pyright: ignore[reportArgumentType]
        arrived = MEMBER in carrier.get("baggage", "")
    except Exception as error:  # noqa: BLE001 - of whatever propagators there are
        return problem("propagation", f"injecting failed: {error}", _BAGGAGE)
    if not arrived:
        said = "the global propagator sends baggage, but not the lineage in it"
        return problem("propagation", said, _BAGGAGE)
    return ok("propagation", "a lineage is sent with what the global propagator injects")


def _ingress(propagator: TextMapPropagator, *, imported: bool) -> Check:
    """Whether a request that is extracted gets a scope with the lineage that came with it."""
    subject = "ingress"
    try:
        found = scope_in(propagator.extract({"baggage": f"{MEMBER}={encode(_PROBE)}"}))
    except Exception as error:  # noqa: BLE001 - of whatever propagators there are
        return problem(subject, f"extracting failed: {error}", _INSTRUMENT)
    if found is None:
        said = "extracting an incoming request opens no scope"
        if not imported:
            return unknown(subject, f"{said} in a process set up by its environment alone", _APP)
        return problem(subject, said, f"{_INSTRUMENT}; or open each request with antipode.scope()")
    if found.lineage != _PROBE:
        return problem(subject, "the lineage of an incoming request is lost", _INSTRUMENT)
    return ok(subject, "an incoming request that is extracted gets a scope and its lineage")


def _server(*, imported: bool) -> Check:
    """Whether somebody extracts: only an instrumentation that was loaded can be seen."""
    subject = "requests"
    loaded = {
        name.removeprefix(_INSTRUMENTATION).partition(".")[0]
        for name in sys.modules
        if name.startswith(_INSTRUMENTATION)
    }
    ours = {name for name in _OURS if f"antipode.integrations.{name}" in sys.modules}
    if alone := sorted((loaded & _SPAN_ALONE) - ours):
        said = f"OpenTelemetry's instrumentation of {', '.join(alone)} takes the span alone"
        todo = (
            "no lineage arrives by it: use antipode.integrations.aiohttp_server for aiohttp, and "
            "attach what opentelemetry.propagate.extract() returns for each message of a queue"
        )
        return unknown(subject, said, todo)
    found = sorted(loaded & _SERVERS)
    if found:
        return ok(subject, f"OpenTelemetry's instrumentation of {', '.join(found)} is loaded")
    if ours:
        names = ", ".join(f"antipode.integrations.{name}" for name in sorted(ours))
        return ok(subject, f"{names}: loaded, and opens a scope for each")
    said = "whether anything extracts incoming requests: no instrumentation of a server is loaded"
    todo = (
        "where none is, call opentelemetry.propagate.extract() or antipode.scope() for each "
        "request; antipode.telemetry.metrics() counts unscoped_write where that is missing"
    )
    return unknown(subject, said, todo if imported else _APP)
