"""WSGI applications under real servers: each request has its own scope, each answer its own."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import context as otel_context
from opentelemetry import propagate

import antipode
from antipode import ConfigurationError, Lineage, WriteId
from antipode.integrations.wsgi import AntipodeMiddleware, instrument_app, uninstrument_app
from tests.integration._ingress import ADDED, CAME, Answer, ask, calling, late, sent, wsgi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

flask = pytest.importorskip("flask")
SERVERS = ["wsgiref", "werkzeug"]


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
    """An application without a framework; what it does is the path."""
    return globals()[f"do_{environ['PATH_INFO'].strip('/')}"](environ, start_response)


def do_write(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    antipode.append(ADDED)
    body = antipode.serialize().encode()
    start_response("200 OK", [("Antipode-Lineage", "1~forged"), ("Content-Length", str(len(body)))])
    return [body]


def do_stream(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterator[bytes]:
    antipode.append(CAME)
    start_response("200 OK", [])
    yield b"begun "
    antipode.append(ADDED)
    yield antipode.serialize().encode()


def do_file(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
    antipode.append(ADDED)
    start_response("200 OK", [("Content-Length", "4")])
    return environ["wsgi.file_wrapper"](io.BytesIO(b"file"))


def do_fail(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """It has begun to answer well, and then answers that it failed."""
    start_response("200 OK", [])
    antipode.append(ADDED)
    error = ValueError()
    start_response("500 Oops", [("Content-Length", "0")], (ValueError, error, None))
    return [b""]


class Closing:
    """A body that commits when it is closed."""

    def __iter__(self) -> Iterator[bytes]:
        return iter([b"body"])

    def close(self) -> None:
        antipode.append(ADDED)


def do_forge(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    start_response("200 OK", [("Antipode-Lineage", "1~forged"), ("Content-Length", "0")])
    return [b""]


def do_close(environ: dict[str, Any], start_response: Callable[..., Any]) -> Closing:
    start_response("200 OK", [("Content-Length", "4")])
    return Closing()


def get(path: str, server: str, headers: dict[str, str] | None = None) -> Answer:
    """One request of the application."""
    with wsgi(AntipodeMiddleware(app), server) as port:
        return ask(port, path, headers)


@pytest.mark.parametrize("server", SERVERS)
def test_an_answer_holds_what_was_added(server: str) -> None:
    """The application has what came and what it wrote; the answer the latter, and no forged one."""
    answer = get("/write", server, sent(CAME))
    assert answer.lineage == Lineage([ADDED])
    assert antipode.deserialize(answer.body.decode()) == Lineage([CAME, ADDED])


@pytest.mark.parametrize("server", SERVERS)
def test_who_did_not_ask_is_told_what_was_added_alone(server: str) -> None:
    """Nothing of ours, and nothing that the application takes for it, leaves for nothing."""
    assert get("/forge", server).lineage is None
    assert get("/forge", server, sent()).lineage == Lineage()
    assert get("/write", server).lineage == Lineage([ADDED])


@pytest.mark.parametrize("server", SERVERS)
def test_what_is_written_while_streaming_is_after_the_response(server: str) -> None:
    """The parts of a body are made in the scope of the request; what they write is counted."""
    before = late()
    answer = get("/stream", server)
    assert answer.lineage == Lineage([CAME])
    assert antipode.deserialize(answer.body[6:].decode()) == Lineage([CAME, ADDED])
    assert late() == before + 1


def test_a_file_is_left_to_the_server() -> None:
    """In a wrapper of ours the server would not know that it may leave it to the system."""
    answer = get("/file", "wsgiref")
    assert answer.lineage == Lineage([ADDED])
    assert answer.body == b"file"


def test_a_second_answer_is_answered_anew() -> None:
    """An application may answer again as long as nothing is sent: the last one counts."""
    answer = get("/fail", "wsgiref")
    assert answer.status == 500
    assert answer.lineage == Lineage([ADDED])


@pytest.mark.parametrize("server", SERVERS)
def test_what_is_written_at_the_close_is_after_the_response(server: str) -> None:
    """The scope ends with the body, not before it is closed."""
    before = late()
    assert get("/close", server).body == b"body"
    assert late() == before + 1


def test_an_exception_ends_the_request() -> None:
    """The thread goes on without a scope."""
    scopes: list[Any] = []

    def fails(environ: Any, start_response: Any) -> Any:
        scopes.append(antipode._request.context.scope_in())
        raise KeyError

    environ: dict[str, Any] = {}
    with pytest.raises(KeyError):
        AntipodeMiddleware(fails)(environ, lambda *_: None)  # type: ignore[arg-type,return-value]
    assert not scopes[0].open
    assert antipode._request.context.scope_in() is None
    assert not environ


def test_a_body_that_nobody_closes_leaves_nothing_behind() -> None:
    """Between the parts of a body the thread is free: whoever runs there is not in the request."""
    body: Any = AntipodeMiddleware(do_stream)({}, lambda *_: None)  # type: ignore[arg-type,return-value]
    before = otel_context.get_current()
    assert next(body) == b"begun "
    assert otel_context.get_current() is before
    assert antipode._request.context.scope_in() is None


def test_a_scope_around_the_server_is_not_the_requests() -> None:
    """What a process began at start-up neither gets what requests write nor is in their answers."""
    with antipode.scope(Lineage([CAME])) as around:
        answer = get("/write", "wsgiref")
    assert answer.lineage == Lineage([ADDED])
    assert antipode.deserialize(answer.body.decode()) == Lineage([ADDED])
    assert around.lineage == Lineage([CAME])


@pytest.mark.parametrize("server", SERVERS)
def test_requests_on_one_worker_do_not_share_a_scope(server: str) -> None:
    """One thread, one connection that stays open where the server can, whatever they leave open."""

    def leaves(environ: Any, start_response: Any) -> list[bytes]:
        antipode.root()
        number = int(environ["PATH_INFO"].strip("/"))
        antipode.append(WriteId("orders", f"order:{number}", 1, written_hour=490_000))
        start_response("200 OK", [("Content-Length", "1")])
        return [b"x"]

    def writes(environ: Any, start_response: Any) -> Any:
        number = int(environ["PATH_INFO"].strip("/"))
        assert antipode.current() == Lineage()
        antipode.append(WriteId("orders", f"order:{number}", 1, written_hour=490_000))
        return leaves(environ, start_response) if number % 2 else do_empty(start_response)

    def do_empty(start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Length", "0")])
        return [b""]

    with wsgi(AntipodeMiddleware(writes), server) as port, calling(port) as caller:
        for number in range(20):
            added = WriteId("orders", f"order:{number}", 1, written_hour=490_000)
            assert caller.ask(f"/{number}").lineage == Lineage([added])


def test_a_lineage_that_was_taken_out_is_missed() -> None:
    """A proxy that removes baggage must not turn a lineage into an empty one."""
    answer = get("/write", "wsgiref", {"antipode-sent": "1"})
    found = antipode.deserialize(answer.body.decode())
    assert found.incomplete == {("baggage", "stripped")}


def make() -> Any:
    """A Flask application that writes, and says what it would send on."""
    made = flask.Flask(__name__)

    @made.get("/")
    def write() -> Any:
        antipode.append(ADDED)
        headers: dict[str, str] = {}
        propagate.inject(headers)
        return headers

    @made.get("/fail")
    def fail() -> None:
        antipode.append(ADDED)
        raise ValueError

    @made.get("/stream")
    def stream() -> Any:
        def parts() -> Iterator[str]:
            yield flask.request.args["begin"]
            antipode.append(ADDED)
            yield antipode.serialize()

        antipode.append(CAME)
        return flask.Response(flask.stream_with_context(parts()))

    return made


def check(port: int) -> None:
    """The answer holds what was added, once; what is sent on holds that and what came, alive."""
    import json

    answer = ask(port, "/", sent(CAME, more="tenant=a"))
    assert answer.lineage == Lineage([ADDED])
    members = dict(m.split("=") for m in json.loads(answer.body)["baggage"].split(","))
    assert antipode.deserialize(members["antipode"]) == Lineage([CAME, ADDED])
    failed = ask(port, "/fail", sent(CAME))
    assert (failed.status, failed.lineage) == (500, Lineage([ADDED]))
    before = late()
    streamed = ask(port, "/stream?begin=begun-")
    assert streamed.lineage == Lineage([CAME])
    assert antipode.deserialize(streamed.body[6:].decode()) == Lineage([CAME, ADDED])
    assert late() == before + 1


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("order", ["none", "before", "after", "by hand, before", "by hand, after"])
def test_flask_with_opentelemetry(order: str, server: str) -> None:
    """By the helper or around `wsgi_app`, before or after OpenTelemetry's, or without it."""
    otel = pytest.importorskip("opentelemetry.instrumentation.flask").FlaskInstrumentor
    made = make()
    if order == "by hand, before":
        made.wsgi_app = AntipodeMiddleware(made.wsgi_app)
    if order == "before":
        instrument_app(made)
    if order != "none":
        otel.instrument_app(made)
    if order in ("after", "none"):
        instrument_app(made)
    if order == "by hand, after":
        made.wsgi_app = AntipodeMiddleware(made.wsgi_app)
    with wsgi(made, server) as port:
        check(port)


def test_flask_urls_that_opentelemetry_excludes() -> None:
    """Its instrumentation extracts nothing for them; this one reads the headers itself."""
    otel = pytest.importorskip("opentelemetry.instrumentation.flask").FlaskInstrumentor
    made = instrument_app(make())
    otel.instrument_app(made, excluded_urls="/")
    with wsgi(made) as port:
        check(port)


@pytest.mark.parametrize("outside", [False, True])
def test_with_the_middleware_of_opentelemetry(*, outside: bool) -> None:
    """Around any application, in either order: there is one scope and one header."""
    otel = pytest.importorskip("opentelemetry.instrumentation.wsgi").OpenTelemetryMiddleware
    antipode.instrument()
    made = make().wsgi_app
    wrapped: Any = AntipodeMiddleware(otel(made)) if outside else otel(AntipodeMiddleware(made))
    with wsgi(wrapped) as port:
        check(port)


def test_an_application_is_instrumented_once_and_left_as_it_was() -> None:
    """Others of its class are not, and the class is as before in the end."""

    class Own(flask.Flask):
        # Nothing is left around one of these by another test.
        def __call__(self, environ: Any, start_response: Any) -> Any:
            return super().__call__(environ, start_response)

    before = Own.__call__
    made, other = make(), make()
    made.__class__ = other.__class__ = Own
    assert instrument_app(instrument_app(made)) is made
    with wsgi(made) as port, wsgi(other) as another:
        assert ask(port).lineage == Lineage([ADDED])
        assert ask(another).lineage is None
        for _ in range(2):
            uninstrument_app(made)
        assert ask(port).lineage is None
    assert Own.__call__ is before


def test_a_function_is_refused() -> None:
    """There is nothing to change in it; the error says what to do."""
    with pytest.raises(ConfigurationError, match="AntipodeMiddleware"):
        instrument_app(app)
