"""How a lineage lies in a message: in one attribute. No I/O."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from antipode import Lineage
from antipode.shim import readable, unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

    Attributes = Mapping[str, Mapping[str, Any]]

#: The attribute of a message that has what it depends on.
NAME = "antipode"
#: How many attributes a message may have: with raw delivery SNS drops one that has more.
MOST_ATTRIBUTES = 10
#: Bytes of a message, or of a batch, attributes included.
MOST_BYTES = 262_144
#: What SQS calls the checksum of a message's attributes.
_CHECKSUM = "MD5OfMessageAttributes"
_TEXT, _BINARY = b"\x01", b"\x02"


class Received(dict[str, Any]):
    """A message as ``ReceiveMessage`` returns it, which remembers the attribute that is hidden.

    Attributes:
        antipode: the text of that attribute; None without one.
    """

    antipode: str | None = None


def size_of(message: Mapping[str, Any], body: str) -> int:
    """The bytes of *message*, its attributes included.

    Args:
        message: a request to publish or to send one message, or an entry of a batch.
        body: the field that has its body.
    """
    attributes = message.get("MessageAttributes") or {}
    return len(str(message.get(body, "")).encode()) + sum(map(_size, attributes.items()))


def labelled(message: Mapping[str, Any], text: str, *, room: int) -> dict[str, Any] | None:
    """*message* with the attribute that has *text*, the text of a lineage.

    Args:
        message: as of :func:`size_of`.
        text: of a lineage.
        room: how many bytes the attribute may have.

    Returns:
        None where it does not fit: into the room, or beside ten attributes.
    """
    ours = {"DataType": "String", "StringValue": text}
    attributes = {**(message.get("MessageAttributes") or {}), NAME: ours}
    if len(attributes) > MOST_ATTRIBUTES or _size((NAME, ours)) > room:
        return None
    return {**message, "MessageAttributes": attributes}


def _size(attribute: tuple[str, Mapping[str, Any]]) -> int:
    name, held = attribute
    value = held.get("StringValue", held.get("BinaryValue", b""))
    raw = value.encode() if isinstance(value, str) else bytes(value)
    return len(name.encode()) + len(str(held.get("DataType", "")).encode()) + len(raw)


def text_of(message: Mapping[str, Any]) -> str | None:
    """What *message* says that it depends on; None where it says nothing.

    Args:
        message: of ``ReceiveMessage``, raw or wrapped by SNS, or a record of a Lambda event.
    """
    if isinstance(message, Received) and message.antipode is not None:
        return message.antipode
    published = message.get("Sns")  # A record of a topic's event.
    if isinstance(published, dict):
        return _in(published.get("MessageAttributes"), "Value")
    for name, value in (("MessageAttributes", "StringValue"), ("messageAttributes", "stringValue")):
        if (text := _in(message.get(name), value)) is not None:
            return text
    envelope = envelope_in(message.get("Body", message.get("body")))
    return None if envelope is None else _in(envelope.get("MessageAttributes"), "Value")


def envelope_in(body: object) -> dict[str, Any] | None:
    """The envelope of SNS, where *body* is one."""
    if not (isinstance(body, str) and body.startswith("{") and '"Notification"' in body):
        return None
    try:
        envelope = json.loads(body)
    except ValueError:
        return None
    found = isinstance(envelope, dict) and envelope.get("Type") == "Notification"
    return envelope if found else None


def _in(attributes: object, value: str) -> str | None:
    """Our attribute among *attributes*; empty where it is no text, which is unreadable."""
    if not isinstance(attributes, dict) or NAME not in attributes:
        return None
    held = attributes[NAME]
    text = held.get(value) if isinstance(held, dict) else None
    return text if isinstance(text, str) else ""


def lineage_of(text: str | None, datastore: str) -> Lineage:
    """The lineage of a message; what cannot be read is marked, and never empty."""
    if text is None:
        return Lineage()
    return readable(datastore, text) if text else unreadable(datastore, "an empty attribute")


def _checksum(attributes: Attributes) -> str:
    """The MD5 of *attributes* as SQS documents it, in hexadecimal."""
    digest = hashlib.md5(usedforsecurity=False)
    for name in sorted(attributes):
        held = attributes[name]
        binary = "BinaryValue" in held
        value = held["BinaryValue" if binary else "StringValue"]
        digest.update(_part(name) + _part(held["DataType"]))
        digest.update((_BINARY if binary else _TEXT) + _part(value))
    return digest.hexdigest()


def _part(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else bytes(value)
    return len(raw).to_bytes(4, "big") + raw


def show_checksum(told: MutableMapping[str, Any], all_of: Attributes, shown: Attributes) -> None:
    """Let *told* have the checksum of the attributes that the application knows of.

    One that is not that of all of them is left as the server told it.

    Args:
        told: a message, or an answer to a request that sent one.
        all_of: its attributes.
        shown: those without ours.
    """
    if told.get(_CHECKSUM) == _checksum(all_of):
        del told[_CHECKSUM]
        if shown:
            told[_CHECKSUM] = _checksum(shown)
