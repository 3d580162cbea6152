"""gRPC metadata: what of ours is in it, what goes into it, and how much it may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode._lineage.grammar import MEMBER_OVERHEAD
from antipode._request.lineage_text import encode_bounded, readable
from antipode._request.scope import INCOMING_SUBJECT
from antipode._runtime.config import config
from antipode._runtime.metrics import count, log_once
from antipode.propagation import (
    BAGGAGE,
    MEMBER,
    RESPONSE_HEADER,
    SENT_HEADER,
    members,
    with_member,
    without_member,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from antipode.integrations._outgoing import Outgoing

    Entry = tuple[str, str | bytes]
    Entries = tuple[Entry, ...]

#: What a receiver takes by default; beyond it gRPC refuses calls, first a few, then all.
MAX_BYTES = 8192
#: What HTTP/2 counts for each entry besides its characters.
ENTRY_BYTES = 32
#: Left free in a request: gRPC's own entries, and what call credentials add after us.
_REQUEST_SPARE = 2048
#: The same without credentials, for what says little more than that something is missing.
_REQUEST_LEAST = 768
#: gRPC's own entries of a response; its message comes on top.
_RESPONSE_SPARE = 448
#: The least room that a lineage is given: less might not hold its own mark.
_LEAST = 64
_SENT = (SENT_HEADER, "1")
#: What gRPC puts into a request that it sends again because of a retry policy.
_ATTEMPTS = "grpc-previous-rpc-attempts"
#: What of a request's metadata says something of its lineage.
OURS = frozenset({BAGGAGE, SENT_HEADER, _ATTEMPTS})
#: The characters of a status message that are sent as they are.
_PLAIN = frozenset(range(0x20, 0x7F)) - {ord("%")}


def read_request(metadata: Iterable[Entry] | None) -> tuple[list[str], bool, bool]:
    """What the metadata of an incoming request says.

    Returns:
        The values of its baggage entries; whether it was sent with a lineage; and whether an
        earlier attempt of the same call may have been here.
    """
    found: list[str] = []
    sent = repeated = False
    for key, value in metadata or ():
        if key not in OURS:
            continue
        if key == BAGGAGE:
            found.append(_text(value))
        elif key == SENT_HEADER:
            sent = True
        else:
            repeated = True
    return found, sent, repeated


def sending(call: Outgoing, metadata: Iterable[Entry] | None, fixed: int) -> Entries:
    """The metadata of the request of *call* in place of the application's *metadata*.

    Args:
        call: the call. Where it carries nothing, *metadata* stays as it is, but for a lineage
            that may not go there.
        metadata: what the application, and instrumentations outside of ours, send.
        fixed: characters of the method and the target, which gRPC sends as well.
    """
    entries: Entries = tuple(metadata) if metadata else ()
    held: list[str] = []
    if not call.text:
        for key, value in entries:
            if key == BAGGAGE:
                held.append(_text(value))
        return _with_header(entries, call.baggage(",".join(held))) if held else entries
    said, used = False, fixed
    for key, value in entries:
        used += ENTRY_BYTES + len(key) + len(value)
        if key == BAGGAGE:
            held.append(_text(value))
        elif key == SENT_HEADER:
            said = True
    if held != [f"{MEMBER}={call.text}"]:
        header = call.baggage(",".join(held) or None)
        if header is not None:
            ours = (BAGGAGE, header)
            entries = _with_header(entries, header) if held else (*entries, ours)
            used += len(header) + ENTRY_BYTES + len(BAGGAGE)
    if not said:
        entries = (*entries, _SENT)
    return entries if used <= MAX_BYTES - _REQUEST_SPARE else _shortened(entries, fixed)


def _with_header(entries: Entries, header: str | None) -> Entries:
    """*entries* with *header* as the only baggage; empty for none, None for no change."""
    if header is None:
        return entries
    rest = tuple([entry for entry in entries if entry[0] != BAGGAGE])
    return (*rest, (BAGGAGE, header)) if header else rest


def _shortened(entries: Entries, fixed: int) -> Entries:
    """*entries* with a lineage that fits with them: never too large because of us."""
    used = size(entries) + fixed
    header = ",".join([_text(value) for key, value in entries if key == BAGGAGE])
    texts = members([header])
    used -= sum(map(len, texts))
    room = MAX_BYTES - _REQUEST_SPARE - used
    if room < _LEAST:
        room = min(_LEAST, MAX_BYTES - _REQUEST_LEAST - used)
    text = fitting(texts, room)
    if texts == (text,):
        return entries
    others = without_member(header) or ""
    # Without the member, the entry that says it was sent informs the service that it is missing.
    return _with_header(entries, with_member(others, text) if text else others)


def fitting(texts: Iterable[str], room: int) -> str:
    """The lineages *texts* as one of at most *room* bytes; empty where that is too little."""
    texts = tuple(texts)
    if len(texts) == 1 and len(texts[0]) <= room:
        return texts[0]
    count("grpc_metadata_over_limit")
    message = "metadata exceeds %d bytes: its lineage is cut, and marked as incomplete"
    log_once("grpc_metadata_over_limit", "", "", message, MAX_BYTES)
    if room < _LEAST:
        return ""
    lineages = [readable(INCOMING_SUBJECT, text) for text in texts]
    merged = lineages[0].merge(*lineages[1:])
    return encode_bounded(merged, max_bytes=room + MEMBER_OVERHEAD, egress=config().egress)


def answers(metadata: Iterable[Entry] | None) -> list[str]:
    """The lineages in the trailing *metadata* of an answer."""
    found: list[str] = []
    for key, value in metadata or ():  # Every call asks: a comprehension would be a call more.
        if key == RESPONSE_HEADER:
            found.append(value if isinstance(value, str) else _text(value))
    return found


def trailing_room(own: Entries, details: str | bytes | None) -> int:
    """The bytes that a lineage may have with *own* trailing metadata and a status message."""
    used = size(own) + _encoded(details) + _RESPONSE_SPARE + ENTRY_BYTES + len(RESPONSE_HEADER)
    return MAX_BYTES - used


def may_have_lost_answer(metadata: Iterable[Entry] | None) -> bool:
    """Whether trailing *metadata* is so large that an answer may have found no room in it."""
    return bool(metadata) and trailing_room(tuple(metadata or ()), None) < _LEAST


def size(entries: Iterable[Entry]) -> int:
    """The bytes of *entries* as HTTP/2 counts them."""
    return sum([ENTRY_BYTES + len(key) + len(value) for key, value in entries])


def _encoded(details: str | bytes | None) -> int:
    """The bytes of a status message, of which all but plain characters take three."""
    if not details:
        return 0
    raw = details.encode(errors="replace") if isinstance(details, str) else details
    return sum([1 if byte in _PLAIN else 3 for byte in raw])


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")
