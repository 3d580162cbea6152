"""Level 3: what headers say and carry, how calls end, scopes and hosts. By kind of vector."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from urllib.parse import urlsplit

from opentelemetry import baggage
from opentelemetry import context as otel_context

import antipode
from antipode import Lineage
from antipode._runtime import egress_hosts
from antipode._runtime.clock import SECONDS_PER_HOUR, SystemClock
from antipode.integrations._http_call import HttpCall
from antipode.integrations._incoming import Incoming
from antipode.integrations._outgoing import forget_services
from antipode.integrations._session import EVENT_SALT, SALT, SessionCookie
from antipode.propagation import MEMBER, AntipodeBaggagePropagator, extract_response, strip
from antipode.shim import floor, mark_incomplete, record_uncommitted, record_write, scope_in
from antipode.telemetry import Metric, metrics
from antipode_cli.report._findings import finding_id
from antipode_testing._fake import FakeStore, VirtualClock

from ._scripts import configured
from ._values import Unsupported, lineage_of, of_lineage, write_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from antipode.integrations._session import SessionChange

_PROPAGATOR = AntipodeBaggagePropagator()
_PORTS = {"http": 80, "https": 443}
#: How long a cookie's value is, with its name.
_COOKIE_BYTES = 1024
#: What misses what one expects of it, as it is counted, and reads that a dry run finds.
_UNSEEN = frozenset({"read_before_commit", "sent_before_commit", "unscoped_read"})
_LINTS = frozenset({"read-before-commit", "unscoped-read"})


def judge(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What this language makes of one vector.

    Args:
        kind: the list of vectors that it is in.
        given: the vector.

    Raises:
        Unsupported: there is nothing of the kind.
    """
    if kind not in _KINDS:
        msg = f"no headers of the kind {kind!r}"
        raise Unsupported(msg)
    return _KINDS[kind](given)


def _requests_in(given: Mapping[str, Any]) -> dict[str, Any]:
    with _attached(given["headers"]):
        others = {name: value for name, value in baggage.get_all().items() if name != MEMBER}
        return {"lineage": of_lineage(antipode.current()), "others": others}


def _calls(given: Mapping[str, Any]) -> dict[str, Any]:
    forget_services()
    start = lineage_of(given["scope"])
    with configured(given.get("settings", {})):
        return {"calls": [_called(start, call) for call in given["calls"]]}


def _called(start: Lineage, call: Mapping[str, Any]) -> dict[str, Any]:
    with antipode.scope(start) as scope:
        sent = HttpCall(*_target(call["url"]), None)
        headers = dict(call["headers"])
        sent.outfit(headers, [text for name, text in call["headers"] if name == "baggage"])
        if call.get("ended"):
            scope.end()
        end = call.get("end", ())
        for attempt in end if isinstance(end, (list, tuple)) else [end]:
            if "unknown" in attempt:
                sent.failed()
            else:
                sent.response(attempt["status"], attempt.get("lineage"))
        return {"sent": sorted(map(list, headers.items())), "after": of_lineage(scope.lineage)}


def _responses_out(given: Mapping[str, Any]) -> dict[str, Any]:
    with _received(given["headers"]) as request:
        for write in given["adds"]:
            request.scope.merge(Lineage([write_of(write)]))
        return {"answer": request.answer() or None}


class _Shown:
    """A signature that leaves its content legible and leaves it *room* in the cookie."""

    def __init__(self, room: int) -> None:
        self._signature = "." + "s" * (_COOKIE_BYTES - len("antipode=") - room - len("."))

    def sign(self, content: str) -> str:
        return content + self._signature

    def unsign(self, value: str) -> str | None:
        found = value.removesuffix(self._signature)
        return found if found != value else None


def _sessions(given: Mapping[str, Any]) -> dict[str, Any]:
    settings = {name: given[name] for name in ("session_max_age_s", "egress") if name in given}
    signer = _Shown(given.get("room", 971))
    cookie = SessionCookie(signer, signer, name="antipode", path="/", domain=None, secure=None)
    with configured({"session_max_age_s": 60, **settings}):
        return {"requests": [_visited(cookie, signer, one) for one in given["requests"]]}


def _visited(cookie: SessionCookie, signer: _Shown, request: Mapping[str, Any]) -> dict[str, Any]:
    with _at(request["at_s"]):
        return _visited_now(cookie, signer, request)


@contextmanager
def _at(unix_s: int) -> Iterator[None]:
    """A block in this second."""
    hour = unix_s // SECONDS_PER_HOUR
    with patch.multiple(SystemClock, hour=lambda _: hour, unix_s=lambda _: float(unix_s)):
        yield


def _visited_now(
    cookie: SessionCookie, signer: _Shown, request: Mapping[str, Any]
) -> dict[str, Any]:
    before = _session_counts()
    pairs = [
        f"antipode={'forged' if content is None else signer.sign(content)}"
        for content in request.get("cookies", ())
    ]
    pairs += request.get("pairs", ())
    tokens = [
        "forged" if content is None else signer.sign(content)
        for content in request.get("tokens", ())
    ]
    with _received(request.get("headers", ())) as incoming:
        cookies = ["; ".join(pairs)] if pairs else []
        session_request = cookie.begin(incoming.scope, cookies, tokens=tokens)
        starts = incoming.scope.lineage
        added = Lineage(
            map(write_of, request.get("adds", ())),
            incomplete=request.get("marks", ()),
            open_branches=int(request.get("open_branches", "0")),
        )
        incoming.scope.merge(added)
        change = session_request.change(request.get("status", 200), request.get("answer", ()))
        now = _session_counts()
        token = cookie.token()
    counted = {name: now[name] - before.get(name, 0) for name in now}
    return {
        "starts": of_lineage(starts),
        "counts": {name: number for name, number in counted.items() if number},
        "token": signer.unsign(token) if token else "",
        **_set(signer, change),
    }


def _set(signer: _Shown, change: SessionChange | None) -> dict[str, Any]:
    """What the response does with the cookie."""
    if change is None:
        return {"content": None, "cache_control": None, "lasts": False}
    content = signer.unsign(change.value) if change.value else ""
    return {
        "content": content,
        "cache_control": change.cache_control,
        "lasts": bool(change.max_age_s),
    }


def _session_counts() -> dict[str, int]:
    found: dict[str, int] = {}
    for metric, number in metrics().items():
        if metric.name.startswith(("session_", "dropped_for_size")):
            found[metric.name] = found.get(metric.name, 0) + number
    return found


def _session_signatures(given: Mapping[str, Any]) -> dict[str, Any]:
    from antipode.integrations.session import signer_of  # It needs an extra.

    salt = EVENT_SALT if given.get("of") == "token" else SALT
    signer = signer_of(*given["keys"], salt=salt)
    return {"value": signer.sign(given["content"]), "read": signer.unsign(given["came"])}


def _strips(given: Mapping[str, Any]) -> dict[str, Any]:
    headers = dict(given["headers"])
    strip(headers)
    return {"kept": sorted(map(list, headers.items()))}


def _hosts(given: Mapping[str, Any]) -> dict[str, Any]:
    with configured({"egress_hosts": given["egress_hosts"]}):
        scheme, host, port, _ = _target(given["url"])
        allowed = frozenset(given["egress_hosts"])
        return {"sent": egress_hosts.names(allowed, host, port or _PORTS[scheme])}


def _refused_hosts(given: Mapping[str, Any]) -> dict[str, Any]:
    try:
        with configured({"egress_hosts": [given["entry"]]}):
            return {"code": None}
    except antipode.ConfigurationError as error:
        return {"code": error.code}


def _scopes(given: Mapping[str, Any]) -> dict[str, Any]:
    """The lineage at each step `holds`."""
    outside = otel_context.attach(otel_context.Context())
    try:
        return {"holds": list(_held_by(given["steps"]))}
    finally:
        otel_context.detach(outside)


def _held_by(steps: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for step in steps:
        match step["op"]:
            case "extract":
                otel_context.attach(_PROPAGATOR.extract(_carrier(step["headers"])))
            case "write":
                record_write(write_of({**step["write"], "minted_h": 1}))
            case "mark":
                mark_incomplete(step["subject"], step["reason"])
            case "answered":
                extract_response({"antipode-lineage": step["text"]})
            case "end":
                scope = scope_in()
                if scope is not None:
                    scope.end()
            case "stop":
                antipode.stop()
            case "holds":
                yield of_lineage(antipode.current())
            case other:
                raise KeyError(other)


def _finding_ids(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": finding_id(*given["parts"])}


def _verdicts(given: Mapping[str, Any]) -> dict[str, Any]:
    settings = {name: given.get(name) for name in ("region", "egress")}
    settings["barriers"] = given.get("barriers", "explicit")
    before = _unseen()
    with TemporaryDirectory() as folder:
        with configured({"mode": "dry-run", "dry_run_dir": folder, **settings}):
            guards = _guards(given)
        lines = [
            line
            for file in Path(folder).iterdir()
            for line in file.read_text(encoding="utf-8").splitlines()
        ]
    records = list(map(json.loads, lines))
    lints = {(each["lint"], each["datastore"]) for each in records if each["kind"] == "lint"}
    return {
        "reads": [_judged(each) for each in records if each["kind"] == "read"],
        "guards": guards,
        "counted": [[*of, count] for of, count in sorted((_unseen() - before).items())],
        "lints": [[*each] for each in sorted(lints) if each[0] in _LINTS],
    }


def _unseen() -> Counter[Metric]:
    """What was counted of reads that miss what one expects them to see."""
    return Counter({of: count for of, count in metrics().items() if of.name in _UNSEEN})


class _Connection:
    """One that an application writes or reads through."""


def _guards(given: Mapping[str, Any]) -> list[str]:
    """The guards that a request takes along which is sent at the end."""
    connections: defaultdict[str | None, _Connection] = defaultdict(_Connection)
    with ExitStack() as stack:
        stores = {found["datastore"]: _registered(found, stack) for found in given["stores"]}
        if given.get("scope", True):
            stack.enter_context(antipode.scope(lineage_of(given.get("lineage", {}))))
        for step in given["steps"]:
            who = connections[step.get("connection")]
            match step["op"]:
                case "write":
                    record_write(write_of(step["write"]))
                case "barrier":
                    antipode.barrier(timeout=1, **step.get("options", {}))
                case "check":
                    antipode.check()
                case "wrote" | "over":
                    wrote = step["op"] == "wrote"
                    record_uncommitted(stores[step["datastore"]], who, wrote=wrote)
                case "stop":
                    antipode.stop()
                case "read":
                    with antipode.barriers(step["block"]) if "block" in step else nullcontext():
                        floor(stores[step["datastore"]], who=who)
                case other:
                    raise KeyError(other)
        headers: dict[str, str] = {}
        _PROPAGATOR.inject(headers)
        return re.findall(r"~(0g[^~,;]*)", headers.get("baggage", ""))


def _registered(found: Mapping[str, Any], stack: ExitStack) -> FakeStore:
    options = {name: value for name, value in found.items() if name != "barriers"}
    store = FakeStore(clock=VirtualClock(), **options)
    store.wait_by(found.get("barriers"))
    antipode.shim.register(store)
    stack.callback(store.close)
    return store


def _judged(read: Mapping[str, Any]) -> dict[str, Any]:
    writes = [[each[name] for name in ("datastore", "log", "version")] for each in read["writes"]]
    return {"verdict": read["verdict"], "writes": writes}


def _target(url: str) -> tuple[str, str, int | None, str]:
    """Scheme, host, stated port and path of *url*, as a client takes it apart."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port, parts.path


def _carrier(headers: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Headers as a server has them: several values of one name."""
    carrier: dict[str, list[str]] = {}
    for name, value in headers:
        carrier.setdefault(name, []).append(value)
    return carrier


@contextmanager
def _attached(headers: Iterable[tuple[str, str]]) -> Iterator[None]:
    """A block in the context of a request that came with *headers*."""
    token = otel_context.attach(_PROPAGATOR.extract(_carrier(headers)))
    try:
        yield
    finally:
        otel_context.detach(token)


@contextmanager
def _received(headers: Iterable[tuple[str, str]]) -> Iterator[Incoming]:
    """A request that came with *headers*, until it ends."""
    carrier = _carrier(headers)
    request = Incoming(None, carrier.get("baggage", ()), sent="antipode-sent" in carrier)
    try:
        yield request
    finally:
        request.end()


_KINDS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "calls": _calls,
    "finding_ids": _finding_ids,
    "hosts": _hosts,
    "refused_hosts": _refused_hosts,
    "requests_in": _requests_in,
    "responses_out": _responses_out,
    "scopes": _scopes,
    "session_signatures": _session_signatures,
    "sessions": _sessions,
    "strips": _strips,
    "verdicts": _verdicts,
}
