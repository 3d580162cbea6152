"""Redis's own glob patterns (manual, "KEYS"), matched here as the server matches them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def any_of(patterns: Iterable[str]) -> re.Pattern[bytes]:
    """What matches the keys that one of *patterns* names."""
    return re.compile(b"|".join(_regex(each.encode()) for each in patterns), re.DOTALL)


def _regex(pattern: bytes) -> bytes:
    found, at = b"", 0
    while at < len(pattern):
        one = pattern[at : at + 1]
        if one == b"*":
            found += b".*"
        elif one == b"?":
            found += b"."
        elif one == b"[":
            part, at = _class(pattern, at + 1)
            found += part
        else:
            if one == b"\\" and at + 1 < len(pattern):
                at += 1
                one = pattern[at : at + 1]
            found += re.escape(one)
        at += 1
    return b"(?:" + found + b")"


def _class(pattern: bytes, at: int) -> tuple[bytes, int]:
    """A class of bytes, and where it ends; the end of the pattern ends it, too."""
    negated = pattern[at : at + 1] == b"^"
    at += negated
    members: set[int] = set()
    while at < len(pattern) and pattern[at : at + 1] != b"]":
        if pattern[at : at + 1] == b"\\" and at + 1 < len(pattern):
            at += 1
            members.add(pattern[at])
        elif pattern[at + 1 : at + 2] == b"-" and at + 2 < len(pattern):
            first, last = sorted((pattern[at], pattern[at + 2]))
            members.update(range(first, last + 1))
            at += 2
        else:
            members.add(pattern[at])
        at += 1
    if negated:
        members = set(range(256)) - members
    if not members:
        return b"(?!)", at
    return b"[" + b"".join(b"\\x%02x" % each for each in sorted(members)) + b"]", at
