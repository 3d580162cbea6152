"""What comes with a request: the lineages in its headers, and the scope that it gets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from opentelemetry import context as otel_context

from antipode._lineage.codec import encode
from antipode._lineage.grammar import MEMBER
from antipode._lineage.lineage import Lineage
from antipode._request.context import BAGGAGE_KEY, KEY, LiveText
from antipode._request.scope import INCOMING_SUBJECT, SNAPSHOT, Scope
from antipode._runtime import observers
from antipode._runtime.metrics import count, log_once, logger

from .headers import BAGGAGE, MAX_MEMBERS, SENT_HEADER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opentelemetry.context import Context
    from opentelemetry.propagators.textmap import CarrierT, Getter

_OURS = f"{MEMBER}="
#: The headers of ours as ASGI has them, and how long they are.
_NAMES = frozenset({BAGGAGE.encode(), SENT_HEADER.encode()})
_LENGTHS = frozenset(map(len, _NAMES))
_ALONE = re.compile(_OURS + r"[A-Za-z0-9._~-]*")
#: What stands for a lineage that was sent, and was taken out on the way.
_STRIPPED = encode(Lineage(incomplete=[(INCOMING_SUBJECT, "stripped")]))


def arrived(carrier: object, texts: tuple[str, ...], context: Context) -> Context:
    """*context* with a scope of its own, for a request that arrived just now.

    Args:
        carrier: what its headers were read from.
        texts: the lineages that came with it.
        context: what else came.
    """
    held = Scope(incoming=texts)
    held.arrived = True
    held.carrier = carrier
    observer, noting = observers.dry_run, observers.noting
    # As context_with() does for a scope that others may know: every request pays for this.
    handle = LiveText(held.snapshot() if noting is not None else SNAPSHOT)
    handle.scope = held
    entries = context.get(BAGGAGE_KEY)
    others: dict[str, object] = entries if isinstance(entries, dict) else {}
    if observer is not None:
        observer.opened(held, incoming=True)
    return otel_context.Context({**context, BAGGAGE_KEY: {**others, MEMBER: handle}, KEY: held})


def is_silent(carrier: object) -> bool:
    """Whether *carrier* is an ASGI scope without a header of ours: most are.

    A getter would decode each header of the request to find that none is meant.
    """
    if not isinstance(carrier, dict) or "asgi" not in carrier:
        return False
    try:
        for name, _ in carrier["headers"]:
            if len(name) in _LENGTHS and name.lower() in _NAMES:
                return False
    except Exception:  # noqa: BLE001 - whatever it is, the getter is asked
        return False
    return True


def baggage_of(carrier: CarrierT, getter: Getter[CarrierT]) -> Sequence[str] | None:
    """The values of all baggage headers of *carrier*; None where they cannot be read.

    SDKs read the first one only, and lose all of it when one member or the sum is too long.
    """
    try:
        found = getter.get(carrier, BAGGAGE) or ()
        # It raises where one is no text, but bytes as in some carriers.
        return found if "".join(found) else ()
    except Exception:  # noqa: BLE001 - propagation never throws
        logger.warning("the baggage of a request cannot be read", exc_info=True)
        return None


def incoming(
    headers: Sequence[str] | None, carrier: CarrierT, getter: Getter[CarrierT]
) -> tuple[str, ...]:
    """The texts of all our members in the baggage *headers* of *carrier*."""
    if headers is None:
        return ("",)  # No lineage, so it will be marked unreadable.
    if headers and (texts := members(headers)):
        return texts
    try:
        return stripped() if getter.get(carrier, SENT_HEADER) else ()
    except Exception:  # noqa: BLE001 - propagation never throws
        logger.warning("the headers of a request cannot be read", exc_info=True)
        return ("",)


def stripped() -> tuple[str, ...]:
    """What stands for the lineage of a request that was sent with one and came without."""
    count("stripped", INCOMING_SUBJECT)
    message = "a request was sent with a lineage and came without: something removes its baggage"
    log_once("stripped", INCOMING_SUBJECT, "", message)
    return (_STRIPPED,)


def are_ours_alone(headers: Sequence[str]) -> bool:
    """Whether *headers* are one header, as we send it, with no member of others."""
    return len(headers) == 1 and is_ours_alone(headers[0])


def is_ours_alone(header: str) -> bool:
    """Whether *header* is our member as we send it, and nothing else: most are."""
    return _ALONE.fullmatch(header) is not None


def members(headers: Iterable[str]) -> tuple[str, ...]:
    """The values of all our members, as they were before percent-encoding.

    Of more than baggage may have only the first, and one that is unreadable for the rest.
    """
    texts: list[str] = []
    for header in headers:
        if is_ours_alone(header):
            texts.append(header[len(_OURS) :])
        elif MEMBER in header:
            texts += _ours_in(header)
        if len(texts) > MAX_MEMBERS:
            return (*texts[:MAX_MEMBERS], "")
    return tuple(texts)


def _ours_in(header: str) -> list[str]:
    """The values of our members in *header*, of one more at most than baggage may have."""
    texts: list[str] = []
    for member in header.split(","):
        name, _, value = member.partition("=")
        if name.strip() == MEMBER:
            texts.append(unquote_plus(value.partition(";")[0].strip()))
            if len(texts) > MAX_MEMBERS:
                break
    return texts
