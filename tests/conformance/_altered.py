"""Vectors that are wrong in one place of what they expect: whoever replays them must notice.

Each file has one for each place in which vectors of a kind expect something.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from tests.conformance import _vectors as vectors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conformance._vectors import Vector

_BARRIER = ("code", "outcomes/*/status", "outcomes/*/reported", "outcomes/*/server", "finished_s")
#: What vectors of a kind expect, by level: paths, with `*` for each element of a list.
_LEVELS: dict[str, dict[str, list[str]]] = {
    "golden/v1": {"values": ["lineage", "text"]},
    "L1-codec": {
        "valid": ["lineage", "canonical"],
        "limits": ["writes", "unknown"],
        "errors": ["code"],
    },
    "L2-algebra": {
        "scripts": [
            f"steps/*/{name}"
            for name in ("text", "equal", "code", "writes", "incomplete", "promises", "unknown")
        ]
    },
    "L3-headers": {
        "calls": ["calls/*/sent", "calls/*/after"],
        "finding_ids": ["id"],
        "hosts": ["sent"],
        "records": [
            *("findings", "lints", "automatic_reads", "reads_guarded", "reads_unguarded"),
            *("datastores_unread", "refused"),
        ],
        "requests_in": ["lineage", "others"],
        "responses_out": ["answer"],
        "scopes": ["steps/*/lineage"],
        "session_signatures": ["value", "read"],
        "sessions": [
            f"requests/*/{name}"
            for name in ("starts", "counts", "content", "cache_control", "token")
        ],
        "strips": ["kept"],
        "verdicts": [
            *("steps/*/verdict", "steps/*/writes"),
            *("guards_after", "counted", "lints"),
        ],
    },
    "L4-barrier": {
        "scripts": [
            *(f"barriers/*/expect/{name}" for name in (*_BARRIER, "ok", "incomplete", "eta_s")),
            *(f"reads/*/expect/{name}" for name in (*_BARRIER, "looks", "served", "at_primary")),
            *("stores/*/looks", "stores/*/fences_asked"),
            *("scope_after", "floors_after", "promises_after"),
        ]
    },
    "C1-calls": {kind: ["is"] for kind in ("digests", "headers", "identities", "nested")},
    "L4-guard": {"guards": ["expect/steps", "expect/outcome"]},
    "S1-positions": {
        "commits": ["sessions/*/commits/*/writes"],
        "covers": ["lineage"],
        "keys": ["keys"],
        "looks": ["writes/*/status"],
        "positions": ["position"],
        "publications": ["steps/*/write"],
        "scripts": ["steps/*/status"],
        "servers": ["waits", "numbers"],
        "sets": ["logs"],
        "tokens": ["lineage", "notes"],
    },
    "S2-commands": {
        "batches": ["reads", "may_write", "repeatable"],
        "calls": ["calls"],
        "catalogues": ["may_write"],
        "expressions": ["expression"],
        "groups": ["does"],
        "keys": ["keys"],
        "statements": ["stamped", "item"],
        "views": ["may_write"],
    },
    "S3-stored": {
        "documents": ["lineage", "match"],
        "labels": ["sent"],
        "messages": ["lineage"],
        "packs": ["companion"],
        "rows": ["lineage"],
        "selects": ["columns"],
        "sought": ["sought"],
        "unpacks": ["lineage", "match"],
        "updates": ["after"],
    },
}
_LEVELS["L4-automatic"] = _LEVELS["L4-barrier"]
_LINEAGES = frozenset({"lineage", "after", "starts", "scope_after"})
_WRITE = {"datastore": "altered", "key": "log", "version": "1"}


def every() -> list[Vector]:
    """For each kind in each file, and each place of what it expects, a vector that errs there."""
    found: dict[tuple[str, str, str, str], Vector] = {}
    for vector in vectors.every(*vectors.FOLDERS):
        if vector.kind == "refused_hosts":
            host = vector._replace(content="altered.internal")
            found.setdefault((vector.level, vector.file, vector.kind, ""), host)
            continue
        for path in _LEVELS[vector.level][vector.kind]:
            place = (vector.level, vector.file, vector.kind, path)
            altered = None if place in found else _altered(vector, path)
            if altered is not None:
                found[place] = altered
    return list(found.values())


def _altered(vector: Vector, path: str) -> Vector | None:
    """*vector* with something else in the first place of *path*; None where it expects nothing."""
    content = deepcopy(vector.content)
    for holder, name in _places(content, path.split("/")):
        if _is_expected(content, holder, name):
            holder[name] = _other(name, holder[name])
            content["name"] = f"{content['name']} ({path})"
            return vector._replace(content=content)
    return None


def _places(content: Any, path: list[str]) -> Iterator[tuple[dict[str, Any], str]]:
    name, *rest = path
    if not isinstance(content, dict) or name not in content:
        return
    if not rest:
        yield content, name
    elif rest[0] == "*":
        for each in content[name]:
            yield from _places(each, rest[1:])
    else:
        yield from _places(content[name], rest)


def _is_expected(content: dict[str, Any], holder: dict[str, Any], name: str) -> bool:
    """Whether it is what must come out, and nothing that goes in or may be anything."""
    if "optional" in content or "as" in holder:
        return False
    match name:
        case "writes" | "verdict" if "verdict" in holder:
            return bool(holder["verdict"])
        case "lineage" if "op" in holder:
            return bool(holder["op"] == "holds")
        case "cache_control":
            return holder["content"] is not None
        case "ok" | "incomplete" if "finished_s" in holder:
            return "code" not in holder
        case _:
            return True


def _other(name: str, value: Any) -> Any:
    other: Any
    match value:
        case bool():
            other = not value
        case int() | float():
            other = value + 1
        case str():
            other = f"{value}x"
        case None:
            other = "altered"
        case {"at_least": least, "at_most": most}:
            other = {"at_least": least + 1_000, "at_most": most + 1_000}
        case list():
            other = value[:-1] if value else ["altered"]
        case _ if value:
            other = {}
        case _:
            other = {"writes": [_WRITE]} if name in _LINEAGES else {"altered": "x"}
    return other


def write(altered: list[Vector], root: Path) -> None:
    """Write the files of *altered* below *root*."""
    for level, file in {(each.level, each.file) for each in altered}:
        inside = [each for each in altered if (each.level, each.file) == (level, file)]
        content: dict[str, Any] = {"store": inside[0].store} if inside[0].store else {}
        for each in inside:
            content.setdefault(each.kind, []).append(each.content)
        (root / level).mkdir(parents=True, exist_ok=True)
        (root / level / file).write_text(json.dumps(content), encoding="utf-8")
