"""What ``antipode doctor`` examines in a process: settings, propagation, scopes, datastores."""

from __future__ import annotations

import difflib
import logging
import os
from dataclasses import fields
from typing import TYPE_CHECKING

from antipode import AntipodeError, Lineage, WriteId, configure
from antipode.diagnostics import DISABLED_VARIABLE, context_with, is_disabled, registered
from antipode.propagation import MEMBER
from antipode.shim import Config, Scope, config, encode, scope_in

from . import _doctor_integrations
from ._check import Check, Verdict, ok, problem, unknown
from ._doctor_applications import (
    applications,
    celery_applications,
    need_no_extraction,
    requests,
    responses,
    tasks,
    threads,
)
from ._doctor_integrations import integrations
from ._doctor_rules import rules, set_up
from ._doctor_stores import stores

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opentelemetry.propagators.textmap import TextMapPropagator

    from ._doctor_applications import Application

__all__ = ["Check", "Verdict", "examine"]

_PREFIX = "ANTIPODE_"
#: Variables that are no settings of :func:`antipode.configure`: what docs/reference names besides.
_OTHERS = (
    "DISABLED",
    "BACKTRACE",
    "COMPOSE_FILE",
    "LOAD_BARRIERS",
    "PLUGINS",
    "PROVIDER",
    "REQUIRE_STORES",
)
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


def examine(
    *, imported: bool, timeout_s: float, objects: Sequence[tuple[str, object]] = ()
) -> Iterator[Check]:
    """All checks, in the order in which their failures explain each other.

    Args:
        imported: whether the application was imported, so that what is absent is missing.
        timeout_s: the longest one connection to a datastore may take.
        objects: what was imported, application objects among it: where each stands, and itself.
    """
    if is_disabled():
        said = f"{DISABLED_VARIABLE}=true: this process runs as it would without the library"
        yield problem("settings", said, f"take {DISABLED_VARIABLE} out of its environment")
        return
    try:
        settings = config()
    except AntipodeError as error:
        yield problem("settings", str(error), "correct the variable, or the configure() call")
        return
    yield _settings(settings)
    yield from _variables()
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
    modules = _doctor_integrations.loaded()
    found = applications(objects, modules)
    if imported:
        yield from set_up(registered=bool(registered()), propagates=_opens(propagator))
    yield _propagation(propagator, imported=imported)
    yield _ingress(propagator, found, modules, imported=imported)
    yield from _served(found, modules, imported=imported)
    yield from integrations(settings, found, imported=imported)
    automatic = settings.barriers == "auto"
    yield from rules(settings, timeout_s)
    yield from stores(imported=imported, timeout_s=timeout_s, automatic=automatic)


def _settings(settings: Config) -> Check:
    where = f", region {settings.region}" if settings.region else ""
    barriers = f"barriers {settings.barriers}, of at most {settings.max_timeout:g} s"
    if settings.barriers == "auto":
        barriers += f"; reads of one request wait {settings.auto_timeout:g} s together, then "
        barriers += {"serve": "serve what there is", "primary": "read at the primary"}.get(
            settings.on_stale, settings.on_stale
        )
    said = f"mode {settings.mode}{where}, {barriers}"
    if settings.mode == "off":
        todo = "set ANTIPODE_MODE=enforce, or configure(mode='enforce')"
        return problem("settings", f"{said}: barriers return at once", todo)
    if settings.mode == "dry-run" and settings.dry_run_dir is None:
        todo = "set ANTIPODE_DRY_RUN_DIR, or configure(dry_run_dir=...)"
        return problem("settings", f"{said}: no record is written", todo)
    return ok("settings", said)


def _variables() -> Iterator[Check]:
    """Variables of the environment that resemble settings, and are none."""
    known = [*(field.name.upper() for field in fields(Config)), *_OTHERS]
    for variable in sorted(os.environ):
        name = variable.removeprefix(_PREFIX)
        if name in known or not variable.startswith(_PREFIX):
            continue
        said = f"{variable} is no setting, and changes nothing"
        meant = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if meant:
            yield problem("settings", said, f"write {_PREFIX}{meant[0]}, or take it out")
        else:
            yield unknown("settings", said, "where it is not the application's own, take it out")


def _served(
    found: list[Application], modules: frozenset[str], *, imported: bool
) -> Iterator[Check]:
    """What comes in, and is answered: requests and tasks."""
    if not imported:
        said = "whether anything opens a scope for what comes in: no application is named"
        yield unknown("requests", said, _APP)
        return
    yield from requests(found, modules)
    yield from responses(found)
    yield from tasks(modules)
    yield from threads(modules)


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


def _opens(propagator: TextMapPropagator) -> bool:
    """Whether extracting opens a scope."""
    try:
        return scope_in(propagator.extract({})) is not None
    except Exception:  # noqa: BLE001 - of whatever propagators there are
        return False


def _ingress(
    propagator: TextMapPropagator,
    apps: list[Application],
    modules: frozenset[str],
    *,
    imported: bool,
) -> Check:
    """Whether a request that is extracted gets a scope with the lineage that came with it."""
    subject = "ingress"
    try:
        found = scope_in(propagator.extract({"baggage": f"{MEMBER}={encode(_PROBE)}"}))
    except Exception as error:  # noqa: BLE001 - of whatever propagators there are
        return problem(subject, f"extracting failed: {error}", _INSTRUMENT)
    if found is None:
        return _unopened(apps, modules, imported=imported)
    if found.lineage != _PROBE:
        return problem(subject, "the lineage of an incoming request is lost", _INSTRUMENT)
    return ok(subject, "an incoming request that is extracted gets a scope and its lineage")


def _unopened(apps: list[Application], modules: frozenset[str], *, imported: bool) -> Check:
    """What it means that extracting opens no scope: integrations of ours open theirs without it."""
    subject, said = "ingress", "extracting an incoming request opens no scope"
    if not imported:
        return unknown(subject, f"{said} in a process set up by its environment alone", _APP)
    if need_no_extraction(apps, modules):
        return ok(subject, "what comes in gets its scope, with its lineage, by an integration")
    if not apps and celery_applications(modules):
        return unknown(subject, f"{said}: whether tasks get one is said below")
    return problem(subject, said, f"{_INSTRUMENT}; or open each request with antipode.scope()")
