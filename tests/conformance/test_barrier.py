"""Level 4: barriers over scripted stores on a virtual clock."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Promise, Status
from antipode._barrier.decisions import Policies
from antipode._barrier.floor import Floor, floor_in
from antipode.shim import Incomplete, Observation
from antipode.testing import FakeStore, VirtualClock
from tests.conformance import _vectors as vectors

if TYPE_CHECKING:
    from antipode.testing._fake import VirtualBarrier

#: The virtual hour in which every script starts; it is part of the format.
HOUR = 500_000
#: What a read may be held back for, in real seconds.
READ_S = 0.1
POLICIES = Policies("raise", "raise", "raise", horizon_h=168, hour=HOUR)
#: Virtual seconds are sums of floats.
ROUNDING_S = 1e-9
_OPTIONS = {
    "reads_from",
    "waitable",
    "floors",
    "pinned",
    "push",
    "blocks",
    "promises",
    "unique_logs",
}
_RECORDS = {"fulfilled": Status.VISIBLE, "abandoned": Status.ABANDONED, "none": Status.NOT_YET}


@pytest.mark.parametrize("script", vectors.cases("L4-barrier", "scripts"))
def test_script(script: dict[str, Any]) -> None:
    """Every barrier ends as, and when, the script says, after as many looks as it allows."""
    _configure(script.get("settings", {}))
    clock = VirtualClock(hour=HOUR)
    stores = [_store(found, clock) for found in script["stores"]]
    scoped = "scope" in script
    start = vectors.lineage_of(script["scope"]) if scoped else None
    with antipode.scope(start) if scoped else nullcontext() as scope:
        calls = [_start(found, clock) for found in script["barriers"]]
        clock.run()
    for found, call in zip(script["barriers"], calls, strict=True):
        _check_barrier(found["expect"], call)
    for found, store in zip(script["stores"], stores, strict=True):
        _check_looks(found, store)
    if scope is not None:
        _check_scope(script, scope)


@pytest.mark.parametrize("read", vectors.cases("L4-barrier", "reads"))
def test_read(read: dict[str, Any]) -> None:
    """A read under a floor is answered after the look that shows all, and not before."""
    writes = frozenset(map(vectors.write_of, read["writes"]))
    (datastore,) = {write.datastore for write in writes}
    floor = Floor(datastore, writes, timeout_s=READ_S, policies=POLICIES)
    looks = 0

    def observe(timeout_s: float) -> Observation:
        nonlocal looks
        assert timeout_s > 0
        look = read["looks"][min(looks, len(read["looks"]) - 1)]
        looks += 1
        visible = map(vectors.write_of, look["visible"])
        return Observation(look["server"], dict.fromkeys(visible, Status.VISIBLE))

    match read["expect"]:
        case {"looks": expected}:
            floor.hold(observe)
            assert looks == expected
        case {"code": code}:
            with pytest.raises(antipode.UnmetError) as raised:
                floor.hold(observe)
            assert raised.value.code == code
        case _:
            raise AssertionError(read)


def _configure(settings: dict[str, Any]) -> None:
    given = dict(settings)
    if "horizon_s" in given:
        given["horizon"] = timedelta(seconds=given.pop("horizon_s"))
    if "max_timeout_s" in given:
        given["max_timeout"] = given.pop("max_timeout_s")
    antipode.configure(**given)


def _store(found: dict[str, Any], clock: VirtualClock) -> FakeStore:
    options = {name: value for name, value in found.items() if name in _OPTIONS}
    store = FakeStore(found["datastore"], clock, **options)
    for event in found.get("script", ()):
        _script(store, event)
    antipode.shim.register(store)
    return store


def _script(store: FakeStore, event: dict[str, Any]) -> None:
    at_s = event["at_s"]
    match event:
        case {"log": log, "position": position}:
            store.advance(log, int(position), at_s=at_s)
        case {"write": write, "status": status}:
            store.set_status(vectors.write_of(write), Status(status), at_s=at_s)
        case {"promise": promise, "record": record}:
            store.record(vectors.promise_of(promise), _RECORDS[record], at_s=at_s)
        case {"server": server}:
            store.replace_server(server, at_s=at_s)
        case {"down_until_s": until_s}:
            store.take_down(from_s=at_s, until_s=until_s)
        case {"down": True}:
            store.take_down(from_s=at_s)
        case {"broken": True}:
            store.break_down(from_s=at_s)
        case _:
            raise AssertionError(event)


def _start(found: dict[str, Any], clock: VirtualClock) -> VirtualBarrier:
    lineage = found["lineage"]
    return clock.barrier(
        vectors.lineage_of(lineage) if isinstance(lineage, dict) else lineage,
        timeout=found["timeout_s"],
        at_s=found["at_s"],
        **_options(found),
    )


def _options(found: dict[str, Any]) -> dict[str, Any]:
    checks = {"checks": True, "on_unmet": "return"} if found.get("check") else {}
    return {**found.get("options", {}), **checks}


def _check_barrier(expect: dict[str, Any], call: VirtualBarrier) -> None:
    code = None if call.error is None else call.error.code
    assert code == expect.get("code")
    found = () if call.result is None else call.result.outcomes
    assert {outcome.write: (str(outcome.status), outcome.reported) for outcome in found} == {
        _dependency(outcome): (outcome["status"], outcome.get("reported", False))
        for outcome in expect["outcomes"]
    }
    assert len(found) == len(expect["outcomes"])
    if call.result is not None:
        assert call.result.ok is expect["ok"]
        missing = {Incomplete(*mark) for mark in expect.get("incomplete", ())}
        assert call.result.incomplete == missing
    assert call.finished_s is not None
    span = expect["finished_s"]
    assert span["at_least"] - ROUNDING_S <= call.finished_s <= span["at_most"] + ROUNDING_S


def _dependency(outcome: dict[str, Any]) -> antipode.WriteId | Promise:
    if "promise" in outcome:
        return vectors.promise_of(outcome["promise"])
    return vectors.write_of(outcome["write"])


def _check_looks(found: dict[str, Any], store: FakeStore) -> None:
    looks = len(store.look_times_s)
    if "looks" in found:
        assert found["looks"]["at_least"] <= looks <= found["looks"]["at_most"]
    store.close()
    assert store.open_endpoints == 0


def _check_scope(script: dict[str, Any], scope: antipode.shim.Scope) -> None:
    if "scope_after" in script:
        assert scope.lineage == vectors.lineage_of(script["scope_after"])
    for datastore in {found["datastore"] for found in script["stores"]}:
        floor = floor_in(scope, datastore)
        expected = script.get("floors_after", {}).get(datastore)
        promised = script.get("promises_after", {}).get(datastore, ())
        assert (floor is None) is (expected is None)
        if floor is not None:
            assert floor.writes == {vectors.write_of(write) for write in expected}
            assert floor.promises == {vectors.promise_of(promise) for promise in promised}
