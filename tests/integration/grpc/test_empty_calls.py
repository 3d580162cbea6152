"""Calls that bring no lineage, as most do: a scope each, and an answer where there is something."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from opentelemetry import context as otel_context
from opentelemetry import propagate
from opentelemetry.instrumentation import grpc as otel

import antipode
from antipode.integrations import grpc as ours
from antipode.integrations._outgoing import forget_services
from antipode.shim import scope_in
from tests._lines import records_in

from ._service import SERVICE, handler, made, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: With metadata an instrumentation extracts; without any it does not.
CARRIERS = ((("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),), ())
OWN = (("app", "kept"),)
ANSWER = "antipode-lineage"


@pytest.fixture(params=["alone", "otel"])
def instrumented(request: pytest.FixtureRequest) -> Iterator[None]:
    """Servers that extract in our interceptor, and such that OpenTelemetry's extracts for."""
    forget_services()
    antipode.instrument()
    theirs = otel.GrpcInstrumentorServer()
    if request.param == "otel":
        theirs.instrument()
    ours.instrument()
    yield
    ours.uninstrument()
    if request.param == "otel":
        theirs.uninstrument()
    forget_services()


@contextmanager
def serving(methods: dict[str, Callable[[Any, Any], Any]], *interceptors: Any) -> Iterator[int]:
    """One worker, so that what a call leaves behind is there for the next."""
    with ThreadPoolExecutor(1) as pool:
        server = grpc.server(pool, [handler(methods)], interceptors)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield port
        finally:
            server.stop(None).wait()


@contextmanager
def stock(port: int) -> Iterator[grpc.Channel]:
    """A channel of a client that never heard of us."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield ours.uninstrument_channel(channel)


class Posts:
    """A service whose calls add nothing, or a write."""

    def __init__(self) -> None:
        self.scopes: list[Any] = []

    def quiet(self, request: bytes, context: Any) -> bytes:
        self._seen(context)
        return request

    def writes(self, request: bytes, context: Any) -> bytes:
        self._seen(context)
        antipode.append(write("a"))
        return request

    def stops(self, request: bytes, context: Any) -> bytes:
        self._seen(context)
        antipode.append(write("a"))
        antipode.stop()
        return request

    def sets(self, request: bytes, context: Any) -> bytes:
        self._seen(context)
        context.set_trailing_metadata(OWN)
        return request

    def aborts(self, request: bytes, context: Any) -> bytes:
        self._seen(context)
        context.set_trailing_metadata(OWN)
        context.abort(grpc.StatusCode.NOT_FOUND, "no such post")
        return request

    def writes_and_aborts(self, request: bytes, context: Any) -> bytes:
        antipode.append(write("a"))
        return self.aborts(request, context)

    def writes_and_crashes(self, request: bytes, context: Any) -> bytes:
        self.writes(request, context)
        raise LookupError(request)

    def _seen(self, context: Any) -> None:
        del context
        held = scope_in()
        assert held is not None
        assert held.open
        self.scopes.append(held)

    @property
    def methods(self) -> dict[str, Callable[[Any, Any], Any]]:
        """By name."""
        return {name: getattr(self, name) for name in CALLS}


#: What each call is answered with: the status, whether the application's entry, the lineage.
CALLS: dict[str, tuple[grpc.StatusCode, bool, str | None]] = {
    "quiet": (grpc.StatusCode.OK, False, None),
    "writes": (grpc.StatusCode.OK, False, "a"),
    "stops": (grpc.StatusCode.OK, False, None),
    "sets": (grpc.StatusCode.OK, True, None),
    "aborts": (grpc.StatusCode.NOT_FOUND, True, None),
    "writes_and_aborts": (grpc.StatusCode.NOT_FOUND, True, "a"),
    "writes_and_crashes": (grpc.StatusCode.UNKNOWN, False, "a"),
}


@pytest.mark.pairwise
@pytest.mark.usefixtures("instrumented")
@pytest.mark.parametrize("metadata", CARRIERS, ids=["traced", "bare"])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_answered_where_it_added_something(
    name: str, metadata: tuple[tuple[str, str], ...]
) -> None:
    """Nobody asked: there is a lineage in the answer if the call wrote, however it ended."""
    code, own, key = CALLS[name]
    posts = Posts()
    with serving(posts.methods) as port, stock(port) as channel:
        for _ in range(2):
            call = made(channel, name).future(b"x", metadata=metadata)
            assert call.code() is code
            trailing = dict(call.trailing_metadata())
            assert ("app" in trailing) == own
            answer = trailing.get(ANSWER)
            found = None if answer is None else antipode.deserialize(answer)
            assert found == (None if key is None else antipode.Lineage([write(key)]))
    first, second = posts.scopes
    assert first is not second
    assert not first.open
    assert not second.open


@pytest.mark.usefixtures("instrumented")
@pytest.mark.parametrize("metadata", CARRIERS, ids=["traced", "bare"])
def test_what_is_written_behind_the_answer_is_counted(
    metadata: tuple[tuple[str, str], ...],
) -> None:
    """The caller does not depend on it, whether or not there was an answer."""
    posts = Posts()
    counter = antipode.telemetry.Metric("after_response_write", "posts")
    before = antipode.telemetry.metrics().get(counter, 0)
    with serving(posts.methods) as port, stock(port) as channel:
        for name in ("quiet", "writes"):
            made(channel, name)(b"x", metadata=metadata)
    for held in posts.scopes:
        held.append(write("late"))
    assert antipode.telemetry.metrics()[counter] == before + 2


@pytest.mark.usefixtures("instrumented")
def test_a_call_within_a_quiet_one_has_a_scope_of_its_own() -> None:
    """Its handler's scope is taken: what a client calls from there is another request."""
    inner, outer = Posts(), Posts()
    with serving(inner.methods) as beyond, stock(beyond) as further:

        def passes(request: bytes, context: Any) -> bytes:
            outer.quiet(request, context)
            made(further, "writes")(request, metadata=CARRIERS[0])
            assert not antipode.current()
            return request

        with serving({"passes": passes}) as port, stock(port) as channel:
            made(channel, "passes")(b"x", metadata=CARRIERS[0])
    assert inner.scopes[0] is not outer.scopes[0]


@pytest.mark.usefixtures("instrumented")
@pytest.mark.parametrize("metadata", CARRIERS, ids=["traced", "bare"])
def test_two_of_ours_answer_as_one(metadata: tuple[tuple[str, str], ...]) -> None:
    """Put in place by hand and by ``instrument()``, or twice by hand: there is one answer."""
    twice = ours.server_interceptor(), ours.server_interceptor()
    with serving(Posts().methods, *twice) as port, stock(port) as channel:
        for name in ("quiet", "writes"):
            call = made(channel, name).future(b"x", metadata=metadata)
            call.result()
            answers = [text for entry, text in call.trailing_metadata() if entry == ANSWER]
            added = [antipode.Lineage([write("a")])] if name == "writes" else []
            assert [antipode.deserialize(text) for text in answers] == added


class Part(grpc.ServerInterceptor):  # type: ignore[misc]  # gRPC has no annotations
    """Another instrumentation, which hands the propagator no more than the trace."""

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        inner = continuation(details).unary_unary

        def respond(request: bytes, context: Any) -> Any:
            token = otel_context.attach(propagate.extract(dict(CARRIERS[0])))
            try:
                return inner(request, context)
            finally:
                otel_context.detach(token)

        return grpc.unary_unary_rpc_method_handler(respond)


def test_what_was_not_extracted_is_read_all_the_same() -> None:
    """The metadata say that somebody waits for an answer, if what was extracted does not."""
    antipode.instrument()
    asked = (*CARRIERS[0], ("antipode-sent", "1"))
    interceptors = Part(), ours.server_interceptor()
    with serving(Posts().methods, *interceptors) as port, stock(port) as channel:
        call = made(channel, "quiet").future(b"x", metadata=asked)
        call.result()
        assert ANSWER in dict(call.trailing_metadata())


@pytest.mark.usefixtures("instrumented")
def test_a_dry_run_sees_quiet_calls(tmp_path: Any) -> None:
    """Their answers carry the id of the request, by which reports put its parts together."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    try:
        with serving(Posts().methods) as port, stock(port) as channel:
            call = made(channel, "quiet").future(b"x", metadata=CARRIERS[0])
            call.result()
            trailing = dict(call.trailing_metadata())
        (held,) = (each for each in records_in(tmp_path) if each["kind"] == "scope")
        request = held["request"][:16]
        assert f"0r{request}" in trailing[ANSWER]
    finally:
        antipode.configure(mode="enforce", dry_run_dir=None)


def unscoped() -> int:
    """How many answers outside of scopes were counted."""
    return antipode.telemetry.metrics().get(
        antipode.telemetry.Metric("unscoped_response", SERVICE), 0
    )


@pytest.mark.usefixtures("instrumented")
def test_answers_outside_of_scopes_are_counted() -> None:
    """Each while they bring a lineage, from the first one on; in a scope it is taken in instead."""
    before = unscoped()
    with serving(Posts().methods) as port, grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = made(channel, "writes")
        for _ in range(5):
            assert call(b"x") == b"x"
        for _ in range(3):
            with antipode.scope() as held:
                call(b"x")
                assert held.lineage == antipode.Lineage([write("a")])
        call.with_call(b"x")
    assert unscoped() == before + 6
