"""The headers that carry lineages, and how to take them out of others' headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._metrics import count

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

#: The name of the baggage member.
MEMBER = "antipode"
BAGGAGE = "baggage"
#: The header, or gRPC trailing metadata key, that carries a lineage back to the caller.
RESPONSE_HEADER = "antipode-lineage"
#: The header of a request whose baggage held a lineage when it was sent.
SENT_HEADER = "antipode-sent"
#: What the W3C lets a platform limit all baggage to. The header is percent-encoded: all ASCII.
MAX_HEADER_BYTES = 8192


def strip(headers: MutableMapping[str, str]) -> None:
    """Take everything of Antipode out of the headers of a request or a response, in place.

    For gateways: on the way in, so that nobody outside can make a request wait; on the way out,
    so that no lineage leaves. Other members of the baggage stay as they are.

    Args:
        headers: names, in any case, to values.
    """
    for name in list(headers):
        kind = name.lower()
        if kind in (RESPONSE_HEADER, SENT_HEADER):
            del headers[name]
        elif kind == BAGGAGE and (kept := without_member(headers[name])) is not None:
            if kept:
                headers[name] = kept
            else:
                del headers[name]


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


def _others(header: str | None) -> Iterable[str]:
    if not header:
        return ()
    kept = without_member(header)
    return [member for member in (header if kept is None else kept).split(",") if member.strip()]


def _name(member: str) -> str:
    return member.partition("=")[0].strip()
