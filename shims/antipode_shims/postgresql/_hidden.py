"""A statement's text without what hides words: comments, texts, names in quotes. Pure.

No text takes more than linear time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

IDENTIFIER: Final = r"[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*"
#: Of a text in dollars: a name without any, else each of its beginnings would be tried as one.
_TAG = r"\$(?:[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*)?\$"
#: What hides words; of a comment and of a text in dollars, how it begins. A text in plain quotes
#: with a backslash means one thing or another with the server's settings.
_HIDDEN = re.compile(
    r"--[^\r\n]*"
    r"|(?<![\w$])[eE]'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'"
    r"|'[^'\\]*(?:''[^'\\]*)*'"
    r'|"[^"]*(?:""[^"]*)*"'
    r"|(?P<comment>/\*)"
    rf"|(?P<dollars>(?<![\w$]){_TAG})"
    r"|(?P<unreadable>['\"]|\*/)",
    re.DOTALL,
)
_TAGS = re.compile(_TAG)
_COMMENTS = re.compile(r"/\*|\*/")
#: A text without these hides nothing.
_HIDES = re.compile(r"['\"$]|--|/\*|\*/")
_NUMBER = re.compile(r"(?<![\w$.])\d[\d.]*")


def unhidden(sql: str, blank: Callable[[str], str]) -> str | None:
    """A text in which *blank* replaces what hides words; None where one cannot tell."""
    if _HIDES.search(sql) is None:
        return sql
    pieces: list[str] = []
    at = 0
    while (found := _HIDDEN.search(sql, at)) is not None:
        end = found.end() if found.lastgroup is None else _end(sql, found)
        if end < 0:
            return None
        pieces += sql[at : found.start()], blank(sql[found.start() : end])
        at = end
    pieces.append(sql[at:])
    return "".join(pieces)


def _end(sql: str, found: re.Match[str]) -> int:
    """Where what begins with *found* ends; -1 where it does not."""
    if found.lastgroup == "comment":
        return _end_of_comment(sql, found.end())
    return _end_of_dollars(sql, found) if found.lastgroup == "dollars" else -1


def _end_of_comment(sql: str, start: int) -> int:
    """It may have others within."""
    depth = 1
    for mark in _COMMENTS.finditer(sql, start):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return -1


def _end_of_dollars(sql: str, tag: re.Match[str]) -> int:
    """Another one may follow without a space."""
    following: re.Match[str] | None = tag
    end = -1
    while following is not None:
        at = sql.find(following[0], following.end())
        if at < 0:
            return -1
        end = at + len(following[0])
        following = _TAGS.match(sql, end)
    return end


def valueless(plain: str) -> str:
    """A text that hides nothing, with one number for all that are values."""
    return _NUMBER.sub("0", plain)
