"""What clients say to a server, without what differs from one run to the next."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Of a MySQL client's answer to the greeting: its capabilities, the largest packet, its charset.
_ANSWER_HEAD = 32
#: Of a message of MongoDB's protocol: where its command begins, after numbers, flags and a kind.
_COMMAND = 21
#: Headers that say when a request was made, and prove by whom.
_OF_ONE_REQUEST = re.compile(
    rb"(?im)^(?:x-amz-date|amz-sdk-invocation-id):[^\r]*|(?<=Signature=)\w+|(?<=Credential=)[^,]*"
)
#: Names that are drawn.
_RANDOM = re.compile(rb"amq\.gen-[\w-]{22}|[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}")


def said(store: str, requests: bytes) -> list[Any]:
    """The bytes of one connection to a server of *store*, as messages that can be compared."""
    messages = _MESSAGES.get(store)
    return [requests] if messages is None else list(messages(requests))


def _postgresql(requests: bytes) -> Iterator[bytes]:
    """The proofs of a login are left out; what has no kind begins a connection."""
    at = 0
    while at < len(requests):
        at += kind if (kind := requests[at : at + 1] != b"\0") else 0
        length = int.from_bytes(requests[at : at + 4], "big")
        message = requests[at - kind : at + length]
        if not message.startswith(b"p"):
            yield message
        at += length


def _mysql(requests: bytes) -> Iterator[bytes]:
    """Of a login its head alone: the rest proves who one is, and names the process."""
    at = 0
    while at < len(requests):
        length, sequence = int.from_bytes(requests[at : at + 3], "little"), requests[at + 3]
        packet = requests[at + 4 : at + 4 + length]
        if sequence <= 1:
            yield packet[: _ANSWER_HEAD if sequence else None]
        at += 4 + length


def _mongodb(requests: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Commands, and documents after them; without numbers, sessions and the cluster's time."""
    commands = list(_mongodb_commands(requests))
    if any("hello" not in each and "ismaster" not in each for each, _ in commands):
        yield from commands  # Else the driver alone made the connection, to watch its server.


def _mongodb_commands(requests: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
    import bson

    at = 0
    while at < len(requests):
        length, kind = struct.unpack_from("<i8xi", requests, at)
        if kind == 2013:  # OP_MSG; a handshake may be older.
            begin = at + _COMMAND
            end = begin + int.from_bytes(requests[begin : begin + 4], "little")
            command = bson.decode(requests[begin:end])
            for each in ("lsid", "endSessions", "$clusterTime"):
                command.pop(each, None)
            yield command, requests[end : at + length]
        at += length


def _http(requests: bytes) -> Iterator[bytes]:
    yield _RANDOM.sub(b"", _OF_ONE_REQUEST.sub(b"", requests))


def _of_a_broker(requests: bytes) -> Iterator[bytes]:
    """Without the names of queues that the server chose, and of what the client numbered."""
    yield _RANDOM.sub(b"", requests)


_MESSAGES = {
    "postgresql": _postgresql,
    "mysql": _mysql,
    "mongodb": _mongodb,
    "rabbitmq": _of_a_broker,
    "activemq": _of_a_broker,
    "dynamodb": _http,
    "s3": _http,
    "sns": _http,
}
