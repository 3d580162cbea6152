"""What a message was when it was published, kept through deferrals. Pure: no client, no I/O.

A deferred message is published again, by its consumer and then by the broker, and each adds to
it or takes something away. What they would change lies in one header of ours meanwhile, and is
put back before the handler sees the message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antipode import UnmetError
from antipode.shim import error_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from antipode import BarrierResult

#: The header of a message that waits in a delay queue, or was in one.
DEFERRED = "antipode-deferred"
#: The header of a dead letter: why it is one, and what it was.
DEAD = "antipode-dead-letter"
#: Outcomes are listed up to this many characters: all headers of a message go into one frame.
MOST_TEXT = 16_384
_MOST_LINE = 500
#: Of a time to live in milliseconds: the broker's longest is of 32 bits.
_MOST_DIGITS = 10
#: Headers that brokers act on when a message is published: more queues to route to.
_ROUTING = ("CC", "BCC")
#: How often one queue delivered this message; another queue would take it for its own count.
_COUNTED = ("x-delivery-count", "x-acquired-count")
_DEATHS = ("x-death", "x-first-death-", "x-last-death-")


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message without its body, as its publisher sent it.

    Attributes:
        headers: without ours that count deferrals; None where there are none.
        exchange: to which it was published.
        routing_key: with which it was published.
        expiration: its time to live as the property has it; None without.
        message_id: None without.
        attempts: how often it was deferred.
        at_ms: when it was delivered here, by the wall clock: its time to live is counted from the
            first delivery, for how long it was in its queue before is unknown.
        until_ms: when it expires, if it was deferred and does.
    """

    headers: dict[str, Any] | None
    exchange: str
    routing_key: str
    expiration: str | None = None
    message_id: str | None = None
    attempts: int = 0
    at_ms: int = 0
    until_ms: int | None = None

    @property
    def expired(self) -> bool:
        """Whether its time was over before it came back."""
        return self.until_ms is not None and self.until_ms <= self.at_ms

    def opened(self) -> Envelope:
        """What this delivered message was before it was deferred; itself if it never was.

        Headers may be forged: whatever ours holds, this does not fail. A dead letter that was
        moved back begins again, and so does what was rejected.
        """
        headers = dict(self.headers or {})
        deferred, dead = headers.pop(DEFERRED, None), headers.pop(DEAD, None)
        held = deferred if deferred is not None else dead
        if not isinstance(held, dict):
            return self
        kept = held.get("headers")
        headers = {name: value for name, value in headers.items() if not _is_changed(name)}
        if isinstance(kept, dict):
            headers |= kept
        attempts, until_ms, without = map(held.get, ("attempts", "until", "message_id"))
        if deferred is None or _was_rejected(self.headers):
            attempts = until_ms = None
        return Envelope(
            headers or None,
            _text(held, "exchange", self.exchange),
            _text(held, "routing_key", self.routing_key),
            _text(held, "expiration", None),
            None if without is False else "" if without == "" else self.message_id,
            max(attempts, 0) if isinstance(attempts, int) else 0,
            self.at_ms,
            until_ms if isinstance(until_ms, int) else None,
        )

    def deferred(self) -> dict[str, Any]:
        """The headers with which it goes into a delay queue."""
        headers, kept = self._parted()
        until_ms = self._until_ms()
        until = {} if until_ms is None else {"until": until_ms}
        return {**headers, DEFERRED: {**kept, **until, "attempts": self.attempts + 1}}

    def _until_ms(self) -> int | None:
        """When it expires; None where it does not, or has a forged time to live."""
        if self.until_ms is not None:
            return self.until_ms
        text = self.expiration
        if text is None or not text.isdecimal() or len(text) > _MOST_DIGITS:
            return None
        return self.at_ms + int(text)

    def dead(self, why: Mapping[str, Any], queue: str) -> dict[str, Any]:
        """The headers with which it becomes a dead letter of *queue*."""
        headers, kept = self._parted()
        return {**headers, DEAD: {**why, **kept, "attempts": self.attempts + 1, "queue": queue}}

    def _parted(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The headers that may be published again, and what is kept with them."""
        headers = {n: v for n, v in (self.headers or {}).items() if n not in _COUNTED}
        apart = {n: headers.pop(n) for n in tuple(headers) if _is_changed(n)}
        kept: dict[str, Any] = {"exchange": self.exchange, "routing_key": self.routing_key}
        if apart:
            kept["headers"] = apart
        if self.expiration is not None:
            kept["expiration"] = self.expiration
        if not self.message_id:  # Some clients make one up.
            kept["message_id"] = False if self.message_id is None else ""
        return headers, kept


def _is_changed(name: str) -> bool:
    """Whether a broker acts on this header, or writes it when a message expires in a queue."""
    return name in _ROUTING or name.startswith(_DEATHS)


def _was_rejected(headers: Mapping[str, Any] | None) -> bool:
    """Whether this delivered message died last by something else than the end of a delay."""
    deaths = (headers or {}).get("x-death")
    last = deaths[0] if isinstance(deaths, list) and deaths else None
    return isinstance(last, dict) and last.get("reason", "expired") != "expired"


def _text(held: dict[str, Any], name: str, otherwise: Any) -> Any:
    found = held.get(name)
    return found if isinstance(found, str) else otherwise


def why(result: BarrierResult) -> dict[str, Any]:
    """Why a message whose barrier or check ended so is a dead letter: exact outcomes, as text."""
    error = error_of(result)
    unmet_first = sorted(result.outcomes, key=lambda outcome: outcome.met)
    return {
        "reason": error.code if error is not None else "",
        "message": str(error)[:_MOST_LINE],
        "outcomes": _lines(map(str, unmet_first)),
        "incomplete": _lines(sorted(map(str, result.incomplete))),
    }


def _lines(texts: Iterable[str]) -> list[str]:
    """As many of *texts* as headers have room for; the last line says how many there are more."""
    lines = [text[:_MOST_LINE] for text in texts]
    length = 0
    for number, line in enumerate(lines):
        length += len(line)
        if length > MOST_TEXT:
            return [*lines[:number], f"and {len(lines) - number} more"]
    return lines


def why_failed(error: BaseException) -> dict[str, Any]:
    """Why a message whose handler raised *error* is a dead letter."""
    if isinstance(error, UnmetError):
        return why(error.result)
    text = f"{type(error).__name__}: {error}"
    return {"reason": "handler_failed", "message": text[:_MOST_LINE]}
