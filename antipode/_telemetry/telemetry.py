"""Spans and metrics by OpenTelemetry's API; docs/reference/telemetry.md lists them.

Without an SDK every call here returns after one comparison; with one, set up before or after, the
API's proxies pass everything on. Nothing here ever raises into the application. Attributes never
hold keys, positions or identifiers of writes, and those of metrics have few values.
"""

from __future__ import annotations

import functools
import math
import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from opentelemetry import context as otel_context

from antipode._barrier.decisions import Pacer
from antipode._barrier.registry import server_of, shims_of
from antipode._lineage.errors import AntipodeError
from antipode._lineage.unmet_errors import UnmetError, error_of
from antipode._request.context import scope_in
from antipode._runtime import observers
from antipode._runtime.metrics import OTHER, logger, metrics

from .counters import counter_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.metrics import CallbackOptions, Histogram, Meter, Observation
    from opentelemetry.trace import Span, Tracer
    from opentelemetry.util.types import AttributeValue

    from antipode._lineage.errors import ServerName
    from antipode._lineage.lineage import Lineage
    from antipode._lineage.outcomes import BarrierResult, Outcome

    from .counters import Counter

    Opened = tuple[Span, Token[Context]]

T = TypeVar("T")
SCOPE = "antipode"
#: What takes less is no wait: the pause between two polls is never shorter.
LEAST_WAIT_S = Pacer.LEAST_S
#: Most values that one attribute of a span lists, and most waits of a barrier with their own span.
MOST_LISTED = 16
#: Most names in metrics: lineages come from outside, and may name what they like.
MOST_NAMES = 64
#: To ask for the global providers takes longer than all the rest.
ASK_EVERY_S = 0.1
_API = ("opentelemetry.trace", "opentelemetry.metrics")

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SHORT = (1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1)
_BYTES = (32, 64, 128, 256, 512, 1024, 2048, 4096)
_ENTRIES = (0, 1, 2, 4, 8, 16, 32, 64, 128)
_OK = {
    "barrier": {"antipode.operation": "barrier", "antipode.status": "ok"},
    "check": {"antipode.operation": "check", "antipode.status": "ok"},
    "route": {"antipode.operation": "route", "antipode.status": "ok"},
}


class Instruments:
    """Everything that records: one for each process."""

    def __init__(self, tracer: Tracer, meter: Meter) -> None:
        """Make the instruments of *meter*."""
        self.tracer = tracer
        self.meter = meter
        self.durations = _histogram(
            meter, "antipode.barrier.duration", "s", "Duration of barriers and checks", _SECONDS
        )
        self.waits = _histogram(
            meter, "antipode.wait.duration", "s", "Time that something waited", _SECONDS
        )
        self.overheads = _histogram(
            meter,
            "antipode.request.overhead",
            "s",
            "Time that the library's own code took in a request, without waits",
            _SHORT,
        )
        self.sizes = _histogram(
            meter, "antipode.lineage.size", "By", "Length of lineages as they leave", _BYTES
        )
        self.entries = _histogram(
            meter, "antipode.lineage.entries", "{entry}", "Entries of lineages", _ENTRIES
        )
        self.unmet = meter.create_counter(
            "antipode.unmet_dependencies", "{dependency}", "Dependencies that were not visible"
        )
        self._counted: set[str] = set()

    def observe(self, counter: Counter) -> None:
        """Export the counts of *counter*, from now on. Idempotent."""
        with _lock:
            if counter.name in self._counted:
                return
            self._counted.add(counter.name)
        self.meter.create_observable_counter(
            counter.name,
            [functools.partial(_observations, counter.name)],
            counter.unit,
            counter.description,
        )


def _histogram(
    meter: Meter, name: str, unit: str, description: str, bounds: Sequence[float]
) -> Histogram:
    try:
        return meter.create_histogram(
            name, unit, description, explicit_bucket_boundaries_advisory=bounds
        )
    except TypeError:  # Before 1.30: the buckets are the SDK's, or those of a view.
        return meter.create_histogram(name, unit, description)


_lock = threading.RLock()
_made: Instruments | None = None
_names: set[str] = set()
_recorded = False
_ask_again_s = 0.0


def recording() -> bool:
    """Whether an SDK is there, as far as is known; asked again after a tenth of a second."""
    return _recorded or (time.monotonic() >= _ask_again_s and _ask())


def _ask() -> bool:
    """Whether a provider is set that is not the API's own, which records nothing."""
    global _recorded, _ask_again_s  # noqa: PLW0603 - one answer for each process
    from opentelemetry import metrics as otel_metrics
    from opentelemetry import trace

    try:
        providers = trace.get_tracer_provider(), otel_metrics.get_meter_provider()
    except Exception:  # noqa: BLE001 - such as a provider that the environment names in vain
        logger.warning("no telemetry: OpenTelemetry's providers failed", exc_info=True)
        _ask_again_s = math.inf
        return False
    _ask_again_s = time.monotonic() + ASK_EVERY_S
    _recorded = not all(type(each).__module__.startswith(_API) for each in providers)
    return _recorded


def instruments() -> Instruments:
    """The instruments of this process, made when they are first asked for."""
    return _made if _made is not None else _make()


def _make() -> Instruments:
    """Import what is needed, which ``import antipode`` does not."""
    global _made  # noqa: PLW0603 - one for each process
    from opentelemetry import metrics as otel_metrics
    from opentelemetry import trace

    with _lock:
        if _made is not None:
            return _made
        version = _version()
        try:
            found = Instruments(
                trace.get_tracer(SCOPE, version), otel_metrics.get_meter(SCOPE, version)
            )
        except Exception:  # noqa: BLE001 - such as a provider that the environment names in vain
            logger.debug("OpenTelemetry's providers failed", exc_info=True)
            found = Instruments(trace.NoOpTracer(), otel_metrics.NoOpMeter(SCOPE, version))
        _made = found
        return found


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("antipode-xcy")
    except PackageNotFoundError:  # Imported from its sources.
        return ""


def counted(name: str) -> None:
    """Export the count *name*, which has its first value."""
    try:
        counter = counter_of(name)
        if counter is not None:
            instruments().observe(counter)
    except Exception:  # noqa: BLE001 - telemetry never raises
        logger.debug("the count %r is not exported", name, exc_info=True)


def _observations(name: str, _: CallbackOptions) -> Iterable[Observation]:
    """What the counts of the counter *name* come to, by attributes."""
    from opentelemetry.metrics import Observation

    sums: dict[tuple[tuple[str, str], ...], int] = {}
    for metric, value in metrics().items():
        counter = counter_of(metric.name)
        if counter is not None and counter.name == name:
            about = ("antipode.datastore", bounded(metric.datastore))
            attributes = tuple(filter(None, (about if metric.datastore else None, counter.kind)))
            sums[attributes] = sums.get(attributes, 0) + value
    return [Observation(value, dict(attributes)) for attributes, value in sums.items()]


def bounded(name: str) -> str:
    """*name* as an attribute of a metric: datastores registered here, and few others."""
    if name not in _names:
        if not shims_of(name) and len(_names) >= MOST_NAMES:
            return OTHER
        _names.add(name)
    return name


def left(carrier: str, text: str, lineage: Lineage) -> None:
    """Record that *lineage* leaves as *text*, in ``baggage`` or to be ``stored``."""
    if not recording():
        return
    attributes = {"antipode.carrier": carrier}
    try:
        made = instruments()
        made.sizes.record(len(text), attributes)
        made.entries.record(len(lineage), attributes)
    except Exception:  # noqa: BLE001 - telemetry never raises
        logger.debug("a lineage was not recorded", exc_info=True)


class _Running(threading.local):
    """Whether this thread is in a call whose time is counted."""

    timed = False


_running = _Running()


def timed(function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    """Call *function*; add its time to the scope that it ran in, or opened, where that is timed."""
    if _running.timed:
        return function(*args, **kwargs)
    _running.timed = True
    result: T | None = None
    begun_s = time.perf_counter()
    try:
        result = function(*args, **kwargs)
        return result
    finally:
        _running.timed = False
        scope = scope_in(result if isinstance(result, otel_context.Context) else None)
        if scope is not None and scope is observers.timed:
            # Without a lock: what two threads at once may lose here are microseconds.
            scope.spent_s += time.perf_counter() - begun_s


def spent(seconds: float) -> None:
    """Record for how long the library's own code ran in a request, which is over."""
    if not recording():
        return  # The first request of a process is timed before anybody looks for an SDK.
    try:
        instruments().overheads.record(seconds)
    except Exception:  # noqa: BLE001 - telemetry never raises
        logger.debug("the time of a request was not recorded", exc_info=True)


def held(
    waited_s: float,
    result: Callable[[], BarrierResult],
    server: Callable[[], ServerName | None],
    *,
    raises: bool,
) -> None:
    """Record for how long a floor held a read back, for what, and whether it *raises* for that."""
    if waited_s >= LEAST_WAIT_S and recording():
        try:
            found = result()
            before_s = found.waited_s - waited_s  # By earlier reads, for which it was recorded.
            where = server()
            error = error_of(found) if raises else None
            _waited(instruments(), found, "read", lambda _: where, before_s=before_s, error=error)
        except Exception:  # noqa: BLE001 - telemetry never raises
            logger.debug("the wait of a read was not recorded", exc_info=True)


def unmet(error: UnmetError, operation: str = "read") -> None:
    """Count what *operation* did not get."""
    if not recording():
        return
    try:
        made = instruments()
        for outcome in error.result.unmet:
            made.unmet.add(
                1,
                {
                    "antipode.operation": operation,
                    "antipode.datastore": bounded(outcome.write.datastore),
                    "antipode.outcome": outcome.status.value,
                },
            )
    except Exception:  # noqa: BLE001 - telemetry never raises
        logger.debug("what is unmet was not counted", exc_info=True)


def served(datastore: str, code: str, server: ServerName | None) -> None:
    """Note in the current span that a read was answered stale; *code* is of the error it is."""
    if not recording():
        return
    try:
        from opentelemetry.trace import get_current_span

        attributes: dict[str, AttributeValue] = {
            "antipode.datastore": bounded(datastore),
            "antipode.code": code,
        }
        if server is not None:
            attributes |= server.attributes()
        get_current_span().add_event("antipode.served_stale", attributes)
    except Exception:  # noqa: BLE001 - telemetry never raises
        logger.debug("a stale read was not recorded", exc_info=True)


@contextmanager
def operation(name: str) -> Generator[Callable[[BarrierResult | None], None]]:
    """A block that is one ``barrier``, ``check`` or ``route``; it hands over its result."""
    begun_s = time.monotonic()
    opened = _open(name)
    results: list[BarrierResult | None] = []
    try:
        yield results.append
    except BaseException as error:
        _close(name, begun_s, opened, _result_of(error), error)
        raise
    _close(name, begun_s, opened, results[0])


def _open(operation: str) -> Opened | None:
    """A span that is the current one from now on; None where nobody records it."""
    try:
        span = instruments().tracer.start_span(f"antipode.{operation}")
        if not span.is_recording():
            return None
        from opentelemetry.trace import set_span_in_context

        return span, otel_context.attach(set_span_in_context(span))
    except Exception:  # noqa: BLE001 - telemetry never raises
        logger.debug("no span for a %s", operation, exc_info=True)
        return None


def _close(
    operation: str,
    begun_s: float,
    opened: Opened | None,
    result: BarrierResult | None,
    error: BaseException | None = None,
) -> None:
    """Record how a call ended, and end its span."""
    seconds = time.monotonic() - begun_s
    try:
        if error is None and result is not None and result.ok:
            instruments().durations.record(seconds, _OK[operation])
            if opened is None and seconds < LEAST_WAIT_S:
                return  # There is nothing more to report of most barriers.
            status = "ok"
        else:
            status = _failed(operation, seconds, result, error)
        if result is not None and operation != "check":
            _waited(instruments(), result, "now", server_of)
        if opened is not None:
            _describe(opened[0], status, result, error)
    except Exception:  # noqa: BLE001 - telemetry never raises
        logger.debug("a %s was not recorded", operation, exc_info=True)
    finally:
        if opened is not None:
            _end(*opened)


def _failed(
    operation: str, seconds: float, result: BarrierResult | None, error: BaseException | None
) -> str:
    """Record a call that did not succeed; its status."""
    found = error_of(result) if result is not None else None
    status = found.code if found is not None else _error_type(error) or "cancelled"
    attributes = {"antipode.operation": operation, "antipode.status": status}
    if error_type := _error_type(error):
        attributes["error.type"] = error_type
    instruments().durations.record(seconds, attributes)
    if found is not None:
        unmet(found, operation)
    return status


def _result_of(error: BaseException) -> BarrierResult | None:
    return error.result if isinstance(error, UnmetError) else None


def _error_type(error: BaseException | None) -> str:
    """The code of an error; empty where there is none, or a task or program was ended."""
    if isinstance(error, AntipodeError):
        return error.code
    return type(error).__name__ if isinstance(error, Exception) else ""


def _waited(
    made: Instruments,
    result: BarrierResult,
    at: str,
    server: Callable[[str], ServerName | None],
    *,
    before_s: float = 0.0,
    error: UnmetError | None = None,
) -> None:
    """Record for each datastore how long it kept *result* waiting, where it did.

    Args:
        made: what records.
        result: of what waited.
        at: when it waits.
        server: of a datastore, where it was waited for.
        before_s: seconds at its beginning that are not to be recorded.
        error: what a read raises; None for a barrier, whose own span says it.
    """
    slowest: dict[str, tuple[bool, float, Outcome]] = {}
    for outcome in result.outcomes:
        waited_s = result.waited_s if outcome.status.pending else outcome.waited_s
        waited_s -= before_s
        if waited_s >= LEAST_WAIT_S:
            found = (not outcome.met, waited_s, outcome)
            known = slowest.get(outcome.write.datastore)
            if known is None or found[:2] > known[:2]:
                slowest[outcome.write.datastore] = found
    begun_ns = time.time_ns() - int((result.waited_s - before_s) * 1e9)
    waits = sorted(slowest.items(), key=lambda wait: -wait[1][1])
    for number, (datastore, (_, waited_s, outcome)) in enumerate(waits):
        attributes = {"antipode.at": at, "antipode.outcome": outcome.status.value}
        made.waits.record(waited_s, {**attributes, "antipode.datastore": bounded(datastore)})
        if number < MOST_LISTED:
            span = made.tracer.start_span("antipode.wait", start_time=begun_ns)
            if span.is_recording():
                span.set_attributes({**attributes, "antipode.datastore": datastore})
                if (where := server(datastore)) is not None:
                    span.set_attributes(where.attributes())
                _fail(span, _error_type(error))
                span.end(begun_ns + int(waited_s * 1e9))


def _describe(
    span: Span, status: str, result: BarrierResult | None, error: BaseException | None
) -> None:
    """Say in *span* how its call ended: what is unmet, but of no single write."""
    attributes: dict[str, AttributeValue] = {"antipode.status": status}
    if result is not None:
        attributes["antipode.waited"] = result.waited_s
        attributes["antipode.dependencies"] = len(result.outcomes)
        attributes["antipode.datastores"] = _listed(o.write.datastore for o in result.outcomes)
        if result.unmet:
            lines = (f"{outcome.write.datastore} {outcome.status}" for outcome in result.unmet)
            attributes["antipode.unmet"] = _listed(lines)
        if result.incomplete:
            lines = (f"{mark.subject} {mark.reason}".strip() for mark in result.incomplete)
            attributes["antipode.incomplete"] = _listed(lines)
    span.set_attributes(attributes)
    _fail(span, _error_type(error))


def _fail(span: Span, error_type: str) -> None:
    """Say in *span* that its call raised an error, where it did."""
    if error_type:
        from opentelemetry.trace import Status, StatusCode

        span.set_attribute("error.type", error_type)
        span.set_status(Status(StatusCode.ERROR, error_type))


def _listed(names: Iterable[str]) -> list[str]:
    return sorted(set(names))[:MOST_LISTED]


def _end(span: Span, token: Token[Context]) -> None:
    try:
        otel_context.detach(token)
        span.end()
    except Exception:  # noqa: BLE001 - telemetry never raises
        logger.debug("a span was not ended", exc_info=True)


def _after_fork() -> None:
    """Another thread of the parent may have held it."""
    global _lock  # noqa: PLW0603 - one for each process
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
