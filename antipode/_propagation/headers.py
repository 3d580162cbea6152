"""The headers that carry lineages, and how to take them out of others' headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from antipode._lineage.grammar import MEMBER
from antipode._runtime.metrics import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BAGGAGE = "baggage"
#: The header, or gRPC trailing metadata key, that carries a lineage back to the caller.
RESPONSE_HEADER = "antipode-lineage"
#: The header of a request whose baggage held a lineage when it was sent.
SENT_HEADER = "antipode-sent"
#: What the W3C lets a platform limit all baggage to. The header is percent-encoded: all ASCII.
MAX_HEADER_BYTES = 8192
#: And to how many members.
MAX_MEMBERS = 64


class Headers(Protocol):
    """What holds headers: a ``dict``, or what a framework or a client has for them."""

    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, name: str, /) -> str: ...
    def __setitem__(self, name: str, value: str, /) -> None: ...
    def __delitem__(self, name: str, /) -> None: ...


def strip(headers: Headers) -> None:
    """Take everything of Antipode out of the headers of a request or a response, in place.

    For gateways: on the way in, so that nobody outside can make a request wait; on the way out,
    so that no lineage leaves. Other members of the baggage stay as they are.

    Args:
        headers: names, in any case, to values. Where it can hold a name more than once, all of
            its values are read.
    """
    for name in dict.fromkeys(headers):
        kind = name.lower()
        if kind in (RESPONSE_HEADER, SENT_HEADER):
            del headers[name]
        elif kind == BAGGAGE and (kept := without_member(_whole(headers, name))) is not None:
            if kept:
                headers[name] = kept
            else:
                del headers[name]


def _whole(headers: Headers, name: str) -> str:
    """All values of *name*: a mapping that holds several gives one when it is asked for one."""
    for method in ("getlist", "get_list", "getall"):
        if (values := getattr(headers, method, None)) is not None:
            return ",".join(values(name))
    return headers[name]


def without_member(header: str) -> str | None:
    """The baggage *header* without our members; None where it has none."""
    if MEMBER not in header:
        return None
    members = header.split(",")
    kept = [member for member in members if _name(member) != MEMBER]
    return ",".join(kept) if len(kept) < len(members) else None


def has_member(header: str) -> bool:
    """Whether the baggage *header* has a member of ours."""
    return MEMBER in header and any(_name(member) == MEMBER for member in header.split(","))


def with_member(header: str | None, text: str) -> str:
    """The baggage *header* with *text* as its first member, within what platforms pass on."""
    joined = f"{MEMBER}={text}"
    for member in _others(header):
        if len(joined) + len(member) + 1 > MAX_HEADER_BYTES:
            count("baggage_over_limit")
            break
        joined = f"{joined},{member}"
    return joined


def same_request(one: object, other: object) -> bool:
    """Whether two carriers hold the headers of one request.

    Who copies an ASGI request's headers, as FastAPI's own telemetry does, copies the list: the
    pairs in it are the same objects.
    """
    if one is other:
        return True
    if isinstance(one, tuple):
        return _of_metadata(cast("tuple[tuple[str, object], ...]", one), other)
    first = _first_pair(one)
    return first is not None and first is _first_pair(other)


def _of_metadata(entries: tuple[tuple[str, object], ...], other: object) -> bool:
    """Whether the mapping *other* is made of gRPC metadata: the values in it are the same objects.

    Values of one character are, in every request.
    """
    if not isinstance(other, dict):
        return False
    made = cast("dict[str, object]", other)
    return any(made.get(key) is value and len(str(value)) > 1 for key, value in entries)


def _first_pair(carrier: object) -> object:
    if isinstance(carrier, dict):
        pairs = cast("dict[str, object]", carrier).get("headers")
    else:
        pairs = getattr(carrier, "raw", None)
    return cast("list[object]", pairs)[0] if isinstance(pairs, (list, tuple)) and pairs else None


def _others(header: str | None) -> Iterable[str]:
    if not header:
        return ()
    kept = without_member(header)
    return [member for member in (header if kept is None else kept).split(",") if member.strip()]


def _name(member: str) -> str:
    return member.partition("=")[0].strip()
