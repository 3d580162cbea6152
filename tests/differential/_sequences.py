"""Random sequences of requests, by family. A request is what an agent is asked, as JSON."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any

from ._headers import FAMILIES as HEADERS
from ._scripts import script
from ._values import HOUR, PAST_HOUR, Values

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

Request = dict[str, Any]
_NAMES = "abcdef"


def algebra(values: Values) -> list[Request]:
    """One script of level 2 over a few lineages."""
    dice, named, steps = values.dice, ["a"], []
    steps.append({"op": "decode", "text": values.text(), "as": "a"})
    for _ in range(dice.randint(2, 14)):
        step = _step(values, named)
        if dice.randrange(3):
            step["as"] = dice.choice(_NAMES)
            named.append(step["as"])
            steps.append(step)
        else:
            steps.append(_checks(values, named))
    return [{"op": "algebra", "steps": steps}]


def _step(  # noqa: PLR0911 - each step
    values: Values, named: list[str]
) -> dict[str, Any]:
    dice = values.dice
    of = dice.choice(named)
    match dice.randrange(8):
        case 0:
            return {"op": "decode", "text": values.text()}
        case 1:
            return {"op": "append", "to": of, "write": values.write()}
        case 2:
            return {"op": "remove", "from": of, "write": values.write()}
        case 3:
            return {"op": "only", "of": of, "datastores": list(values.datastores[:2])}
        case 4:
            subject, reason = values.mark()
            return {"op": "mark", "of": of, "subject": subject, "reason": reason}
        case 5:
            times = {"hour": 500_000, "now_s": 1_800_000_000, "max_promise_s": 600}
            return {"op": "receive", "of": of, **times}
        case 6:
            return {"op": "hold", "of": of}
        case _:
            return {"op": "merge", "of": [dice.choice(named) for _ in range(dice.randint(1, 4))]}


def _checks(values: Values, named: list[str]) -> dict[str, Any]:
    dice = values.dice
    of = dice.choice(named)
    match dice.randrange(4):
        case 0:
            return {"op": "encode", "of": of}
        case 1:
            return {"op": "equal", "of": [of, dice.choice(named)]}
        case 2:
            return {"op": "count", "of": of}
        case _:
            step = {"op": "encode_bounded", "of": of, "max_bytes": _bound(values)}
            return {**step, **({"egress": _egress(values)} if values.chance(3) else {})}


def _bound(values: Values) -> int:
    return values.dice.choice(
        [1, 9, 10, 18, 19, 30, 64, 100, 150, 1024, values.dice.randint(1, 200)]
    )


def _egress(values: Values) -> list[str]:
    return values.datastores[: values.dice.randint(0, 2)]


def texts(values: Values) -> list[Request]:
    """Texts that may be no lineages, and lineages that are shortened."""
    requests: list[Request] = []
    for _ in range(values.dice.randint(1, 6)):
        if values.chance(3):
            request = {"op": "render", "lineage": values.lineage(values.dice.choice([3, 40]))}
            if not values.chance(3):
                request["max_bytes"] = _bound(values)
            if values.chance(3):
                request["egress"] = _egress(values)
            requests.append(request)
        else:
            requests.append({"op": "parse", "text": values.any_text()})
    return requests


def scopes(values: Values, *, baggage: bool = False) -> list[Request]:
    """Requests of several callers, whose scopes are open at the same time.

    With *baggage* they come with members of others, which requests take along.
    """
    dice = values.dice
    open_: list[str] = []
    requests: list[Request] = []
    for nth in range(dice.randint(3, 14)):
        if not open_ or values.chance(6):
            requests.append({**_opening(values, open_, baggage=baggage), "as": f"s{nth}"})
            open_.append(f"s{nth}")
            continue
        scope = dice.choice(open_)
        requests.append({**_in_scope(values), "scope": scope})
        if requests[-1]["op"] == "close_scope":
            open_.remove(scope)
    requests += [{"op": "lineage", "scope": scope} for scope in open_]
    return requests


def _opening(values: Values, open_: list[str], *, baggage: bool) -> Request:
    dice = values.dice
    if open_ and values.chance(3):
        token = values.promise()
        return {"op": "fulfilling", "scope": dice.choice(open_), "token": _token(token)}
    if values.chance(2):
        return {"op": "open_scope", "headers": _one_of_a_name(values, baggage=baggage)}
    return {"op": "open_scope", **({} if values.chance(3) else {"text": values.text()})}


def _token(promise: dict[str, Any]) -> str:
    from tests.agent._values import promise_of

    return promise_of(promise).token


def _one_of_a_name(values: Values, *, baggage: bool) -> list[list[str]]:
    """Headers that come once each."""
    found = [["x", "1"]] if values.chance(3) else []
    if text := _baggage(values, others=baggage):
        found.append(["baggage", text])
    return found


def _baggage(values: Values, *, others: bool) -> str:
    members = [f"antipode={values.text()}"] if not values.chance(4) else []
    if others and values.chance(2):
        members.append("tenant=acme")
    if others and values.chance(4):
        members.append("user=7")
    values.dice.shuffle(members)
    return ",".join(members)


def _in_scope(values: Values) -> Request:
    match values.dice.randrange(6):
        case 0:
            return {"op": "lineage"}
        case 1:
            return {"op": "merge_into", "text": values.text()}
        case 2:
            headers = [["baggage", "tenant=acme"]] if values.chance(2) else []
            return {"op": "request_headers", "headers": headers}
        case 3:
            return {"op": "response_headers"}
        case 4:
            return {"op": "receive", "headers": [["antipode-lineage", values.any_text()]]}
        case _:
            return {"op": "close_scope" if values.chance(3) else "lineage"}


def barriers(values: Values) -> list[Request]:
    """One script of level 4."""
    return [{"op": "script", "script": script(values)}]


#: By name, which is what `LACKING` of the conformance tests says of an agent that lacks it.
FAMILIES: dict[str, Callable[[Values], list[Request]]] = {
    "algebra": algebra,
    "texts": texts,
    "open_scope": scopes,
    "open_scope baggage": partial(scopes, baggage=True),
    "script": barriers,
    **HEADERS,
}


def families(lacking: Collection[str]) -> list[str]:
    """Those that an agent answers which lacks *lacking*."""
    return [
        name for name in FAMILIES if name not in lacking and name.partition(" ")[0] not in lacking
    ]


def sequence(seed: int, names: list[str]) -> list[Request]:
    """The sequence of a seed, which is always the same."""
    dice = random.Random(seed)
    name = dice.choice(names)
    is_timed = name in ("algebra", "texts", "script", "headers sessions")
    return FAMILIES[name](Values(dice, HOUR if is_timed else PAST_HOUR))
