"""ASGI ingress beside OpenTelemetry's instrumentations, in every order, and without any."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import propagate
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import antipode
from antipode import Lineage
from antipode._runtime import metrics as _metrics
from antipode.integrations.asgi import AntipodeMiddleware, instrument_app
from antipode.propagation import AntipodeBaggagePropagator
from tests.integration._ingress import ADDED, CAME, asgi, ask, sent

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
contrib = pytest.importorskip("opentelemetry.instrumentation.fastapi")
otel_asgi = pytest.importorskip("opentelemetry.instrumentation.asgi")
from fastapi import FastAPI  # noqa: E402

TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


class Spans:
    """A tracer provider, and the names of its server spans."""

    def __init__(self, sampler: Sampler = ALWAYS_ON) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def names(self) -> list[str]:
        return [e.name for e in self._exporter.get_finished_spans() if e.kind.name == "SERVER"]


ORDERS = [
    "tracecontext,baggage",
    "baggage,tracecontext",
    "tracecontext,antipode",
    "antipode,tracecontext",
]


@pytest.fixture(params=ORDERS, autouse=True)
def propagators(request: pytest.FixtureRequest) -> None:
    """What `OTEL_PROPAGATORS` may set: the first request has stock ones wrapped."""
    made: dict[str, Any] = {
        "tracecontext": TraceContextTextMapPropagator(),
        "baggage": W3CBaggagePropagator(),
        "antipode": AntipodeBaggagePropagator(),
    }
    order = [made[name] for name in request.param.split(",")]
    propagate.set_global_textmap(CompositePropagator(order))


def make(**options: Any) -> FastAPI:
    """A service that writes, and says what it would send on."""
    app = FastAPI(**options)

    @app.get("/")
    async def write() -> dict[str, str]:
        antipode.append(ADDED)
        headers: dict[str, str] = {}
        propagate.inject(headers)
        return headers

    @app.get("/fail")
    async def fail() -> None:
        antipode.append(ADDED)
        raise ValueError

    return app


def check(port: int, tenant: str | None = "a") -> None:
    """The answer holds what was added, once; what is sent on holds that and what came, alive."""
    came = {**sent(CAME, more="tenant=a"), **TRACE}
    answer = ask(port, "/", came)
    assert answer.lineage == Lineage([ADDED])
    members = dict(m.split("=") for m in json.loads(answer.body)["baggage"].split(","))
    assert antipode.deserialize(members["antipode"]) == Lineage([CAME, ADDED])
    assert members.get("tenant") == tenant
    failed = ask(port, "/fail", came)
    assert (failed.status, failed.lineage) == (500, Lineage([ADDED]))


@contextmanager
def instrumented(app: Any, spans: Spans, **options: Any) -> Iterator[Any]:
    """OpenTelemetry's instrumentation of *app*."""
    contrib.FastAPIInstrumentor.instrument_app(app, tracer_provider=spans.provider, **options)
    try:
        yield app
    finally:
        contrib.FastAPIInstrumentor.uninstrument_app(app)


@pytest.mark.pairwise
@pytest.mark.parametrize("sampler", [ALWAYS_ON, ALWAYS_OFF])
@pytest.mark.parametrize("order", ["before", "after", "explicit", "middleware"])
def test_with_the_instrumentation_of_fastapi(order: str, sampler: Sampler) -> None:
    """Whichever is installed first; around and inside; sampled or not."""
    app, spans = make(), Spans(sampler)
    if order == "before":
        instrument_app(app)
    if order == "middleware":
        app.add_middleware(AntipodeMiddleware)
    with instrumented(app, spans):
        if order == "after":
            instrument_app(app)
        served = AntipodeMiddleware(app) if order == "explicit" else app
        if order == "middleware":  # What is inside cannot answer for what is outside of it.
            with asgi(served) as port:
                assert ask(port, "/", sent(CAME)).lineage == Lineage([ADDED])
        else:
            with asgi(served) as port:
                check(port)
    assert bool(spans.names) is (sampler is ALWAYS_ON)


@pytest.mark.parametrize("outside", [False, True])
def test_with_the_middleware_of_opentelemetry(*, outside: bool) -> None:
    """Around any application, in either order: there is one scope and one header."""
    spans, app = Spans(), make()
    wrapped: Any
    if outside:
        inner = otel_asgi.OpenTelemetryMiddleware(app, tracer_provider=spans.provider)
        wrapped = AntipodeMiddleware(inner)
    else:
        wrapped = otel_asgi.OpenTelemetryMiddleware(
            AntipodeMiddleware(app), tracer_provider=spans.provider
        )
    with asgi(wrapped) as port:
        check(port)
    assert spans.names


@pytest.mark.parametrize("explicit", [False, True])
def test_with_fastapis_own_telemetry(*, explicit: bool) -> None:
    """It extracts before any middleware: its scope is taken over there."""
    pytest.importorskip("fastapi.telemetry")
    spans = Spans()
    app = make(telemetry={"tracer_provider": spans.provider})
    scopes: list[Any] = []

    class Outside:
        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            scopes.append(antipode._request.context.scope_in())
            await self.app(scope, receive, send)

    @app.get("/one")
    async def one() -> None:
        scopes.append(antipode._request.context.scope_in())

    antipode.instrument()
    if explicit:
        app.add_middleware(AntipodeMiddleware)
        app.add_middleware(Outside)
        with asgi(app) as port:
            assert ask(port, "/one", {**sent(CAME), **TRACE}).lineage == Lineage()
            assert ask(port, "/", {**sent(CAME), **TRACE}).lineage == Lineage([ADDED])
        assert scopes[0] is scopes[1]
        assert scopes[2] is not scopes[0]
    else:
        with asgi(instrument_app(app)) as port:
            check(port)
    assert spans.names


def test_excluded_urls_have_scopes() -> None:
    """The instrumentation extracts nothing for them; this one reads the headers itself."""
    app, spans = make(), Spans()
    with instrumented(instrument_app(app), spans, excluded_urls="/"), asgi(app) as port:
        came = sent(CAME)
        answer = ask(port, "/", came)
    assert answer.lineage == Lineage([ADDED])
    assert antipode.serialize(Lineage([CAME])).encode() not in answer.body
    assert b"antipode=" in answer.body
    assert not spans.names


def test_suppressed_instrumentation_leaves_lineages() -> None:
    """Who wants no telemetry of a request still depends on its writes."""
    from opentelemetry.instrumentation.utils import suppress_instrumentation

    app, spans = make(), Spans()
    with instrumented(instrument_app(app), spans), suppress_instrumentation(), asgi(app) as port:
        assert ask(port, "/", sent(CAME)).lineage == Lineage([ADDED])
    assert not spans.names


async def test_an_in_process_call_does_not_take_the_callers_scope() -> None:
    """The caller's was opened by an extraction alone, and is still nobody's."""
    httpx = pytest.importorskip("httpx")
    antipode.instrument()
    inner = instrument_app(make())
    held: list[Any] = []

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        held.append(antipode._request.context.scope_in())
        transport = httpx.ASGITransport(app=inner)
        async with httpx.AsyncClient(transport=transport, base_url="http://in-process") as client:
            answer = await client.get("/")
        assert antipode.deserialize(answer.headers["antipode-lineage"]) == Lineage([ADDED])
        assert antipode.current() == Lineage()
        assert held[0].open
        assert held[0].arrived
        await send({"type": "http.response.start", "status": 204})

    async def send(message: Any) -> None:
        """Nobody listens."""

    spans = Spans()
    app = otel_asgi.OpenTelemetryMiddleware(outer, tracer_provider=spans.provider)
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
    await app(scope, None, send)
    assert held


def test_without_any_instrumentation() -> None:
    """The middleware needs none; it reads its own member, and no other."""
    with asgi(instrument_app(make())) as port:
        check(port, tenant=None)


def test_a_propagator_without_baggage_is_no_obstacle(caplog: pytest.LogCaptureFixture) -> None:
    """Requests are read all the same; that others get nothing is said once."""
    propagate.set_global_textmap(TraceContextTextMapPropagator())
    _metrics._logged.discard(("no_propagator", "", ""))
    with asgi(instrument_app(make())) as port:
        for _ in range(2):
            assert ask(port, "/", sent(CAME)).lineage == Lineage([ADDED])
    assert [r for r in caplog.records if "carries no baggage" in r.message]
