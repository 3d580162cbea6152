"""Random vectors of level 3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._values import Values

_HOSTS = (
    "posts.internal",
    "users.internal",
    "POSTS.internal",
    "127.0.0.1",
    "[::1]",
    "a.b.posts.internal",
)
_ENTRIES = (
    "posts.internal",
    "*.internal",
    "*.posts.internal",
    "users.internal:8080",
    "127.0.0.1",
    "[::1]:80",
    "Posts.Internal.",
)
_STATUSES = (200, 201, 204, 301, 304, 400, 402, 404, 408, 409, 429, 500, 501, 502, 503, 505)
_MEMBERS = (
    "tenant=acme",
    "n=7",
    "user=7;p=1",
    "x=",
    " y = 2 ",
    "antipode",
    "=",
    "z=%20",
    "q",
    "u=%zz",
    "é=1",
)
_CACHES = (
    "no-store",
    "private",
    "public",
    "max-age=0",
    "max-age=60",
    "s-maxage=1",
    "no-cache",
    'private="x"',
    "must-revalidate",
    "MAX-AGE=5",
    "max-age=x",
    "",
)


def _member(values: Values) -> str:
    text = values.any_text() if values.chance(3) else values.text()
    if values.chance(6):
        text = text.replace("~", "%7E").replace(".", "%2e" if values.chance(2) else ".")
    return f"antipode={text}" + (
        values.dice.choice([";p=1", " ", "; q"]) if values.chance(8) else ""
    )


def _baggage(values: Values) -> str:
    dice = values.dice
    members = [_member(values) for _ in range(dice.choice([0, 1, 1, 1, 2]))]
    members += dice.sample(_MEMBERS, dice.choice([0, 0, 1, 2]))
    dice.shuffle(members)
    return dice.choice([",", ",", ", "]).join(members)


def _headers(values: Values) -> list[list[str]]:
    """Of a request that came."""
    dice = values.dice
    found = [["baggage", _baggage(values)] for _ in range(dice.choice([0, 1, 1, 1, 2]))]
    if values.chance(4):
        found.append(["antipode-sent", "1"])
    if values.chance(4):
        found.append(["x", "1"])
    dice.shuffle(found)
    return found


def requests_in(values: Values) -> dict[str, Any]:
    """Headers that come in."""
    return {"headers": _headers(values)}


def responses_out(values: Values) -> dict[str, Any]:
    """What an answer brings back."""
    adds = [_unminted(values.write()) for _ in range(values.dice.randint(0, 3))]
    return {"headers": _headers(values), "adds": adds}


def _unminted(write: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in write.items() if name != "minted_h"}


def _url(values: Values) -> str:
    dice = values.dice
    port = dice.choice(["", "", ":8080", ":80", ":443"])
    scheme = dice.choice(["http", "http", "https"])
    return (
        f"{scheme}://{dice.choice(_HOSTS)}{port}{dice.choice(['', '/', '/v1', '/v1/x', '/old/a'])}"
    )


def _end(values: Values) -> dict[str, Any]:
    if values.chance(4):
        return {"unknown": True}
    found: dict[str, Any] = {"status": values.dice.choice(_STATUSES)}
    if values.chance(2):
        found["lineage"] = values.any_text() if values.chance(4) else values.text()
    return found


def _call(values: Values) -> dict[str, Any]:
    dice = values.dice
    found: dict[str, Any] = {"url": _url(values), "headers": []}
    if values.chance(2):
        found["headers"] = [["baggage", _baggage(values)]]
    if values.chance(4):
        found["headers"].append(["x", "1"])
    if values.chance(6):
        found["ended"] = True
    if values.chance(5):
        found["end"] = [_end(values) for _ in range(dice.randint(2, 3))]
    elif not values.chance(5):
        found["end"] = _end(values)
    return found


def _peers(values: Values) -> dict[str, str]:
    dice = values.dice
    paths = dice.sample(["", "/v1", "/old", "/v1/x"], dice.randint(1, 3))
    hosts = ("posts.internal", "*.internal", "users.internal:8080", "127.0.0.1")
    return {dice.choice(hosts) + path: dice.choice(["always", "never", "auto"]) for path in paths}


def calls(values: Values) -> dict[str, Any]:
    """Calls one after the other."""
    dice = values.dice
    settings: dict[str, Any] = {}
    if values.chance(4):
        settings["egress"] = values.datastores[: dice.randint(0, 2)]
    if values.chance(4):
        settings["egress_hosts"] = dice.sample(_ENTRIES, dice.randint(0, 2))
    if values.chance(4):
        settings["max_lineage_bytes"] = dice.choice([64, 80, 128, 1024])
    if values.chance(3):
        settings["peers"] = _peers(values)
    found = {
        "scope": values.lineage(dice.choice([2, 6])),
        "calls": [_call(values) for _ in range(dice.randint(1, 4))],
    }
    return {**found, **({"settings": settings} if settings else {})}


def sessions(values: Values) -> dict[str, Any]:  # noqa: C901 - each part of a request
    """Requests of one user, with cookies."""
    dice, now_s, requests = values.dice, 1_800_000_000, []
    for _ in range(dice.randint(1, 4)):
        now_s += dice.choice([0, 1, 5, 30, 61])
        request: dict[str, Any] = {"at_s": now_s}
        if values.chance(2):
            request["cookies"] = [_cookie(values, now_s) for _ in range(dice.choice([1, 1, 2, 9]))]
        if values.chance(3):
            request["headers"] = _headers(values)
        if not values.chance(3):
            request["adds"] = [values.write() for _ in range(dice.randint(1, 4))]
        if values.chance(5):
            request["marks"] = [values.mark()]
        if values.chance(8):
            request["open_branches"] = "2"
        if values.chance(4):
            request["answer"] = _answer(values)
        if values.chance(8):
            request["status"] = dice.choice([200, 304, 404, 500])
        requests.append(request)
    found: dict[str, Any] = {"requests": requests}
    if values.chance(4):
        found["room"] = dice.choice([30, 60, 100, 200])
    if values.chance(4):
        found["session_max_age_s"] = dice.choice([1, 30, 3601, 7200])
    if values.chance(6):
        found["egress"] = values.datastores[: dice.randint(0, 2)]
    return found


def _cookie(values: Values, now_s: int) -> str | None:
    dice = values.dice
    if values.chance(8):
        return None
    if values.chance(8):
        return dice.choice(
            [
                "",
                "!",
                "1~ka.5.k",
                "tro8w0:",
                "tro8w0:1!",
                ":1",
                "0:1",
                "TRO8W0:1",
                "123456789:1",
                "00tro8w:1",
            ]
        )
    ages = [0, 1, 30, 60, 61, -30, 10**6]
    return "!".join(
        f"{_base36(now_s - dice.choice(ages))}:"
        + (values.any_text() if values.chance(8) else values.text(2))
        for _ in range(dice.randint(1, 3))
    )


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits or "0"


def _answer(values: Values) -> list[list[str]]:
    dice = values.dice
    found = []
    if not values.chance(4):
        kinds = dice.sample(_CACHES, dice.randint(1, 3))
        found.append(["cache-control", dice.choice([", ", ","]).join(kinds)])
    if values.chance(4):
        found.append(["expires", "0"])
    if values.chance(4):
        name = dice.choice(["cdn-cache-control", "surrogate-control", "x-cache-control"])
        found.append([name, dice.choice(_CACHES)])
    return found


def session_signatures(values: Values) -> dict[str, Any]:
    """A content that is signed, and a value that came."""
    keys = ["a secret of this service", "the secret before it", "größe größe größe"]
    values.dice.shuffle(keys)
    content = f"tro8w0:{values.text()}"
    came = content + values.dice.choice(
        [".", "", ".IB7m9cwvrnJiuVLJmWuqkB2_1r3MnV9nsG4EjJhudGY", ".x", "é"]
    )
    return {"keys": keys[: values.dice.randint(1, 3)], "content": content, "came": came}


def strips(values: Values) -> dict[str, Any]:
    """What a gateway leaves of headers; each comes once."""
    found = [["baggage", _baggage(values)]] if not values.chance(4) else []
    names = ("antipode-lineage", "antipode-sent", "x")
    found += [[name, "1"] for name in names if values.chance(2)]
    return {"headers": found}


def hosts(values: Values) -> dict[str, Any]:
    """Whether a lineage is sent to a host."""
    entries = values.dice.sample(_ENTRIES, values.dice.randint(0, 3))
    return {"egress_hosts": entries, "url": _url(values)}


def refused_hosts(values: Values) -> dict[str, Any]:
    """A setting that may name no host."""
    entry = values.dice.choice(_ENTRIES)
    for _ in range(values.dice.randint(1, 2)):
        at = values.dice.randrange(len(entry) + 1)
        more = values.dice.choice(["*", ".", ":", "/", "-", "[", "]", "9", "", "@", " ", "_"])
        entry = entry[:at] + more + entry[at + values.dice.randint(0, 1) :]
    return {"entry": entry}


def scopes(values: Values) -> dict[str, Any]:
    """Steps in one context."""
    steps: list[dict[str, Any]] = [{"op": "extract", "headers": _headers(values)}]
    for _ in range(values.dice.randint(1, 8)):
        steps += [_step(values), {"op": "holds"}]
    return {"steps": steps}


def _step(values: Values) -> dict[str, Any]:
    match values.dice.randrange(8):
        case 0 | 1:
            return {"op": "extract", "headers": _headers(values)}
        case 2 | 3:
            return {"op": "write", "write": _unminted(values.write())}
        case 4:
            subject, reason = values.mark()
            return {"op": "mark", "subject": subject, "reason": reason}
        case 5 | 6:
            return {"op": "answered", "text": values.any_text()}
        case _:
            return {"op": values.dice.choice(["end", "end", "stop"])}


def finding_ids(values: Values) -> dict[str, Any]:
    """The id of a finding."""
    parts = [values.dice.choice(["unguarded", "in-doubt"]), values.datastore()]
    parts += [values.dice.choice(["app/views.py", "show", "", "größe"]) for _ in range(4)]
    return {"parts": parts}


_KINDS = {
    made.__name__: made
    for made in (
        requests_in,
        responses_out,
        calls,
        sessions,
        session_signatures,
        strips,
        hosts,
        refused_hosts,
        scopes,
        finding_ids,
    )
}


def _family(kind: str) -> Callable[[Values], list[dict[str, Any]]]:
    def vectors(values: Values) -> list[dict[str, Any]]:
        times = values.dice.randint(1, 3)
        return [
            {"op": "headers", "kind": kind, "given": _KINDS[kind](values)} for _ in range(times)
        ]

    return vectors


FAMILIES = {f"headers {kind}": _family(kind) for kind in _KINDS}
