"""BSON and OP_MSG as bytes: what is changed is spliced, everything else stays bit for bit.

Decoding and encoding again would lose what a codec does not hold: raw documents, repeated keys,
dates beyond Python's, and types of the application's own.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_INT = struct.Struct("<i")
_HEADER = struct.Struct("<iiii")
_OP_MSG = 2013
_HEADER_BYTES = 16
_FLAGS_BYTES = 4
_CHECKSUM = 1
#: The bit of flags by which further replies may come unasked: 16, in the third byte.
_EXHAUST_BYTE, _EXHAUST = 2, 1

DOCUMENT, ARRAY, STRING, NULL, REGEX = 3, 4, 2, 10, 11
#: Bytes of values whose type has one size (BSON 1.1).
_FIXED = {1: 8, 6: 0, 7: 12, 8: 1, 9: 8, 10: 0, 16: 4, 17: 8, 18: 8, 19: 16, 127: 0, 255: 0}


class Element(NamedTuple):
    """One field of a document: its type, name and undecoded value."""

    kind: int
    name: bytes
    value: bytes


def split(document: bytes) -> list[Element]:
    """The fields of *document*.

    Raises:
        ValueError: it is no document.
    """
    elements: list[Element] = []
    at, last = 4, len(document) - 1
    while at < last:
        kind = document[at]
        zero = document.index(0, at + 1)
        end = _end(document, kind, zero + 1)
        elements.append(Element(kind, document[at + 1 : zero], document[zero + 1 : end]))
        at = end
    return elements


def _end(data: bytes, kind: int, start: int) -> int:
    """Where a value that begins at *start* ends."""
    if (fixed := _FIXED.get(kind)) is not None:
        return start + fixed
    if kind == REGEX:
        return data.index(0, data.index(0, start) + 1) + 1
    length: int = _INT.unpack_from(data, start)[0]
    if kind in (DOCUMENT, ARRAY, 15):  # 15: code with scope.
        return start + length
    if kind in (STRING, 13, 14):  # Code and symbols are like strings.
        return start + 4 + length
    if kind == 5:  # noqa: PLR2004 - binary: a subtype after the length
        return start + 5 + length
    if kind == 12:  # noqa: PLR2004 - DBPointer: a string and an ObjectId
        return start + 16 + length
    msg = f"no BSON type: {kind}"
    raise ValueError(msg)


def join(elements: Iterable[Element]) -> bytes:
    """The document of *elements*."""
    parts = [bytes((kind,)) + name + b"\0" + value for kind, name, value in elements]
    content = b"".join(parts)
    return _INT.pack(len(content) + 5) + content + b"\0"


def fields(document: Mapping[str, Any]) -> list[Element]:
    """The fields of a *document* of the library's own."""
    import bson

    return split(bson.encode(document))


def element(name: str, value: Any) -> Element:
    """One field of the library's own."""
    (made,) = fields({name: value})
    return made


def appended(document: bytes, last: Element) -> bytes:
    """*document* with one field more."""
    kind, name, value = last
    content = document[4:-1] + bytes((kind,)) + name + b"\0" + value
    return _INT.pack(len(content) + 5) + content + b"\0"


def array(values: Iterable[Element]) -> bytes:
    """The array of *values*, whatever their names were."""
    return join(
        Element(each.kind, b"%d" % number, each.value) for number, each in enumerate(values)
    )


@lru_cache(maxsize=1)
def _options() -> Any:
    """Of reading documents, which never fails for what Python has no room for."""
    from bson.codec_options import CodecOptions, DatetimeConversion

    return CodecOptions(
        datetime_conversion=DatetimeConversion.DATETIME_MS, unicode_decode_error_handler="replace"
    )


def decoded(document: bytes) -> dict[str, Any]:
    """*document* as Python holds it, for reading: not to be encoded again."""
    import bson

    value: dict[str, Any] = bson.decode(document, _options())
    return value


def take(document: bytes, head: bytes) -> tuple[bytes, Element] | None:
    """*document* without the last field that begins with *head*, and that; quicker than a split.

    The bytes alone would not do, as they may lie in somebody's text: a field has to begin there.

    Args:
        document: where it is searched for.
        head: type and name of the field, which is a document.
    """
    wanted, at = document.rfind(head), 4
    while at < wanted:
        at = _end(document, document[at], document.index(0, at + 1) + 1)
    if at != wanted:
        return None
    start = at + len(head)
    end = _end(document, head[0], start)
    left = document[4:at] + document[end:]
    return _INT.pack(len(left) + 4) + left, Element(head[0], head[1:-1], document[start:end])


@dataclass
class Message:
    """One request: the fields of its command, and the documents that are sent with it.

    Attributes:
        request_id: of the wire protocol.
        flags: of OP_MSG.
        body: the command.
        sequences: documents, one after the other, by names such as ``documents``.
    """

    request_id: int
    flags: bytes
    body: list[Element]
    sequences: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])

    @classmethod
    def of(cls, message: bytes) -> Message | None:
        """Take *message* apart; None when it is none that carries a command."""
        _, request_id, _, operation = _HEADER.unpack_from(message)
        flags = message[_HEADER_BYTES : _HEADER_BYTES + _FLAGS_BYTES]
        if operation != _OP_MSG or flags[0] & _CHECKSUM:
            return None
        made = cls(request_id, flags, [])
        at = _HEADER_BYTES + _FLAGS_BYTES
        while at < len(message):
            end = at + 1 + _INT.unpack_from(message, at + 1)[0]
            if message[at] == 0:
                made.body = split(message[at + 1 : end])
            else:
                zero = message.index(0, at + 5)
                made.sequences[message[at + 5 : zero]] = message[zero + 1 : end]
            at = end
        return made

    @property
    def exhaust(self) -> bool:
        """Whether the server may send further replies unasked."""
        return bool(self.flags[_EXHAUST_BYTE] & _EXHAUST)

    def encoded(self) -> bytes:
        """The request as it is sent."""
        sections = [b"\0" + join(self.body)]
        for name, documents in self.sequences.items():
            inner = name + b"\0" + documents
            sections.append(b"\1" + _INT.pack(len(inner) + 4) + inner)
        sent = self.flags + b"".join(sections)
        return _HEADER.pack(len(sent) + _HEADER_BYTES, self.request_id, 0, _OP_MSG) + sent

    def get(self, name: bytes) -> Element | None:
        """A field of the command."""
        return next((each for each in self.body if each.name == name), None)

    def put(self, made: Element) -> None:
        """Set a field of the command."""
        for at, each in enumerate(self.body):
            if each.name == made.name:
                self.body[at] = made
                return
        self.body.append(made)


def documents(data: bytes) -> Iterator[bytes]:
    """The documents of a sequence."""
    at = 0
    while at < len(data):
        length: int = _INT.unpack_from(data, at)[0]
        yield data[at : at + length]
        at += length
