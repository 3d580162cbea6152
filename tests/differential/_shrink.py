"""The shortest sequence that two agents still answer differently."""

from __future__ import annotations

import copy
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ._pair import Difference
    from ._sequences import Request

#: Where a value is found in JSON: names and numbers.
_Path = tuple[Any, ...]
#: Names without which a request, a step or a value makes no sense.
_NEEDED = frozenset(
    word
    for words in (
        "op as of to from kind given scope text token headers url steps calls requests stores",
        "barriers reads datastore key at_s lineage timeout_s id expires_s subject reason write",
        "datastores keys content came",
    )
    for word in words.split()
)


def shrink(
    found: Difference,
    differs: Callable[[list[Request]], Difference | None],
    *,
    seconds: float = 60.0,
) -> Difference:
    """Leave out what does not matter, one part after the other, until everything does.

    Args:
        found: the difference.
        differs: what is different of a shorter sequence.
        seconds: after how many it is short enough.
    """
    until, went_on = time.monotonic() + seconds, True
    while went_on:
        went_on = False
        for shorter in _shorter(found.sequence):
            if time.monotonic() > until:
                return found
            other = differs(shorter)
            if other is not None and _as_good(found, other):
                found, went_on = other, True
                break
    return found


def _as_good(found: Difference, other: Difference) -> bool:
    """Whether a difference is no mere mistake in what was asked."""
    return _mistakes(other) <= _mistakes(found)


def _mistakes(found: Difference) -> set[str]:
    return {"agent", "StoreError"} & {found.left.get("code"), found.right.get("code")}


def _shorter(sequence: list[Request]) -> Iterator[list[Request]]:
    """Sequences with a part less, those that lack most first."""
    for path, part in list(_parts(sequence)):
        if isinstance(part, list) and not _is_pair(path):
            size = len(part)
            while size:
                for at in range(0, len(part), size):
                    yield _with(sequence, path, part[:at] + part[at + size :])
                size //= 2
        elif isinstance(part, dict):
            for name in part.keys() - _NEEDED:
                yield _with(sequence, path, {each: part[each] for each in part if each != name})
    for path, part in list(_parts(sequence)):
        if isinstance(part, str) and path[-1] in ("text", "lineage", 1) and len(part) > 1:
            for item in part.split("~")[1:]:
                yield _with(sequence, path, part.replace(f"~{item}", "", 1))


def _parts(value: Any, path: _Path = ()) -> Iterator[tuple[_Path, Any]]:
    yield path, value
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _parts(each, (*path, name))
    elif isinstance(value, list):
        for nth, each in enumerate(value):
            yield from _parts(each, (*path, nth))


def _is_pair(path: _Path) -> bool:
    """Whether a header or a mark is there, of which no half makes sense."""
    return len(path) > 1 and path[-2] in ("headers", "answer", "incomplete", "marks")


def _with(sequence: list[Request], path: _Path, part: Any) -> list[Request]:
    """*sequence* with *part* at *path*."""
    if not path:
        made: list[Request] = part
        return made
    made = copy.deepcopy(sequence)
    holder: Any = made
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = part
    return made
