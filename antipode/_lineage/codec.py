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
    foreign_of,
    from_base36,
    from_base64,
    from_key,
    from_token,
    header_of,
    items_of,
    promise_fields,
    promise_item,
    refused_item,
    to_base36,
    to_base64,
    to_key,
    to_token,
)
from .lineage import Lineage
from .write_id import Incomplete, Promise, WriteId

if TYPE_CHECKING:
    from collections.abc import Callable

#: A UUID, and after it what MySQL names a tag or the first number of a run by.
_UUID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})([A-Za-z0-9_/:]*)")
_REPLICATION_ID = re.compile(r"[0-9a-f]{40}")

#: Longer ones are not kept: a sender must not decide how much memory a cache takes.
_MAX_CACHED = 256
_WRITE_FIELDS = 3
#: What is outside the alphabet in such a suffix, and stands for itself nowhere in it.
_TO_SUFFIX = str.maketrans("/:", ".-")
_FROM_SUFFIX = str.maketrans(".-", "/:")


def encode(lineage: Lineage) -> str:
    """The canonical text of *lineage*, however long."""
    text = lineage._text
    if text is None:
        newest = newest_hour(lineage)
        text = lineage._text = join(newest, encode_items(lineage, newest))
    return text


def newest_hour(lineage: Lineage) -> int:
    """The hour in the header: the newest written hour, 0 when none is stated."""
    return max([write.written_hour for write in lineage], default=0)


def join(newest_h: int, items: list[str]) -> str:
    """A text of a header and items, which are brought into canonical order."""
    items.sort()
    return "~".join([header_of(newest_h), *items])


def encode_items(lineage: Lineage, newest_h: int) -> list[str]:
    """The items of *lineage*, in no promised order."""
    items = [encode_write(write, newest_h) for write in lineage]
    if lineage._incomplete:
        items += [encode_mark(mark) for mark in lineage._incomplete]
    if lineage._promises:
        items += [encode_promise(promise) for promise in lineage._promises]
    if lineage._open_branches:
        items.append(encode_open(lineage._open_branches))
    if lineage._unknown:
        items += lineage._unknown
    return items


def encode_write(write: WriteId, newest_h: int) -> str:
    """One write as an item under a header of *newest_h*."""
    text = write._item or _item(write)
    if write.written_hour == newest_h:
        return text
    age = to_base36(newest_h - write.written_hour) if write.written_hour else ""
    head, _, tail = text.partition(".")
    return f"{head}.{age}-{tail}"


def _item(write: WriteId) -> str:
    """The item of *write* without its age, which the write keeps."""
    version = write.version
    known = len(write.datastore) + len(write.key) <= _MAX_CACHED
    around = _around if known else _around.__wrapped__
    head, tail = around(write.datastore, write.key, write.covering)
    number = to_base36(version) if isinstance(version, int) else f"_{to_token(version)}"
    text = f"{head}{number}{tail}"
    _keep(write, "_item", text)
    return text


def encode_mark(mark: Incomplete) -> str:
    """One mark of incompleteness as an item."""
    return f"i{to_token(mark.reason)}.{to_key(mark.subject)}"


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
def _around(datastore: str, key: str, covering: bool) -> tuple[str, str]:  # noqa: FBT001 - cached: positional
    """What stands before and after the version in a write's item: the same for all of a log."""
    if (uuid := _UUID.fullmatch(key)) is not None:
        kind, packed = "u", to_base64(bytes.fromhex(uuid[1].replace("-", "")))
        packed += uuid[2].translate(_TO_SUFFIX)
    elif _REPLICATION_ID.fullmatch(key):
        kind, packed = "r", to_base64(bytes.fromhex(key))
    else:
        kind, packed = "k", to_key(key)
    return f"{kind.upper() if covering else kind}{to_token(datastore)}.", f".{packed}"


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
        reason, subject = fields_of(body, 2)
        marks.append(Incomplete(from_key(subject), from_token(reason)))
    elif kind == "p":
        promises.append(Promise(*promise_fields(item)))
    elif kind == "o":
        branches.append(from_base36(body))
    elif kind == "h":
        msg = "it is not the last item"
        raise ItemError(msg)
    elif kind == "z" and foreign_of(item) is None:
        msg = "it carries no text of another version, or another number of its parts"
        raise ItemError(msg)
    else:
        unknown.append(item)


def _decode_write(item: str, newest_h: int) -> WriteId:
    fields = item.split(".", 2)
    if len(fields) < _WRITE_FIELDS:
        msg = f"it has {len(fields)} fields, not {_WRITE_FIELDS}"
        raise ItemError(msg)
    head, stamp, packed = fields
    written_hour = newest_h
    if "-" in stamp and stamp[0] != "_":
        age, _, stamp = stamp.partition("-")
        written_hour = _minted(age, newest_h)
    log = _log if len(head) + len(packed) <= _MAX_CACHED else _log.__wrapped__
    datastore, key, covering, before, after = log(head, packed)
    if stamp[:1] == "_":
        write = WriteId(datastore, key, from_token(stamp[1:]), written_hour, covering)
    else:
        write = WriteId(datastore, key, from_base36(stamp), written_hour, covering)
        _keep(write, "_item", f"{before}{stamp}{after}")
    _keep(write, "_outside", True)  # noqa: FBT003 - a field's value
    return write


def _minted(age: str, newest_h: int) -> int:
    if not newest_h:
        msg = "it states an age under a header without an hour"
        raise ItemError(msg)
    if not age:
        return 0
    hours = from_base36(age)
    if hours >= newest_h:
        msg = "it is older than time"
        raise ItemError(msg)
    return newest_h - hours


@lru_cache(maxsize=4096)
def _log(head: str, packed: str) -> tuple[str, str, bool, str, str]:
    """Datastore, key and covering flag of what :func:`_around` makes, and what that makes."""
    kind, datastore = head[0].lower(), from_token(head[1:])
    if not datastore:
        msg = "its datastore is empty"
        raise ItemError(msg)
    key, covering = _UNPACK[kind](packed), kind != head[0]
    return datastore, key, covering, *_around.__wrapped__(datastore, key, covering)


def _unpack_uuid(packed: str) -> str:
    digits, suffix = from_base64(packed[:UUID_CHARS], 16).hex(), packed[UUID_CHARS:]
    uuid = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    return uuid + suffix.translate(_FROM_SUFFIX)


def _unpack_replication_id(packed: str) -> str:
    return from_base64(packed, 20).hex()


_UNPACK: dict[str, Callable[[str], str]] = {
    "u": _unpack_uuid,
    "r": _unpack_replication_id,
    "k": from_key,
}
#: Writes are frozen; what is kept follows from their other fields.
_keep = object.__setattr__
_WRITE_KINDS = frozenset("urkURK")
