"""What ``antipode doctor`` can see of an application: what is around it, and what was called.

A module that is loaded does nothing alone: the application object shows what was done to it.
"""

from __future__ import annotations

import contextlib
import enum
import os
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType

from antipode.diagnostics import AROUND, skipped
from antipode.shim import config

from ._check import Check, ok, problem, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_OURS = "antipode.integrations."
_THEIRS = "opentelemetry.instrumentation."
#: The classes of frameworks' application objects, by package and name, and our module for each.
_FRAMEWORKS = {
    ("aiohttp", "Application"): "aiohttp_server",
    ("django", "ASGIHandler"): "django",
    ("django", "WSGIHandler"): "django",
    ("fastapi", "FastAPI"): "asgi",
    ("flask", "Flask"): "wsgi",
    ("starlette", "Starlette"): "asgi",
}
#: Instrumentations of OpenTelemetry's that take the span of what comes in, and no lineage.
_SPAN_ALONE = frozenset({"aiohttp_server", "aiokafka", "boto3sqs", "confluent_kafka", "kafka"})
#: Where a layer around an application keeps what it is around.
_INNER = ("app", "application", "wsgi", "wsgi_app", "inner")
_MOST_LAYERS = 30
_INSTALLED_IN = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_USE = {
    "aiohttp_server": "call antipode.integrations.aiohttp_server.instrument_app(app)",
    "asgi": "call antipode.integrations.asgi.instrument_app(app)",
    "django": "put antipode.integrations.django.AntipodeMiddleware first in MIDDLEWARE",
    "wsgi": "call antipode.integrations.wsgi.instrument_app(app)",
}
#: What setup() calls the frameworks of these modules.
_SKIPS = {"wsgi": "flask", "asgi": "starlette", "aiohttp_server": "aiohttp-server"}
_SPAN_ALONE_TODO = (
    "no lineage arrives by it: use antipode.integrations.aiohttp_server for aiohttp, and attach "
    "what opentelemetry.propagate.extract() returns for each message of a queue"
)
_NAME_IT = "name what the server serves: antipode doctor --app package.module:NAME"
_SAME_WAY = "run doctor as the service is run: opentelemetry-instrument antipode doctor ..."
_CELERY = "antipode.integrations.celery.instrument()"
#: Our modules for queues, with a module of each that is loaded with it.
_QUEUES = {"dramatiq": "dramatiq.broker", "rq": "rq.job", "huey": "huey.api"}
#: Our modules for data loaders, and the modules that have these.
_LOADERS = {"aiodataloader": "aiodataloader", "strawberry": "strawberry.dataloader"}


class By(enum.Enum):
    """Who opens a scope for each request of an application."""

    OURS = enum.auto()
    THEIRS = enum.auto()  # OpenTelemetry's instrumentation extracts: the propagator opens it.
    UNKNOWN = enum.auto()  # Code of the application's own may.
    NOBODY = enum.auto()


@dataclass(frozen=True)
class Application:
    """An application object, and what is around it.

    Attributes:
        name: where it stands, and its class.
        integration: our module for its framework.
        by: who opens its scopes.
        own: code of the application's that runs for each request, where *by* is unknown.
        before: middleware that runs before ours.
    """

    name: str
    integration: str
    by: By
    own: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


def applications(
    objects: Iterable[tuple[str, object]], modules: frozenset[str]
) -> list[Application]:
    """The applications among *objects*, each once, with what is around it.

    Args:
        objects: what was named, and what stands in its module: where, and the object.
        modules: the names of all modules that are loaded.
    """
    found: list[Application] = []
    seen: set[int] = set()
    for name, each in objects:
        layers = list(_layers(each))
        integration = next(filter(None, map(_integration, reversed(layers))), None)
        if integration is None or id(layers[-1]) in seen:
            continue
        seen.add(id(layers[-1]))
        kind = type(layers[-1]).__name__.removeprefix("_Instrumented")
        found.append(_judged(f"{name} ({kind})", integration, layers))
    if all(each.integration != "django" for each in found) and _serves_django(modules):
        found.append(_judged("the Django project", "django", []))
    return found


def _layers(each: object) -> Iterator[object]:
    """*each* and what it is around, up to the framework's own object."""
    for _ in range(_MOST_LAYERS):
        yield each
        held = _attributes(each)  # Not by getattr(): clients make something of every name.
        inner = next((held[name] for name in _INNER if callable(held.get(name))), None)
        if inner is None or _framework(each) is not None:
            return
        each = inner


def _attributes(each: object) -> dict[str, object]:
    try:
        return vars(each)
    except Exception:  # noqa: BLE001 - it has none, or stands for what is not there now
        return {}


def _framework(each: object) -> str | None:
    """Our module for the framework whose application object *each* is; None where it is none."""
    for kind in type(each).__mro__:
        known = _FRAMEWORKS.get((kind.__module__.partition(".")[0], kind.__name__))
        if known is not None:
            return known
    return None


def _integration(each: object) -> str | None:
    """As :func:`_framework`; of our middleware around anything, its own module."""
    if getattr(type(each), "__name__", "") == "AntipodeMiddleware" and _is_around(each):
        return type(each).__module__.removeprefix(_OURS)
    return _framework(each)


def _serves_django(modules: frozenset[str]) -> bool:
    """Whether this process has made a handler of Django's that nobody named."""
    handlers = {"django.core.handlers.asgi", "django.core.handlers.wsgi"}
    return bool(handlers & modules) and sys.modules["django.conf"].settings.configured


def _judged(name: str, integration: str, layers: list[object]) -> Application:
    """Who opens the scopes of an application."""
    inside = list(_inside(integration, layers[-1] if layers else None))
    ours = next((at for at, each in enumerate(inside) if _is_ours(each)), None)
    if any(map(_is_around, layers)):
        return Application(name, integration, By.OURS)
    if ours is not None:
        before = tuple(map(_title, (each for each in inside[:ours] if not _is_theirs(each))))
        return Application(name, integration, By.OURS, before=before)
    every = [*layers, *inside]
    if integration not in _SPAN_ALONE and any(map(_is_theirs, every)):
        return Application(name, integration, By.THEIRS)
    others = (each for each in every if _framework(each) is None and not _is_theirs(each))
    own = tuple(map(_title, filter(_may_open, others)))
    return Application(name, integration, By.UNKNOWN if own else By.NOBODY, own)


def _inside(integration: str, app: Any) -> Iterator[object]:  # noqa: ANN401 - of any framework
    """What the framework calls for each request before the handler, the outermost first."""
    if integration == "django":
        from django.conf import settings
        from django.utils.module_loading import import_string

        for dotted in settings.MIDDLEWARE:
            with contextlib.suppress(ImportError):  # The server says so, too.
                yield import_string(dotted)
    elif integration == "aiohttp_server":
        yield from app.middlewares
    elif hasattr(app, "user_middleware"):  # Starlette's.
        for each in app.user_middleware:
            yield each.kwargs.get("dispatch", each.cls)
    elif hasattr(app, "before_request_funcs"):  # Flask's.
        if (replaced := _attributes(app).get("wsgi_app")) is not None:
            yield from _layers(replaced)
        for functions in app.before_request_funcs.values():
            yield from functions


def _is_around(each: object) -> bool:
    """Whether something of ours is around *each*, or around all of its class."""
    kinds = type(each).__mro__
    return AROUND in _attributes(each) or any(AROUND in _attributes(kind) for kind in kinds)


def _is_ours(each: object) -> bool:
    """Whether *each*, middleware or its class, is ours and on."""
    kinds = each.__mro__ if isinstance(each, type) else type(each).__mro__
    ours = any(kind.__module__.startswith(_OURS) for kind in kinds)
    return _is_around(each) or (ours and bool(getattr(each, "on", True)))


def _is_theirs(each: object) -> bool:
    marked = _attributes(each).get("_is_instrumented_by_opentelemetry") is True
    return marked or _module(each).startswith(_THEIRS)


def _may_open(each: object) -> bool:
    """Whether *each* is the application's own code, or installed code that knows of lineages."""
    module = sys.modules.get(_module(each))
    path = getattr(module, "__file__", None) or ""
    if any(folder in path for folder in _INSTALLED_IN) and not _is_applications(_module(each)):
        names = _attributes(module).values()
        return any(_comes_from(value, ("antipode", "opentelemetry")) for value in names)
    return True


def _is_applications(module: str) -> bool:
    return any(f"{module}.".startswith(f"{name}.") for name in config().app_packages or ())


def _comes_from(value: object, packages: tuple[str, ...]) -> bool:
    name = value.__name__ if isinstance(value, ModuleType) else _module(value)
    return name.partition(".")[0] in packages


def _module(each: object) -> str:
    """The module of a function or class, or that of an object's class."""
    try:
        return str(each.__module__)
    except Exception:  # noqa: BLE001 - it has none, or stands for what is not there now
        return ""


def _title(each: object) -> str:
    return str(getattr(each, "__qualname__", type(each).__qualname__))


def requests(found: list[Application], modules: frozenset[str]) -> Iterator[Check]:
    """Whether somebody opens a scope for each request."""
    subject = "requests"
    for app in found:
        use = _USE[app.integration]
        ours = f"{_OURS}{app.integration}"
        if app.by is By.OURS and app.before:
            said = f"{app.name}: what {', '.join(app.before)} write is in no scope"
            yield unknown(subject, said, f"they come before {ours}: put that first")
        elif app.by is By.OURS:
            yield ok(subject, f"{app.name}: {ours} opens a scope for each, and answers")
        elif app.by is By.THEIRS:
            yield ok(subject, f"{app.name}: OpenTelemetry's instrumentation extracts each")
        elif app.by is By.UNKNOWN:
            said = f"{app.name}: whether {', '.join(app.own)} opens a scope for each request"
            yield unknown(subject, said, f"where it does not, {use}")
        else:
            said = f"{app.name}: nothing opens a scope for its requests"
            skipped = is_skipped(_SKIPS.get(app.integration, app.integration))
            todo = skipped or f"{use}: importing it is not enough. Or {_SAME_WAY}"
            yield problem(subject, said, todo)
    alone = sorted(name for name in _SPAN_ALONE if f"{_THEIRS}{name}" in modules)
    if alone := [name for name in alone if all(app.integration != name for app in found)]:
        said = f"OpenTelemetry's instrumentation of {', '.join(alone)} takes the span alone"
        yield unknown(subject, said, _SPAN_ALONE_TODO)
    elif not found:
        yield from _without_application(subject, modules)


def _without_application(subject: str, modules: frozenset[str]) -> Iterator[Check]:
    """What there is to say of requests where no application object was found."""
    if grpc_instrumented():
        yield ok(subject, "antipode.integrations.grpc.instrument() gives each call a scope")
    elif "celery.app.base" not in modules:
        said = "whether anything opens a scope for what comes in: no application object is found"
        todo = f"{_NAME_IT}. Of a consumer, antipode.telemetry.metrics() counts unscoped_write"
        yield unknown(subject, said, todo)


def responses(found: list[Application]) -> Iterator[Check]:
    """Whether requests that OpenTelemetry's instrumentation extracts are answered with lineages."""
    theirs = [app for app in found if app.by is By.THEIRS]
    if not theirs:
        return
    names = ", ".join(app.name for app in theirs)
    hook = sys.modules.get(f"{_OURS}response_propagator")
    if hook is not None and hook.is_instrumented():
        yield ok("responses", f"{names}: the response propagator answers with what each wrote")
        return
    said = f"{names}: nothing answers with what a request wrote"
    uses = " and ".join(sorted({_USE[app.integration] for app in theirs}))
    yield unknown("responses", said, f"where callers depend on that, {uses}")


def tasks(modules: frozenset[str]) -> Iterator[Check]:
    """Whether messages of Celery's and other queues carry lineages, and what loaders share."""
    for name, module in _QUEUES.items():
        if module in modules:
            yield _of_queue(name)
    for name, module in _LOADERS.items():
        if module in modules:
            yield _of_loaders(name)
    if "aiocache.decorators" in modules:
        yield _of_caches("aiocache")
    names = celery_applications(modules)
    if not names:
        return
    title = f"celery ({', '.join(names)})"
    theirs = sys.modules.get(f"{_THEIRS}celery")
    if celery_instrumented():
        yield ok("tasks", f"{title}: messages carry lineages, and each task has a scope")
    elif theirs is not None and theirs.CeleryInstrumentor().is_instrumented_by_opentelemetry:
        said = f"{title}: OpenTelemetry's instrumentation alone carries lineages, not over chords"
        yield unknown("tasks", said, f"call {_CELERY} in workers and publishers as well")
    elif starting := _at_the_start_of_workers():
        said = f"{title}: whether {', '.join(starting)} calls {_CELERY}"
        yield unknown("tasks", said, "call it where the application is made, for publishers, too")
    else:
        said = (
            f"{title}: messages carry no lineage, and a task has no scope of its own: a barrier in "
            "it waits for nothing of what its publisher wrote"
        )
        todo = f"call {_CELERY} in workers and in all that publish"
        yield problem("tasks", said, is_skipped("celery") or todo)


def _of_queue(name: str) -> Check:
    if _queue_instrumented(name):
        return ok("tasks", f"{name}: messages carry lineages, and each task has a scope")
    said = (
        f"{name}: messages carry no lineage, and a task has no scope of its own: a barrier in it "
        "waits for nothing of what its publisher wrote"
    )
    todo = f"call antipode.integrations.{name}.instrument() in workers and in all that publish"
    return problem("tasks", said, is_skipped(name) or todo)


def _of_loaders(name: str) -> Check:
    ours = sys.modules.get(f"{_OURS}{name}")
    if ours is not None and ours.is_instrumented():
        return ok("loaders", f"{name}: what requests load together depends on all of them")
    said = (
        f"{name}: what several requests load together is loaded in the scope of the first: the "
        "others may be shown what is stale for them"
    )
    todo = f"call {_OURS}{name}.instrument()"
    return problem("loaders", said, is_skipped(name) or todo)


def _of_caches(name: str) -> Check:
    ours = sys.modules.get(f"{_OURS}{name}")
    if ours is not None and ours.is_instrumented():
        return ok("caches", f"{name}: cached values keep what they depend on")
    said = f"{name}: who gets a cached value does not depend on what it depends on"
    todo = f"call {_OURS}{name}.instrument()"
    return problem("caches", said, is_skipped(name) or todo)


def _queue_instrumented(name: str) -> bool:
    """Whether messages of that queue carry lineages."""
    module = sys.modules.get(f"{_OURS}{name}")
    return module is not None and bool(module.is_instrumented())


def is_skipped(name: str) -> str:
    """What to do where ``setup()`` was told to leave *name* alone; or nothing."""
    return f"call antipode.setup() without {name!r} in skip" if name in skipped() else ""


def threads(modules: frozenset[str]) -> Iterator[Check]:
    """Whether threads have the scope of who starts them, where setup() was told to leave them."""
    todo = is_skipped("threads")
    if todo and "concurrent.futures.thread" in modules:
        said = "threads, and what pools of threads run, have no scope: setup() leaves them alone"
        yield unknown("threads", f"{said}, and reads there wait for nothing", todo)


def celery_applications(modules: frozenset[str]) -> list[str]:
    """The names of Celery's applications in this process."""
    if "celery.app.base" not in modules:
        return []
    state: Any = sys.modules["celery._state"]
    names = {str(app.main or "unnamed") for app in state._get_active_apps()}  # noqa: SLF001 - there is no public list
    return sorted(names - {"default"})  # That of Celery itself, where none is current.


def _at_the_start_of_workers() -> list[str]:
    """The application's own functions that run when a worker starts."""
    signals: Any = sys.modules["celery.signals"]
    found: list[str] = []
    for signal in (signals.worker_init, signals.worker_process_init):
        for _, receiver in signal.receivers:
            held = receiver() if isinstance(receiver, ReferenceType) else receiver
            if held is not None and not _comes_from(held, ("celery", "opentelemetry")):
                found.append(_title(held))
    return found


def need_no_extraction(found: list[Application], modules: frozenset[str]) -> bool:
    """Whether integrations of ours open the scopes of all that comes in, as far as can be seen."""
    tasks_alone = bool(celery_applications(modules)) and celery_instrumented()
    calls_alone = "grpc" in modules and grpc_instrumented()
    jobs_alone = any(
        module in modules and _queue_instrumented(name) for name, module in _QUEUES.items()
    )
    ours = bool(found) or tasks_alone or calls_alone or jobs_alone
    return ours and all(app.by is By.OURS for app in found)


def celery_instrumented() -> bool:
    """Whether messages of Celery's carry lineages."""
    module = sys.modules.get(f"{_OURS}celery._instrument")
    return module is not None and module.is_instrumented()


def grpc_instrumented() -> bool:
    """Whether servers and channels of gRPC that are made from now on carry lineages."""
    module = sys.modules.get(f"{_OURS}grpc._install")
    return module is not None and module.is_instrumented()
