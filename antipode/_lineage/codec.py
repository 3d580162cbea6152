"""The text form of a lineage: docs/spec/lineage-format.md, version 1.

Total (every string is decoded or refused with a code), linear in the text's length, canonical
(equal lineages have equal texts), and made of ``[A-Za-z0-9._~-]`` alone, the alphabet that the
baggage of every OpenTelemetry SDK leaves as it is.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from .grammar import (
    UUID_CHARS,
    ItemError,
    fields_of,
    from_base36,
    from_base64,
    from_token,
    header_of,
    items_of,
    promise_fields,
    promise_item,
    refused_item,
    to_base36,
    to_base64,
    to_token,
)
from .lineage import Lineage
from .write_id import Incomplete, Promise, WriteId

if TYPE_CHECKING:
    from collections.abc import Callable

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_REPLICATION_ID = re.compile(r"[0-9a-f]{40}")

#: Longer ones are not kept: a sender must not decide how much memory a cache takes.
_MAX_CACHED = 256
_UUID_DIGITS = 36
_SHORTEST_PREFIX = len("ka.")
_REPLICATION_ID_DIGITS = 40
_REPLICATION_ID_CHARS = 27


def encode(lineage: Lineage) -> str:
    """The canonical text of *lineage*, however long."""
    newest = newest_hour(lineage)
    return join(newest, encode_items(lineage, newest))


def newest_hour(lineage: Lineage) -> int:
    """The hour in the header: the newest mint hour, 0 when none is stated."""
    return max([write.minted_h for write in lineage], default=0)


def join(newest_h: int, items: list[str]) -> str:
    """A text of a header and items, which are brought into canonical order."""
    items.sort()
    return "~".join([header_of(newest_h), *items])


def encode_items(lineage: Lineage, newest_h: int) -> list[str]:
    """The items of *lineage*, in no promised order."""
    items = [encode_write(write, newest_h) for write in lineage]
    if lineage.incomplete:
        items += [encode_mark(mark) for mark in lineage.incomplete]
    if lineage.promises:
        items += [encode_promise(promise) for promise in lineage.promises]
    if lineage.open_branches:
        items.append(encode_open(lineage.open_branches))
    if lineage.unknown:
        items += lineage.unknown
    return items


def encode_write(write: WriteId, newest_h: int) -> str:
    """One write as an item under a header of *newest_h*."""
    text = write._item or _item(write)
    if write.minted_h == newest_h:
        return text
    return f"{text}.{to_base36(newest_h - write.minted_h)}" if write.minted_h else f"{text}.-"


def _item(write: WriteId) -> str:
    """The item of *write* without its age, which the write keeps."""
    version = write.version
    known = len(write.datastore) + len(write.key) <= _MAX_CACHED
    prefix = _prefix if known else _prefix.__wrapped__
    text = prefix(write.datastore, write.key, write.covering)
    text += to_base36(version) if isinstance(version, int) else f"_{to_token(version)}"
    _keep_item(write, "_item", text)
    return text


def encode_mark(mark: Incomplete) -> str:
    """One mark of incompleteness as an item."""
    return f"i{to_token(mark.subject)}.{to_token(mark.reason)}"


def encode_promise(promise: Promise) -> str:
    """One promise as an item."""
    return promise_item(promise.datastore, promise.id, promise.expires_s)


def may_be_dependency(item: str) -> bool:
    """Whether an item of an unknown kind may be one; the format reserves digits for others."""
    return not item[0].isdigit()


def encode_open(branches: int) -> str:
    """The number of open branches as an item."""
    return f"o{to_base36(branches)}"


@lru_cache(maxsize=4096)
def _prefix(datastore: str, key: str, covering: bool) -> str:  # noqa: FBT001 - cached: positional
    """The part of a write's item before the version: the same for all writes of a log."""
    if len(key) == _UUID_DIGITS and _UUID.fullmatch(key):
        kind, packed = "u", to_base64(bytes.fromhex(key.replace("-", "")))
    elif len(key) == _REPLICATION_ID_DIGITS and _REPLICATION_ID.fullmatch(key):
        kind, packed = "r", to_base64(bytes.fromhex(key))
    else:
        kind, packed = "k", f"{to_token(key)}."
    return f"{kind.upper() if covering else kind}{packed}{to_token(datastore)}."


def decode(text: str) -> Lineage:
    """The lineage that *text* stands for.

    A text of another major version becomes a lineage with that text as one unknown item.

    Raises:
        LineageDecodeError: it is no lineage; the ``code`` says why.
    """
    return _decode_items(*items_of(text))


def _decode_items(items: list[str], newest_h: int) -> Lineage:
    writes: list[WriteId] = []
    others: list[tuple[int, str]] = []
    if items and items[-1][:1] == "h":
        items.pop()  # Authenticates this very text, so it is not sent on.
    offset = len(header_of(newest_h)) + 1
    for item in items:
        if item[:1] in _WRITE_KINDS:
            try:
                writes.append(_decode_write(item, newest_h))
            except ValueError as error:
                raise refused_item(item, error, offset) from None
        elif item:
            others.append((offset, item))
        else:
            raise refused_item(item, ItemError("it is empty"), offset)
        offset += len(item) + 1
    return _decode_others(writes, others) if others else Lineage(writes)


def _decode_others(writes: list[WriteId], items: list[tuple[int, str]]) -> Lineage:
    """The lineage of *writes* and of all items, with their offsets, that are no writes."""
    marks: list[Incomplete] = []
    promises: list[Promise] = []
    unknown: list[str] = []
    branches: list[int] = [0]
    for offset, item in items:
        try:
            _sort_item(item, marks, promises, branches, unknown)
        except ValueError as error:  # noqa: PERF203 - the error names the item
            raise refused_item(item, error, offset) from None
    return Lineage(
        writes,
        incomplete=marks,
        promises=promises,
        open_branches=max(branches),
        unknown=unknown,
    )


def _sort_item(
    item: str,
    marks: list[Incomplete],
    promises: list[Promise],
    branches: list[int],
    unknown: list[str],
) -> None:
    """Decode *item* into the list where it belongs."""
    kind, body = item[0], item[1:]
    if kind == "i":
        subject, reason = fields_of(body, 2)
        marks.append(Incomplete(from_token(subject), from_token(reason)))
    elif kind == "p":
        promises.append(Promise(*promise_fields(item)))
    elif kind == "o":
        branches.append(from_base36(body))
    elif kind == "h":
        msg = "it is not the last item"
        raise ItemError(msg)
    else:
        unknown.append(item)


def _decode_write(item: str, newest_h: int) -> WriteId:
    head, dot, tail = item.rpartition(".")
    minted_h = newest_h
    if item.count(".") == (2 if item[0] in "urUR" else 3):
        minted_h = _minted(tail, newest_h)
        head, dot, tail = head.rpartition(".")
    prefix = head + dot
    unprefix = _unprefix if len(prefix) <= _MAX_CACHED else _unprefix.__wrapped__
    datastore, key, covering, canonical = unprefix(prefix)
    if tail[:1] == "_":
        return WriteId(datastore, key, from_token(tail[1:]), minted_h, covering)
    write = WriteId(datastore, key, from_base36(tail), minted_h, covering)
    _keep_item(write, "_item", canonical + tail)
    return write


def _minted(age: str, newest_h: int) -> int:
    if not newest_h:
        msg = "it states an age under a header without an hour"
        raise ItemError(msg)
    if age == "-":
        return 0
    hours = from_base36(age)
    if hours >= newest_h:
        msg = "it is older than time"
        raise ItemError(msg)
    return newest_h - hours


@lru_cache(maxsize=4096)
def _unprefix(prefix: str) -> tuple[str, str, bool, str]:
    """The datastore, key and covering flag of what :func:`_prefix` makes, and what it makes."""
    kind = prefix[:1].lower()
    if not prefix.endswith(".") or len(prefix) < _SHORTEST_PREFIX:
        msg = "it has too few fields"
        raise ItemError(msg)
    key, datastore = _UNPACK[kind](prefix[1:-1])
    if not datastore:
        msg = "its datastore is empty"
        raise ItemError(msg)
    covering = kind != prefix[0]
    return datastore, key, covering, _prefix.__wrapped__(datastore, key, covering)


def _unpack_uuid(body: str) -> tuple[str, str]:
    digits = from_base64(body[:UUID_CHARS], 16).hex()
    key = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    return key, from_token(body[UUID_CHARS:])


def _unpack_replication_id(body: str) -> tuple[str, str]:
    key = from_base64(body[:_REPLICATION_ID_CHARS], 20).hex()
    return key, from_token(body[_REPLICATION_ID_CHARS:])


def _unpack_key(body: str) -> tuple[str, str]:
    key, datastore = fields_of(body, 2)
    return from_token(key), from_token(datastore)


_UNPACK: dict[str, Callable[[str], tuple[str, str]]] = {
    "u": _unpack_uuid,
    "r": _unpack_replication_id,
    "k": _unpack_key,
}
#: Writes are frozen; what is kept follows from their other fields.
_keep_item = object.__setattr__
_WRITE_KINDS = frozenset("urkURK")
