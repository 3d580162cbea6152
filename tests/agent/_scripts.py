"""Scripts of level 2, over lineages, and of level 4, over fake stores on a virtual clock."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import antipode
import antipode.shim
from antipode import AntipodeError, Lineage, Status
from antipode._barrier.demands import demanded_in
from antipode._lineage.shortening import holdable
from antipode._request.context import scope_in
from antipode._request.lineage_text import encode_bounded
from antipode.shim import encode
from antipode_testing._fake import FakeStore, VirtualClock

from ._values import (
    lineage_of,
    of_lineage,
    of_outcome,
    of_promise,
    of_write,
    promise_of,
    write_of,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from antipode_testing._fake import VirtualBarrier, VirtualRead

#: The virtual hour in which every script starts; it is part of the vectors' format.
HOUR = 500_000
_RECORDS = {"fulfilled": Status.VISIBLE, "abandoned": Status.ABANDONED, "none": Status.NOT_YET}
#: Settings that are durations.
_DURATIONS = frozenset({"horizon", "max_promise", "session_max_age"})
_STORE_OPTIONS = (
    "reads_from",
    "waitable",
    "floors",
    "polls",
    "pinned",
    "push",
    "blocks",
    "promises",
    "unique_logs",
    "fences",
    "fence_s",
)


def algebra(steps: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Run the steps of a script of level 2; what each came to."""
    named: dict[str, Lineage] = {}
    found: list[Any] = []
    for step in steps:
        if "as" in step:
            made = named[step["as"]] = _made(step, named)
            found.append(encode(made))
        else:
            found.append(_checked(step, named))
    return found


def _made(step: Mapping[str, Any], named: Mapping[str, Lineage]) -> Lineage:
    match step["op"]:
        case "decode":
            made = antipode.deserialize(step["text"])
        case "receive":
            latest_s = step["now_s"] + step["max_promise_s"]
            made = named[step["of"]].received(hour=step["hour"], latest_s=latest_s)
        case "hold":
            made = holdable(named[step["of"]]).lineage
        case "append":
            made = named[step["to"]].append(write_of(step["write"]))
        case "remove":
            made = named[step["from"]].remove(write_of(step["write"]))
        case "merge":
            first, *others = (named[name] for name in step["of"])
            made = first.merge(*others)
        case "only":
            made = named[step["of"]].only(*step["datastores"])
        case "mark":
            made = named[step["of"]].marked((step["subject"], step["reason"]))
        case _:
            msg = f"no step that makes a lineage: {step['op']!r}"
            raise ValueError(msg)
    return made


def _checked(step: Mapping[str, Any], named: Mapping[str, Lineage]) -> Any:
    match step["op"]:
        case "encode":
            return encode(named[step["of"]])
        case "encode_bounded":
            try:
                return bounded(named[step["of"]], step["max_bytes"], step.get("egress"))
            except AntipodeError as error:
                return {"code": error.code}
        case "count":
            lineage = named[step["of"]]
            return {
                "writes": len(lineage),
                "incomplete": len(lineage.incomplete),
                "promises": len(lineage.promises),
                "unknown": len(lineage.unknown),
            }
        case "equal":
            left, right = (named[name] for name in step["of"])
            if left == right and hash(left) != hash(right):
                raise AssertionError("equal lineages have different hashes")
            return left == right
        case _:
            pass
    msg = f"no step that checks a lineage: {step['op']!r}"
    raise ValueError(msg)


def bounded(lineage: Lineage, most: int, egress: Sequence[str] | None = None) -> str:
    """The text of *lineage* in at most so many bytes, ``antipode=`` included.

    Raises:
        LineageTooLarge: not even the mark of incompleteness fits.
    """
    allowed = None if egress is None else frozenset(egress)
    return encode_bounded(lineage, max_bytes=most, egress=allowed)


def run(script: Mapping[str, Any]) -> dict[str, Any]:
    """Run a script to its end; what came of it, as the specification of the agent has it."""
    clock = VirtualClock(hour=HOUR)
    with configured(script.get("settings", {})), ExitStack() as stack:
        stores = [_store(found, clock, stack) for found in script["stores"]]
        scope = None
        if "scope" in script:
            scope = stack.enter_context(antipode.scope(lineage_of(script["scope"])))
        if "fulfils" in script:
            stack.enter_context(antipode.fulfilling(promise_of(script["fulfils"])))
            scope = scope_in()
        if scope is not None and "stop_at_s" in script:
            clock.at(script["stop_at_s"], scope.stop)
        calls = [_start(found, clock) for found in script["barriers"]]
        reads = [_read(found, script["stores"], stores, clock) for found in script.get("reads", ())]
        clock.run()
        named = {store.datastore for store in stores}
        left = {} if scope is None else {name: demanded_in(scope, name) for name in named}
        held = {name: demand for name, demand in left.items() if demand is not None}
        return {
            "barriers": [_ended(call) for call in calls],
            "reads": [_answered(read) for read in reads],
            "looks": [len(store.look_times_s) for store in stores],
            "fences": [len(store.fence_times_s) for store in stores],
            "scope": None if scope is None else of_lineage(scope.lineage),
            "floors": {name: [of_write(one) for one in held[name].writes] for name in held},
            "promises": {name: [of_promise(one) for one in held[name].promises] for name in held},
        }


@contextmanager
def configured(given: Mapping[str, Any]) -> Generator[None]:
    """A block with other settings, given in JSON."""
    before = of_settings(antipode.shim.config())
    antipode.configure(**settings_of(given))
    try:
        yield
    finally:
        antipode.configure(**settings_of({name: before[name] for name in given}))


def settings_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as `configure` takes them; in JSON durations are seconds and end in ``_s``."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        plain = name.removesuffix("_s")
        found[plain] = timedelta(seconds=value) if plain in _DURATIONS else value
    return found


def of_settings(settings: antipode.shim.Config) -> dict[str, Any]:
    """All settings in JSON but ``datastores``: the agent has no clients that it could name."""
    found: dict[str, Any] = {}
    for name, value in vars(settings).items():
        if name == "datastores":
            continue
        if name in _DURATIONS:
            found[f"{name}_s"] = value.total_seconds()
        elif name in ("max_timeout", "auto_timeout"):
            found[f"{name}_s"] = value
        elif name == "peers":
            found[name] = dict(value)
        else:
            found[name] = sorted(value) if isinstance(value, (frozenset, tuple)) else value
    return found


def _store(found: Mapping[str, Any], clock: VirtualClock, stack: ExitStack) -> FakeStore:
    options = {name: found[name] for name in _STORE_OPTIONS if name in found}
    store = FakeStore(found["datastore"], clock, **options)
    stack.callback(_closed, store)
    for event in found.get("script", ()):
        _script(store, event)
    antipode.shim.register(store)
    return store


def _closed(store: FakeStore) -> None:
    """Close *store*: nothing may hold a connection to it then."""
    store.close()
    if store.open_endpoints:
        raise AssertionError(f"{store.open_endpoints} connections to {store.datastore!r} are open")


def _script(store: FakeStore, event: Mapping[str, Any]) -> None:
    at_s = event["at_s"]
    match event:
        case {"log": log, "position": position}:
            store.advance(log, int(position), at_s=at_s)
        case {"write": write, "status": status}:
            store.set_status(write_of(write), Status(status), at_s=at_s)
        case {"promise": promise, "record": record}:
            store.record(promise_of(promise), _RECORDS[record], at_s=at_s)
        case {"server": server}:
            store.replace_server(server, at_s=at_s)
        case {"records_server": server}:
            store.move_records(server, at_s=at_s)
        case {"down_until_s": _} | {"down": True}:
            store.take_down(from_s=at_s, until_s=event.get("down_until_s", float("inf")))
        case {"broken": True}:
            store.break_down(from_s=at_s)
        case {"frozen": True}:
            store.freeze(from_s=at_s)
        case {"eta_s": eta_s}:
            store.estimate(eta_s, at_s=at_s)
        case _:
            _script_primary(store, event)


def _script_primary(store: FakeStore, event: Mapping[str, Any]) -> None:
    match event:
        case {"primary": position}:
            store.move_primary(write_of(position), at_s=event["at_s"])
        case {"primary_down": True}:
            store.take_primary_down(from_s=event["at_s"])
        case _:
            msg = f"no event of a script: {event}"
            raise ValueError(msg)


def _start(found: Mapping[str, Any], clock: VirtualClock) -> VirtualBarrier:
    lineage = found["lineage"]
    checks: dict[str, Any] = {}
    if found.get("check"):
        checks = {"checks": True, "on_unmet": "return", "refresh": found.get("refresh", True)}
    return clock.barrier(
        lineage_of(lineage) if isinstance(lineage, dict) else lineage,
        timeout=found["timeout_s"],
        at_s=found["at_s"],
        cancel_at_s=found.get("cancel_at_s"),
        **{**found.get("options", {}), **checks},
    )


def _read(
    found: Mapping[str, Any],
    scripts: Sequence[Mapping[str, Any]],
    stores: Sequence[FakeStore],
    clock: VirtualClock,
) -> VirtualRead:
    """A read of the datastore's client, by a connection to the server of its own script."""
    datastore, events = found["datastore"], found.get("connection")
    each = next(one for one, store in enumerate(stores) if store.datastore == datastore)
    connection = FakeStore(datastore, clock)
    for event in scripts[each].get("script", ()) if events is None else events:
        _script(connection, event)
    options: dict[str, Any] = {
        name: found[name] for name in ("watched", "proof_s", "unasked", "refused") if name in found
    }
    if "merges" in found:
        options["merges"] = lineage_of(found["merges"])
    if "snapshot" in found:
        options["snapshot"] = list(map(write_of, found["snapshot"]))
    return clock.read(
        stores[each],
        connection,
        at_s=found["at_s"],
        wrote=list(map(write_of, found.get("wrote", ()))),
        off=found.get("barriers") == "explicit",
        **options,
    )


def _answered(read: VirtualRead) -> dict[str, Any]:
    code, outcomes = None, []
    if isinstance(read.error, antipode.UnmetError):
        code, outcomes = read.error.code, [of_outcome(one) for one in read.error.result.outcomes]
    elif read.error is not None:
        code = read.error.code if isinstance(read.error, AntipodeError) else "store"
    return {
        "code": code,
        "outcomes": outcomes,
        "served": read.served,
        "at_primary": getattr(read.error, "at_primary", False),
        "looks": read.looks,
        "finished_s": read.finished_s,
    }


def _ended(call: VirtualBarrier) -> dict[str, Any]:
    result = call.result
    code = "cancelled" if call.cancelled else None
    return {
        "code": code if call.error is None else call.error.code,
        "eta_s": None if result is None else result.eta_s,
        "ok": None if result is None else result.ok,
        "outcomes": [] if result is None else [of_outcome(one) for one in result.outcomes],
        "incomplete": []
        if result is None
        else sorted([mark.subject, mark.reason] for mark in result.incomplete),
        "finished_s": call.finished_s,
    }
