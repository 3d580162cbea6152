"""Events of S3 that come as messages: these have no label, and name what they depend on."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from antipode import Lineage
from antipode.shim import log_once, registered, shims_of, unreadable
from antipode_shims.sns._format import envelope_in

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What is in the text of each event of S3's: its source, by itself or by EventBridge, or a test.
_SIGNS = re.compile(r"aws[:.]s3|s3:TestEvent")


def event_in(message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The event of S3 that *message* is; None where it is none.

    Args:
        message: of ``ReceiveMessage``, raw or wrapped by SNS, or a record of a Lambda event; or
            what EventBridge delivers.
    """
    body = message.get("Body", message.get("body"))
    if isinstance(body, str):
        if _SIGNS.search(body) is None:
            return None
        envelope = envelope_in(body)
        return _parsed(body if envelope is None else envelope.get("Message"))
    if "Sns" in message:
        return _parsed(message["Sns"].get("Message") if isinstance(message["Sns"], dict) else None)
    return message if _is_event(message) else None


def lineage_of_event(
    event: Mapping[str, Any], *, datastore: str, events: str | None
) -> Lineage | None:
    """What *event* depends on; None where nobody says which datastore its bucket is.

    Args:
        event: of S3.
        datastore: of the message, for marks.
        events: of the bucket; None: that of the one S3 datastore with a client here.
    """
    from antipode_shims import s3

    names = _stores() if events is None else [events]
    if len(names) == 1:
        try:
            return s3.lineage(names[0], event)
        except ValueError as error:
            return unreadable(datastore, str(error))
    message = (
        "a message of %r is an event of S3, and %d datastores of S3 have a client here: say which "
        "one its bucket is, events='...', or who handles it may read what was before it"
    )
    log_once("s3_event", datastore, len(names), message, datastore, len(names))
    return Lineage(incomplete=[(datastore, "unsampled")]) if names else None


def _stores() -> list[str]:
    """The datastores of S3 that have a client here."""
    from antipode_shims.s3._shim.base import BaseS3Shim

    return [
        name
        for name in registered()
        if any(isinstance(each, BaseS3Shim) for each in shims_of(name))
    ]


def _parsed(text: object) -> Mapping[str, Any] | None:
    if not (isinstance(text, str) and _SIGNS.search(text)):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and _is_event(found) else None


def _is_event(found: Mapping[str, Any]) -> bool:
    if not any(name in found for name in ("Records", "s3", "Event", "detail")):
        return False
    from antipode_shims.s3._events import is_event

    return is_event(found)
