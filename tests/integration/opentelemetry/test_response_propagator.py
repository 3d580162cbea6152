"""OpenTelemetry's hook for responses: a convenience where its instrumentations are all there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import context as otel_context
from opentelemetry.baggage.propagation import W3CBaggagePropagator

import antipode
from antipode import Lineage
from tests.integration._ingress import ADDED, CAME, asgi, ask, sent, wsgi

if TYPE_CHECKING:
    from collections.abc import Iterator

propagators = pytest.importorskip("opentelemetry.instrumentation.propagators")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
from antipode.integrations import asgi as our_asgi  # noqa: E402
from antipode.integrations import response_propagator  # noqa: E402
from tests.integration.asgi.test_opentelemetry import Spans, instrumented  # noqa: E402
from tests.integration.asgi.test_opentelemetry import make as make_fastapi  # noqa: E402


@pytest.fixture(autouse=True)
def hooked() -> Iterator[None]:
    """The propagator is set, and what was set before is set again."""
    before = propagators.get_global_response_propagator()
    antipode.instrument()
    response_propagator.instrument()
    yield
    propagators.set_global_response_propagator(before)


def names(answer: Any) -> list[str]:
    """The headers of Antipode."""
    return [name for name, _ in answer.headers if name == "antipode-lineage"]


def test_fastapi_is_answered() -> None:
    """ASGI asks at every message and with an empty context: only the start has a header."""
    with instrumented(make_fastapi(), Spans()) as app, asgi(app) as port:
        for path in ("/", "/fail"):
            answer = ask(port, path, sent(CAME))
            assert answer.lineage == Lineage([ADDED])


def test_the_middleware_answers_alone() -> None:
    """With both there is one header, of the integration."""
    with instrumented(our_asgi.instrument_app(make_fastapi()), Spans()) as app, asgi(app) as port:
        assert ask(port, "/", sent(CAME)).lineage == Lineage([ADDED])
    inner = make_fastapi()
    inner.add_middleware(our_asgi.AntipodeMiddleware)
    with instrumented(inner, Spans()) as app, asgi(app) as port:
        assert ask(port, "/", sent(CAME)).lineage == Lineage([ADDED])


def test_excluded_urls_have_no_answer() -> None:
    """The instrumentation has nothing to say about them; the middleware has."""
    with instrumented(make_fastapi(), Spans(), excluded_urls="/") as app, asgi(app) as port:
        assert ask(port, "/", sent(CAME)).lineage is None


def test_flask_is_answered() -> None:
    """Its own header of that name is replaced."""
    flask = pytest.importorskip("flask")
    otel = pytest.importorskip("opentelemetry.instrumentation.flask").FlaskInstrumentor
    app = flask.Flask(__name__)

    @app.get("/")
    def write() -> Any:
        antipode.append(ADDED)
        return "", {"Antipode-Lineage": "1~forged"}

    otel.instrument_app(app)
    with wsgi(app) as port:
        assert ask(port, "/", sent(CAME)).lineage == Lineage([ADDED])


def test_one_that_is_set_already_injects_as_well() -> None:
    """The global hook has one place; undone, it is as it was."""
    response_propagator.uninstrument()
    stock = propagators.TraceResponsePropagator()
    propagators.set_global_response_propagator(stock)
    for _ in range(2):
        response_propagator.instrument()
    with instrumented(make_fastapi(), Spans()) as app, asgi(app) as port:
        answer = ask(port, "/", sent(CAME))
    assert answer.lineage == Lineage([ADDED])
    assert "traceresponse" in dict(answer.headers)
    for _ in range(2):
        response_propagator.uninstrument()
    assert propagators.get_global_response_propagator() is stock


def test_a_scope_that_no_request_opened_is_not_told() -> None:
    """The process's own lineage is not the answer of a request without one."""
    headers: dict[str, str] = {}
    with antipode.scope(Lineage([CAME])):
        propagators.get_global_response_propagator().inject(headers)
    assert headers == {}


def test_an_answer_before_the_handler_is_none() -> None:
    """Tornado asks at the start of a request: "nothing was added" would be a lie then."""

    class RequestHandler(dict[str, str]):
        """Stands in for Tornado's class."""

    RequestHandler.__module__ = "tornado.web"

    class Application(RequestHandler):
        """The user's own handler."""

    handler = Application()
    scope = antipode.propagation.AntipodePropagator(W3CBaggagePropagator()).extract({})
    token = otel_context.attach(scope)
    try:
        propagators.get_global_response_propagator().inject(handler)
    finally:
        otel_context.detach(token)
    assert handler == {}
