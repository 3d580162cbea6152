"""Level 3: headers in and out, what calls leave behind, scopes, hosts, and ids of findings."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from opentelemetry import baggage
from opentelemetry import context as otel_context

import antipode
from antipode import Lineage
from antipode._report._findings import finding_id
from antipode._runtime import egress_hosts
from antipode.integrations._http_call import HttpCall
from antipode.integrations._incoming import Incoming
from antipode.integrations._outgoing import forget_services
from antipode.integrations._session import SessionCookie
from antipode.propagation import AntipodeBaggagePropagator, extract_response, strip
from antipode.shim import mark_incomplete, record_write, scope_in
from antipode.telemetry import metrics
from antipode.testing import VirtualClock
from antipode.testing.agent._values import lineage_of, write_of
from tests.conformance import _vectors as vectors

if TYPE_CHECKING:
    from collections.abc import Iterator

PROPAGATOR = AntipodeBaggagePropagator()
PORTS = {"http": 80, "https": 443}


def carrier_of(headers: list[list[str]]) -> dict[str, list[str]]:
    """Headers as a server has them: several values of one name."""
    carrier: dict[str, list[str]] = {}
    for name, value in headers:
        carrier.setdefault(name, []).append(value)
    return carrier


@contextmanager
def begun(headers: list[list[str]]) -> Iterator[None]:
    """A block in the context of a request that came with *headers*."""
    token = otel_context.attach(PROPAGATOR.extract(carrier_of(headers)))
    try:
        yield
    finally:
        otel_context.detach(token)


def target(url: str) -> tuple[str, str, int | None, str]:
    """Scheme, host, stated port and path of *url*, as a client takes it apart."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    return parts.scheme, parts.hostname, parts.port, parts.path


@pytest.mark.parametrize("vector", vectors.cases("L3-headers", "requests_in"))
def test_requests_in(vector: dict[str, Any]) -> None:
    """A request starts from what its headers say; members of others are the application's."""
    with begun(vector["headers"]):
        assert antipode.current() == lineage_of(vector["lineage"])
        others = {name: value for name, value in baggage.get_all().items() if name != "antipode"}
        assert others == vector.get("others", others)


@pytest.mark.parametrize("vector", vectors.cases("L3-headers", "calls"))
def test_calls(vector: dict[str, Any]) -> None:
    """Each call carries these headers, and leaves this lineage in its caller's scope."""
    forget_services()
    antipode.configure(**vector.get("settings", {}))
    for call in vector["calls"]:
        with antipode.scope(lineage_of(vector["scope"])) as scope:
            scheme, host, port, path = target(call["url"])
            sent = HttpCall(scheme, host, port, path, None)
            headers = dict(call["headers"])
            sent.outfit(headers, [text for name, text in call["headers"] if name == "baggage"])
            assert headers == dict(call["sent"])
            if call.get("ended"):
                scope.end()
            ends = call.get("end", ())
            for end in ends if isinstance(ends, list) else [ends] if ends else ():
                if "unknown" in end:
                    sent.failed()
                else:
                    sent.response(end["status"], end.get("lineage"))
            if "after" in call:
                assert scope.lineage == lineage_of(call["after"])


@pytest.mark.parametrize("vector", vectors.cases("L3-headers", "responses_out"))
def test_responses_out(vector: dict[str, Any]) -> None:
    """The answer brings back what the request added, to whom that is of use."""
    carrier = carrier_of(vector["headers"])
    request = Incoming(None, carrier.get("baggage", ()), sent="antipode-sent" in carrier)
    try:
        for write in vector["adds"]:
            request.scope.merge(Lineage([write_of(write)]))
        assert (request.answer() or None) == vector["answer"]
    finally:
        request.end()


class Signed:
    """A signature that shows its content: what is signed is the specification's, not how."""

    def __init__(self, room: int) -> None:
        self._signature = "." + "s" * (1024 - len("antipode=") - room - len("."))

    def sign(self, content: str) -> str:
        return content + self._signature

    def unsign(self, value: str) -> str | None:
        found = value.removesuffix(self._signature)
        return found if found != value else None


@pytest.mark.parametrize("vector", vectors.cases("L3-headers", "sessions"))
def test_sessions(vector: dict[str, Any]) -> None:
    """Cookies say what requests of a user start from, age, and are set, removed or left alone."""
    max_age = timedelta(seconds=vector.get("session_max_age_s", 60))
    antipode.configure(session_max_age=max_age, egress=vector.get("egress"))
    signer = Signed(vector.get("room", 971))
    cookie = SessionCookie(signer, name="antipode", path="/", domain=None, secure=None)
    for request in vector["requests"]:
        _check_session(cookie, signer, request)


def _check_session(cookie: SessionCookie, signer: Signed, request: dict[str, Any]) -> None:
    hour, second = divmod(request["at_s"], 3600)
    clock = VirtualClock(hour=hour)
    clock.at(second, lambda: None)
    clock.run()
    before = _session_counts()
    carrier = carrier_of(request.get("headers", []))
    incoming = Incoming(None, carrier.get("baggage", ()), sent="antipode-sent" in carrier)
    try:
        pairs = [
            f"antipode={'forged' if content is None else signer.sign(content)}"
            for content in request.get("cookies", ())
        ]
        visit = cookie.visit(incoming.scope, ["; ".join(pairs)] if pairs else [], clock=clock)
        assert incoming.scope.lineage == lineage_of(request["starts"])
        added = Lineage(
            map(write_of, request.get("adds", ())),
            incomplete=request.get("marks", ()),
            open_branches=int(request.get("open_branches", "0")),
        )
        incoming.scope.merge(added)
        crumb = visit.crumb(request.get("status", 200), request.get("answer", ()))
    finally:
        incoming.end()
    assert _session_counts() - before == Counter(request.get("counts", {}))
    if request["content"] is None:
        assert crumb is None
        return
    assert crumb is not None
    content = signer.unsign(crumb.value) if crumb.value else ""
    assert content == request["content"]
    assert crumb.cache_control == request["cache_control"]
    assert bool(crumb.max_age_s) is bool(content)


def _session_counts() -> Counter[str]:
    ours = ("session_", "dropped_for_size")
    found: Counter[str] = Counter()
    for metric, number in metrics().items():
        if metric.name.startswith(ours):
            found[metric.name] += number
    return found


@pytest.mark.parametrize("vector", vectors.cases("L3-headers", "strips"))
def test_strips(vector: dict[str, Any]) -> None:
    """Nothing of ours is left, and everything else is."""
    headers = dict(vector["headers"])
    strip(headers)
    assert headers == dict(vector["kept"])


@pytest.mark.parametrize("vector", vectors.cases("L3-headers", "hosts"))
def test_hosts(vector: dict[str, Any]) -> None:
    """A lineage goes to the hosts that the setting names, however their URL is spelled."""
    allowed = frozenset(vector["egress_hosts"])
    scheme, host, port, _ = target(vector["url"])
    assert egress_hosts.names(allowed, host, port or PORTS[scheme]) is vector["sent"]
    antipode.configure(egress_hosts=vector["egress_hosts"])


@pytest.mark.parametrize("entry", vectors.entries("L3-headers", "refused_hosts"))
def test_refused_hosts(entry: str) -> None:
    """What names no host is a mistake in the setting."""
    with pytest.raises(antipode.ConfigurationError):
        antipode.configure(egress_hosts=[entry])


@pytest.mark.parametrize("script", vectors.cases("L3-headers", "scopes"))
def test_scopes(script: dict[str, Any]) -> None:
    """Every check of the script holds."""
    tokens = []
    try:
        for step in script["steps"]:
            match step["op"]:
                case "extract":
                    context = PROPAGATOR.extract(carrier_of(step["headers"]))
                    tokens.append(otel_context.attach(context))
                case "write":
                    record_write(write_of({**step["write"], "minted_h": 1}))
                case "mark":
                    mark_incomplete(step["subject"], step["reason"])
                case "answered":
                    extract_response({"antipode-lineage": step["text"]})
                case "end":
                    scope = scope_in()
                    assert scope is not None
                    scope.end()
                case "stop":
                    antipode.stop()
                case "holds":
                    assert hourless(antipode.current()) == lineage_of(step["lineage"])
    finally:
        for token in reversed(tokens):
            otel_context.detach(token)


def hourless(lineage: Lineage) -> Lineage:
    """*lineage* without mint hours: what is recorded states the present one."""
    return Lineage(
        [type(each)(each.datastore, each.key, each.version) for each in lineage],
        incomplete=lineage.incomplete,
    )


@pytest.mark.parametrize("vector", vectors.cases("L3-headers", "finding_ids"))
def test_finding_ids(vector: dict[str, Any]) -> None:
    """Reports of all languages name a finding alike."""
    assert finding_id(*vector["parts"]) == vector["id"]
