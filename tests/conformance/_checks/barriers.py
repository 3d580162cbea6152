"""Level 4: what a script of barriers and reads must come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.agent._values import lineage_of, promise_of, write_of
from tests.conformance._agents import asked

if TYPE_CHECKING:
    from tests.conformance._agents import Answers
    from tests.conformance._vectors import Vector

#: Virtual seconds are sums of floats.
ROUNDING_S = 1e-9


def script(agent: Answers, vector: Vector) -> None:
    """Every barrier and every read ends as, and when, the script says, after so many looks."""
    _check(vector.content, asked(agent, "script", script=vector.content))


def _check(script: dict[str, Any], found: dict[str, Any]) -> None:
    for expected, ended in zip(script["barriers"], found["barriers"], strict=True):
        _check_barrier(expected["expect"], ended)
    for expected, ended in zip(script.get("reads", ()), found.get("reads", ()), strict=True):
        _check_read(expected["expect"], ended)
    for nth, store in enumerate(script["stores"]):
        for span, counted in (("looks", "looks"), ("fences_asked", "fences")):
            if span in store:
                _check_span(store[span], found[counted][nth])
    if "scope" in script:
        if "scope_after" in script:
            assert lineage_of(found["scope"]) == lineage_of(script["scope_after"])
        expected_floors = script.get("floors_after", {})
        assert set(found["floors"]) == set(expected_floors)
        for name, writes in expected_floors.items():
            assert _writes(found["floors"][name]) == _writes(writes)
            promised = script.get("promises_after", {}).get(name, ())
            assert _promises(found["promises"][name]) == _promises(promised)


def _check_barrier(expect: dict[str, Any], ended: dict[str, Any]) -> None:
    assert ended["code"] == expect.get("code")
    _check_outcomes(expect["outcomes"], ended["outcomes"])
    if ended["ok"] is not None:
        assert ended["ok"] is expect["ok"]
        assert sorted(ended["incomplete"]) == sorted(expect.get("incomplete", ()))
    if "eta_s" in expect:
        assert ended["eta_s"] == expect["eta_s"]
    _check_span(expect["finished_s"], ended["finished_s"])


def _check_read(expect: dict[str, Any], ended: dict[str, Any]) -> None:
    assert ended["code"] == expect.get("code")
    for name in ("served", "at_primary"):
        assert ended.get(name, False) is expect.get(name, False)
    _check_outcomes(expect.get("outcomes", []), ended["outcomes"])
    _check_span(expect["looks"], ended["looks"])
    _check_span(expect["finished_s"], ended["finished_s"])


def _check_span(span: dict[str, float], found: float) -> None:
    assert span["at_least"] - ROUNDING_S <= found <= span["at_most"] + ROUNDING_S


def _check_outcomes(expect: list[dict[str, Any]], found: list[dict[str, Any]]) -> None:
    assert _outcomes(found) == _outcomes(expect)
    assert len(found) == len(expect)
    servers = {_dependency(one): one.get("server") for one in found}
    for one in expect:
        assert one.get("server") in {None, servers[_dependency(one)]}


def _outcomes(found: list[dict[str, Any]]) -> dict[object, tuple[str, bool]]:
    return {_dependency(one): (one["status"], one.get("reported", False)) for one in found}


def _dependency(found: dict[str, Any]) -> object:
    if "promise" in found:
        return promise_of(found["promise"])
    return write_of(found["write"])


def _writes(found: Any) -> set[object]:
    return set(map(write_of, found))


def _promises(found: Any) -> set[object]:
    return set(map(promise_of, found))


def guard(agent: Answers, vector: Vector) -> None:
    """A read that is held back asks, waits and ends in this order."""
    assert asked(agent, "guard", given=vector.content) == vector.content["expect"]


KINDS = {"scripts": script}
GUARDS = {"guards": guard}
