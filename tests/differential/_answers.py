"""What two agents answered, and whether it is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode._request.lineage_text import received
from antipode.propagation import MEMBER, SENT_HEADER
from antipode.shim import encode
from tests.agent._values import lineage_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Outcomes of a look that no other can mend.
_FINAL = {"lost", "abandoned", "unknown_log", "undecidable"}
#: Members of the application that every SDK reads alike.
_PLAIN_MEMBERS = ("tenant", "n")
_LINEAGES = frozenset({"lineage", "after", "starts", "scope"})
#: What pauses of a script, which are random, make uncertain: seconds, and looks out of how many.
_PAUSE_S, _SLOW_PAUSE_S = 0.1, 1.2
_LOOKS, _SHARE_OF_LOOKS = 12, 0.5


def difference(request: Mapping[str, Any], left: Any, right: Any) -> str | None:
    """Where two answers of *request* differ; None where they say the same."""
    if "value" not in left or "value" not in right:
        return None if left == right else ""
    if request["op"] == "script":
        return _of_scripts(request["script"], left["value"], right["value"])
    hourless = request.get("kind") == "scopes"
    found = (_plain(_lax(request, each["value"]), hourless=hourless) for each in (left, right))
    return _of(*found)


def _lax(request: Mapping[str, Any], value: Any) -> Any:
    """*value* without what the specification leaves to a language."""
    match request.get("kind", request["op"]):
        case "requests_in":  # The SDK reads members of others, of one header or of all.
            given = [name for name, _ in request["given"]["headers"] if name == "baggage"]
            plain = _PLAIN_MEMBERS if len(given) == 1 else ()
            return {**value, "others": {name: value["others"].get(name) for name in plain}}
        case "responses_out" if value["answer"] == "1" and not _asks(request["given"]["headers"]):
            return {**value, "answer": None}
        case "response_headers" if value == [["antipode-lineage", "1"]]:
            return []  # It may be that nobody asked.
        case "request_headers":
            return [
                [name, sorted(map(_member, text.split(",")))]
                for name, text in value
                if name != SENT_HEADER  # Which clients add, and propagators do not.
            ]
        case _:
            return value


def _member(member: str) -> str:
    """A member of the baggage; what is passed on unread may go on as it came, with its future."""
    name, _, text = member.partition("=")
    return f"{name}={encode(received(text))}" if name == MEMBER else member


def _asks(headers: Sequence[Sequence[str]]) -> bool:
    """Whether a request came with a lineage, or says that it had one."""
    return any(name == "antipode-sent" or "antipode" in text for name, text in headers)


def _plain(value: Any, *, hourless: bool) -> Any:
    """*value* with lineages as their texts."""
    if isinstance(value, dict):
        return {
            name: _text(each, hourless=hourless)
            if name in _LINEAGES
            else _plain(each, hourless=hourless)
            for name, each in value.items()
        }
    if isinstance(value, list):
        if hourless and value and all(isinstance(each, dict) for each in value):
            return [_text(each, hourless=hourless) for each in value]
        if all(isinstance(each, list) for each in value):
            return sorted(value)
        return [_plain(each, hourless=hourless) for each in value]
    return value


def _text(lineage: dict[str, Any], *, hourless: bool) -> str:
    """What is recorded states the present hour, which may end meanwhile."""
    if hourless:
        writes = [{**write, "minted_h": 0} for write in lineage.get("writes", ())]
        lineage = {**lineage, "writes": writes}
    return encode(lineage_of(lineage))


def _of(left: Any, right: Any, where: str = "") -> str | None:
    """The first place at which two values differ."""
    if type(left) is not type(right) and not {type(left), type(right)} <= {int, float}:
        return where
    if isinstance(left, dict):
        if left.keys() != right.keys():
            return where
        found = (_of(left[name], right[name], f"{where}/{name}") for name in left)
        return next((each for each in found if each is not None), None)
    if isinstance(left, list):
        if len(left) != len(right):
            return where
        found = (
            _of(*both, f"{where}/{nth}") for nth, both in enumerate(zip(left, right, strict=True))
        )
        return next((each for each in found if each is not None), None)
    return None if left == right else where


def _of_scripts(
    script: Mapping[str, Any], left: Mapping[str, Any], right: Mapping[str, Any]
) -> str | None:
    found, other = _discrete(left), _discrete(right)
    where = _of(found, other)
    return _timing(script, left, right) if where is None and "scope" in found else where


def _discrete(found: Mapping[str, Any]) -> dict[str, Any]:
    """All of a script's value but what random pauses decide."""
    if any(map(_ended_early, found["barriers"])):
        # Who was looked at before is known to the barriers and reads that follow.
        return {"barriers": [one["ok"] for one in found["barriers"] if _ended_early(one)]}
    return {
        "barriers": [_barrier(one) for one in found["barriers"]],
        "reads": [
            {
                "code": one["code"],
                "served": one.get("served", False),
                "outcomes": _outcomes(one["outcomes"]),
            }
            for one in found.get("reads", ())
        ],
        "fences": found["fences"],
        "scope": None if found["scope"] is None else _text(found["scope"], hourless=False),
        "floors": {
            name: sorted(map(_write, writes)) for name, writes in (found["floors"] or {}).items()
        },
        "promises": {
            name: sorted(_promise(each) for each in promises)
            for name, promises in (found["promises"] or {}).items()
        },
    }


def _barrier(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: found[name] for name in ("code", "ok", "eta_s")},
        "incomplete": sorted(found["incomplete"]),
        "outcomes": _outcomes(found["outcomes"]),
    }


def _ended_early(barrier: Mapping[str, Any]) -> bool:
    """Whether one store's answer ended it; who was looked at before, in one moment, is open."""
    outcomes = barrier["outcomes"]
    stores = {(one.get("write") or one["promise"])["datastore"] for one in outcomes}
    return len(stores) > 1 and any(
        one["status"] in _FINAL and not one["reported"] for one in outcomes
    )


def _write(write: Mapping[str, Any]) -> str:
    return encode(lineage_of({"writes": [write]}))


def _promise(promise: Mapping[str, Any]) -> str:
    return encode(lineage_of({"promises": [promise]}))


def _outcomes(found: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    return sorted(
        [
            _promise(one["promise"]) if "promise" in one else _write(one["write"]),
            one["status"],
            one.get("reported", False),
        ]
        for one in found
    )


def _timing(
    script: Mapping[str, Any], left: Mapping[str, Any], right: Mapping[str, Any]
) -> str | None:
    """Where two ended at other times, or looked another number of times, than pauses explain."""
    slow = any(
        store.get("blocks") or any(map(_is_fault, store.get("script", ())))
        for store in script["stores"]
    ) or any(
        read.get("watched") or any(map(_is_fault, read.get("connection", ())))
        for read in script.get("reads", ())
    )
    pause_s = _SLOW_PAUSE_S if slow else _PAUSE_S
    for kind in "barriers", "reads":
        for nth, (one, other) in enumerate(
            zip(left.get(kind, ()), right.get(kind, ()), strict=True)
        ):
            if abs(one["finished_s"] - other["finished_s"]) > pause_s:
                return f"/{kind}/{nth}/finished_s"
            if kind == "reads" and not slow and _far(one["looks"], other["looks"]):
                return f"/reads/{nth}/looks"
    for nth, (one, other) in enumerate(zip(left["looks"], right["looks"], strict=True)):
        if not slow and _far(one, other):
            return f"/looks/{nth}"
    return None


def _far(one: int, other: int) -> bool:
    return abs(one - other) > _LOOKS + _SHARE_OF_LOOKS * min(one, other)


def _is_fault(event: Mapping[str, Any]) -> bool:
    return not event.keys().isdisjoint(
        {"down", "down_until_s", "broken", "server", "records_server"}
    )
