"""What this shim puts into message headers and finds there. Pure: no client, no I/O.

Three headers. ``baggage`` is the W3C header that OpenTelemetry's instrumentations of pika and
aio-pika write and read, with the lineage as its member ``antipode``: a service that only knows
baggage passes it on. ``antipode-write`` names the message's own write, as the text of a lineage
with that one entry; receipts are kept by it, and a consumer adds it to what it depends on.
``antipode-promise`` is the token of a promise that the message fulfils, where it fulfils one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_plus

from antipode import (
    Lineage,
    LineageDecodeError,
    LineageTooLarge,
    Promise,
    deserialize,
    serialize,
)
from antipode.propagation import MEMBER
from antipode.shim import (
    Scope,
    config,
    count,
    decode,
    encode,
    is_of_writes,
    log_once,
    readable,
    record_sent,
    scope_in,
    stored_text,
    unreadable,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import WriteId

BAGGAGE = "baggage"
WRITE = "antipode-write"
PROMISE = "antipode-promise"
#: Subject of ``incomplete`` when an unreadable header does not say whose it is.
UNKNOWN_SUBJECT = BAGGAGE

# What the SDKs put up with (W3C baggage, section 3.3.2): over it they drop all or part.
MAX_HEADER_BYTES = 8192
MAX_MEMBERS = 64
# No broker in its default configuration passes a larger header; reading it would be work for an
# attacker's benefit.
_MAX_READ = 131_072
# What properties take besides headers: each is a text of at most 255 bytes, or less.
_OTHER_PROPERTIES = 4096
# What a header takes whose value is a table, a list or a number, or is taken for too long.
_OTHER_VALUE = 1024
# Of a character in UTF-8.
_MOST_BYTES = 4
_EMPTY = Lineage()


def outgoing(
    headers: Mapping[str, Any] | None,
    *,
    datastore: str,
    lineage: Lineage | None = None,
    write: WriteId | None = None,
    fulfils: Promise | None = None,
    destination: str = "",
) -> dict[str, Any] | None:
    """A copy of *headers* that carries a lineage; *headers* itself is not touched.

    None where there are none and nothing is to be said: who consumes it sees no headers.

    A lineage that is in *headers* already, because an instrumentation injected it or the
    application copied it from another message, is merged into what is sent: it may say more
    than the scope does. Without a scope and without *lineage* it stays as it is.

    Args:
        headers: the application's.
        datastore: for counting.
        lineage: what to send; None: the current lineage.
        write: the message's own write; a copied one of another message is removed.
        fulfils: a promise that the message fulfils.
        destination: its queue, topic or exchange, for a dry run.
    """
    sent = dict(headers or {}) if fulfils is None else fulfil(headers, fulfils)
    sent.pop(WRITE, None)
    if write is not None:
        sent[WRITE] = encode(Lineage([write]))
    current = scope_in()
    held = current if lineage is None else Scope(lineage)
    if held is not None:
        if current is not None and held is not current:
            held.notes = current.notes  # A dry run's, of this request whatever it sends.
            current.leaves()
        _put_lineage(sent, held, datastore, destination)
    return None if headers is None and not sent else sent


def fulfil(headers: Mapping[str, Any] | None, promise: Promise | str) -> dict[str, Any]:
    """A copy of *headers* with which a message fulfils *promise*, once it is routed.

    Whoever waits needs receipts of the datastore: its tap, or its consumer, sees the header.

    Args:
        headers: the application's; None for none.
        promise: the promise, or its ``token``.

    Raises:
        LineageDecodeError: *promise* is a text and no token.
    """
    found = Promise.parse(promise) if isinstance(promise, str) else promise
    return {**(headers or {}), PROMISE: found.token}


def own_promise(headers: Mapping[str, Any] | None) -> Promise | None:
    """The promise that a message fulfils; None where it fulfils none.

    Raises:
        ValueError: what the header holds is no token.
    """
    header = (headers or {}).get(PROMISE)
    if header is None:
        return None
    if (text := as_text(header)) is None:
        msg = f"a {type(header).__name__} header"
        raise ValueError(msg)
    return Promise.parse(text)


def _put_lineage(sent: dict[str, Any], held: Scope, datastore: str, destination: str) -> None:
    present = sent.get(BAGGAGE)
    ours, others = _split(as_text(present)) if present is not None else ([], [])
    if present is not None and as_text(present) is None:
        count("baggage_replaced", datastore)
    # In a dry run the request's id goes with it: whoever consumes it knows that it lost nothing.
    if dry := config().mode == "dry-run":
        record_sent(datastore, destination)
    noted = dry or config().history_dir is not None
    if held.leaving.empty and not ours and not noted:
        held.leaves()
        return
    text = held.text()
    if ours and any(member != text for member in ours):
        merged = held.leaving.merge(*(readable(UNKNOWN_SUBJECT, member) for member in ours))
        text = stored_text(merged)
    sent[BAGGAGE] = _within_limits([f"{MEMBER}={text}", *others], datastore)


def _within_limits(members: list[str], datastore: str) -> str:
    """One header of as many whole members as every SDK reads; ours is the first of them."""
    kept: list[str] = []
    length = 0
    for member in members[:MAX_MEMBERS]:
        length += len(member.encode()) + 1
        if length > MAX_HEADER_BYTES + 1:
            break
        kept.append(member)
    if len(kept) < len(members):
        count("baggage_dropped", datastore, len(members) - len(kept))
        log_once(
            "baggage_dropped",
            datastore,
            "size",
            "the baggage of a message to %r exceeds what propagators read: %d of its members "
            "were dropped",
            datastore,
            len(members) - len(kept),
        )
    return ",".join(kept)


def shortened(headers: Mapping[str, Any], excess: int) -> dict[str, Any] | None:
    """*headers* of :func:`outgoing` with a lineage that is *excess* bytes shorter, and marked.

    None where not even its mark fits.
    """
    ours, others = _split(as_text(headers.get(BAGGAGE)))
    room = len(ours[0]) - excess if ours else 0
    if room <= 0:
        return None
    try:
        text = serialize(deserialize(ours[0]), max_bytes=room + len(f"{MEMBER}="))
    except (LineageTooLarge, LineageDecodeError):
        return None
    return {**headers, BAGGAGE: ",".join([f"{MEMBER}={text}", *others])}


def may_exceed(headers: Mapping[str, Any], room: int) -> bool:
    """Whether properties with *headers* may take more than *room* bytes: those need a closer look.

    Cheap: most messages have a few short headers.
    """
    size = _OTHER_PROPERTIES
    for name, value in headers.items():
        known = isinstance(value, (str, bytes))
        size += _MOST_BYTES * (len(name) + len(value)) if known else _OTHER_VALUE
    return size > room


def as_text(header: object) -> str | None:
    """A header as text; None for a type that no propagator writes."""
    if isinstance(header, (bytes, bytearray)):
        try:
            return bytes(header).decode("ascii")
        except UnicodeDecodeError:
            return None
    return header if isinstance(header, str) else None


def _split(header: str | None) -> tuple[list[str], list[str]]:
    """The values of our members, and the others' members as they are."""
    ours: list[str] = []
    others: list[str] = []
    for member in (header or "").split(","):
        name, _, value = member.partition("=")
        if name.strip() == MEMBER:
            ours.append(unquote_plus(value.partition(";")[0].strip()))
        elif member.strip():
            others.append(member.strip())
    return ours, others


def has_lineage(headers: Mapping[str, Any] | None) -> bool:
    """Whether a message says anything of ours, readable or not."""
    found = headers or {}
    text = found.get(BAGGAGE)
    return WRITE in found or (text is not None and MEMBER in (as_text(text) or MEMBER))


class Carried(NamedTuple):
    """What a message carries.

    Attributes:
        unread: texts of lineages that are well-formed, to be decoded when somebody asks.
        lineage: what else it depends on, marks of what cannot be read among it.
        write: the message's own write; None where it names none.
    """

    unread: tuple[str, ...]
    lineage: Lineage
    write: WriteId | None


def carried(headers: Mapping[str, Any] | None, subject: str = "") -> Carried:
    """What a message carries: absent (empty), valid, or marked unreadable.

    Never raises, whatever the headers hold. Several members are merged.

    Args:
        headers: the message's; None when it has none.
        subject: the datastore, where it is known, for the mark.
    """
    write, lineage = None, _EMPTY
    try:
        write = own_write(headers)
    except ValueError as error:
        lineage = unreadable(subject or UNKNOWN_SUBJECT, str(error))
    header = (headers or {}).get(BAGGAGE)
    if header is None:
        return Carried((), lineage, write)
    subject = subject or (UNKNOWN_SUBJECT if write is None else write.datastore)
    if (text := as_text(header)) is None:
        mark = unreadable(subject, f"a {type(header).__name__} header")
        return Carried((), lineage.merge(mark), write)
    if len(text) > _MAX_READ:
        return Carried((), lineage.merge(unreadable(subject, "oversized header")), write)
    ours, _ = _split(text)
    unread = tuple(member for member in ours if is_of_writes(member))
    if len(unread) < len(ours):
        lineage = lineage.merge(
            *(readable(subject, member) for member in ours if member not in unread)
        )
    return Carried(unread, lineage, write)


def own_write(headers: Mapping[str, Any] | None) -> WriteId | None:
    """The message's own write.

    None when it names none.

    Raises:
        ValueError: what it names is no single write with an integer version.
    """
    header = (headers or {}).get(WRITE)
    if header is None:
        return None
    text = as_text(header)
    if text is None:
        msg = f"a {type(header).__name__} header"
        raise ValueError(msg)
    writes = tuple(decode(text))
    if len(writes) != 1 or not isinstance(writes[0].version, int):
        msg = f"{len(writes)} writes, not one"
        raise ValueError(msg)
    return writes[0]


def received(
    headers: Mapping[str, Any] | None, subject: str = ""
) -> tuple[Lineage, WriteId | None]:
    """What a consumer of this message depends on, and the message's own write.

    The lineage does not hold the message's own write yet.
    """
    unread, lineage, write = carried(headers, subject)
    return lineage.merge(*(readable(subject, text) for text in unread)), write
