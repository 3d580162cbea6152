"""From one request of a user to the next: what a session cookie says (docs/spec/sessions.md).

Or a session token, by which an event to another user's browser says it. Pure: nothing is signed,
read or set here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from antipode._lineage.codec import encode
from antipode._lineage.errors import LineageDecodeError
from antipode._lineage.grammar import MEMBER_OVERHEAD, to_base36
from antipode._lineage.lineage import Lineage, without_notes
from antipode._request.lineage_text import encode_bounded, filtered, received
from antipode._runtime.clock import SECONDS_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from antipode._runtime.clock import Clock

#: Most bytes of a cookie: its name, ``=``, the content, and the signature.
MAX_COOKIE_BYTES = 1024
#: Cookies of one name that are read of a request: those of other paths and domains are sent, too.
#: Of tokens as many.
MAX_COOKIES = 8
#: The header in which a page sends the tokens of the events that it got.
SESSION_HEADER = "antipode-session"
_SECOND = re.compile(r"0|[1-9a-z][0-9a-z]{0,7}")
_BETWEEN = "!"
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"?')
#: For caches of one kind, over what the answer says to all.
_TARGETED = re.compile(r".+-cache-control|surrogate-control")
_NOT_MODIFIED = 304


class Part(NamedTuple):
    """What the requests of one second added.

    Attributes:
        second: the Unix second in which they did.
        lineage: what they added, without what a later part says as well.
    """

    second: int
    lineage: Lineage


def parts_of(content: str, clock: Clock) -> list[Part]:
    """The parts of a cookie's *content*, as received: nobody wrote in the future.

    Raises:
        LineageDecodeError: it is no content of a cookie.
    """
    now_s = int(clock.unix_s())
    parts: list[Part] = []
    for text in content.split(_BETWEEN):
        second, _, lineage = text.partition(":")
        if not _SECOND.fullmatch(second):
            raise LineageDecodeError("lineage_header", f"{second[:16]!r} is no second")
        parts.append(Part(min(int(second, 36), now_s), received(lineage, clock)))
    return parts


def living(parts: Iterable[Part], *, now_s: int, max_age_s: float) -> list[Part]:
    """Those of *parts* that are not older than *max_age_s*."""
    return [part for part in parts if now_s - part.second <= max_age_s]


def worth_carrying(added: Lineage, *, now_s: int, max_age_s: float) -> Lineage:
    """*added* without what had its hour's end over *max_age_s* ago, open branches, and notes.

    Requests that read with stored lineages add writes of long ago: those are everywhere. Nobody
    waits for branches: a page that starts one in the background needs no cookie for that.
    """
    oldest_h = (now_s - max_age_s) / SECONDS_PER_HOUR
    old = [write for write in added if write.written_hour > 0 and write.written_hour + 1 < oldest_h]
    for write in old:
        added = added.remove(write)
    return without_notes(added.beyond(Lineage(open_branches=added.open_branches)))


def joined(parts: Iterable[Part]) -> list[Part]:
    """*parts*, newest first, one for each second, each with what it adds to the newer ones."""
    seconds: dict[int, Lineage] = {}
    for second, lineage in parts:
        seconds[second] = seconds.get(second, Lineage()).merge(lineage)
    found: list[Part] = []
    newer = Lineage()
    for second in sorted(seconds, reverse=True):
        whole = newer.merge(seconds[second])
        left = whole.beyond(newer)
        if not left.empty:
            found.append(Part(second, left))
        newer = whole
    return found


def content_of(parts: Iterable[Part], *, room: int, egress: Collection[str] | None = None) -> str:
    """The content of *parts* in at most *room* bytes, with a mark for what is lost.

    Parts become one before anything is lost: of two, with the second of the newer.
    """
    if egress is not None:
        allowed = frozenset(egress)
        parts = [Part(second, filtered(lineage, allowed)) for second, lineage in parts]
    found = joined(parts)
    content = _BETWEEN.join(map(_text, found))
    while len(content) > room and len(found) > 1:
        (second, newer), (_, older) = found[-2:]
        found[-2:] = [Part(second, newer.merge(older))]
        content = _BETWEEN.join(map(_text, found))
    if len(content) > room:
        (part,) = found
        left = room - len(_start(part)) + MEMBER_OVERHEAD
        content = _start(part) + encode_bounded(part.lineage, max_bytes=left)
    return content


def _text(part: Part) -> str:
    return _start(part) + encode(part.lineage)


def _start(part: Part) -> str:
    return f"{to_base36(part.second)}:"


def values_of(headers: Iterable[str], name: str) -> list[str]:
    """The values of the cookies named *name* in the Cookie *headers*, in their order.

    What has no ``=`` is no pair of a name and a value, and none of them.
    """
    found: list[str] = []
    for header in headers:
        for pair in header.split(";"):
            key, sign, value = pair.partition("=")
            if sign and key.strip() == name:
                found.append(value.strip().strip('"'))
    return found


def tokens_of(headers: Iterable[str]) -> list[str]:
    """The tokens in the *headers* of their name, in their order; a page may send none."""
    tokens = (each.strip() for header in headers for each in header.split(","))
    return [each for each in tokens if each]


def caching(status: int, headers: Iterable[tuple[str, str]]) -> str | None:
    """The ``Cache-Control`` of a response that sets a cookie; None where it must not set one.

    A shared cache that may keep the response would give one user's cookie to others.

    Args:
        status: of the response.
        headers: all of its headers, their names in lower case.
    """
    headers = [*headers]
    given = ", ".join(value for name, value in headers if name == "cache-control")
    for name, value in headers:
        if _TARGETED.fullmatch(name) and not _is_private(_directives(value)):
            return None
    said = _directives(given)
    if _is_private(said):
        return given
    expires = any(name == "expires" for name, _ in headers)
    if status == _NOT_MODIFIED or _has_lifetime(said, expires=expires):
        return None
    return f"{given}, private" if given else "private"


def _directives(value: str) -> dict[str, str]:
    """The directives of *value*, in lower case, with their arguments; quoted ones are ``""``."""
    pairs = (each.partition("=") for each in _QUOTED.sub('""', value.lower()).split(","))
    return {name.strip(): argument.strip() for name, _, argument in pairs}


def _is_private(directives: dict[str, str]) -> bool:
    """Whether shared caches must not keep it; ``private="name"`` says so of one header alone."""
    return "no-store" in directives or directives.get("private") == ""


def _has_lifetime(directives: dict[str, str], *, expires: bool) -> bool:
    """Whether caches are allowed to keep it, not only to ask again each time."""
    ages = [directives[name] for name in ("max-age", "s-maxage") if name in directives]
    if "public" in directives or any(age.strip("0") for age in ages):
        return True
    return expires and not ages and "no-cache" not in directives
