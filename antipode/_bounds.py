"""A lineage in a bounded number of bytes: nothing is dropped without saying so in the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._codec import (
    encode,
    encode_mark,
    encode_open,
    encode_promise,
    encode_write,
    join,
    newest_hour,
)
from ._config import MEMBER_OVERHEAD
from ._errors import LineageTooLarge
from ._lineage import Lineage
from ._metrics import count, log_once
from ._write_id import Incomplete, Promise, WriteId

if TYPE_CHECKING:
    from collections.abc import Collection

_NOTHING_FITS = Incomplete("", "size")


def encode_bounded(
    lineage: Lineage, *, max_bytes: int, egress: Collection[str] | None = None
) -> str:
    """The text of *lineage* in at most *max_bytes*, ``antipode=`` included.

    Over the bound it keeps exact entries before covering ones and newer before older; for
    each datastore that lost an entry the text says ``incomplete`` (datastore, ``size``), which
    is counted and logged. Entries of datastores outside *egress* become ``incomplete``
    (empty subject, ``egress``) without naming the datastore.

    Raises:
        LineageTooLarge: *max_bytes* is too small for the mark itself.
    """
    if egress is not None:
        lineage = _filtered(lineage, frozenset(egress))
    text = encode(lineage)
    room = max_bytes - MEMBER_OVERHEAD
    if len(text) <= room:
        return text
    text, dropped = _shortened(lineage, room)
    if len(text) > room:
        msg = f"{max_bytes} bytes cannot hold a lineage that says it is incomplete"
        raise LineageTooLarge(msg)
    for datastore in sorted(dropped):
        count("dropped_for_size", datastore)
    names = ", ".join(sorted(map(repr, dropped)))
    log_once(
        "dropped_for_size",
        names,
        max_bytes,
        "a lineage exceeds %d bytes: dependencies on %s were dropped and marked incomplete",
        max_bytes,
        names or "unknown items",
    )
    return text


def _filtered(lineage: Lineage, allowed: frozenset[str]) -> Lineage:
    """*lineage* without the datastores that may not leave."""
    hidden = lineage.datastores - allowed
    subjects = {mark.subject for mark in lineage.incomplete if mark.subject} - allowed
    if not hidden and not subjects:
        return lineage
    for datastore in hidden:
        count("dropped_for_egress", datastore)
    return lineage.only("", *allowed).marked(("", "egress"))


def _shortened(lineage: Lineage, room: int) -> tuple[str, set[str]]:
    """A text of at most *room* bytes where marks alone fit, and which datastores lost entries."""
    newest_h = newest_hour(lineage)
    ranked = sorted(lineage, key=_rank)
    parts: list[tuple[str, str]] = []
    parts += [(p.datastore, encode_promise(p)) for p in _by_expiry(lineage.promises)]
    parts += [(write.datastore, encode_write(write, newest_h)) for write in ranked]
    parts += [("", item) for item in sorted(lineage.unknown)]
    kept = [encode_mark(mark) for mark in lineage.incomplete]
    if lineage.open_branches:
        kept.append(encode_open(lineage.open_branches))
    dropped: set[str] = set()
    length = len(join(newest_h, [*kept, *(item for _, item in parts)]))
    while length > room and parts:
        datastore, item = parts.pop()
        length -= len(item) + 1
        if datastore not in dropped:
            dropped.add(datastore)
            mark = Incomplete(datastore, "size")
            if mark not in lineage.incomplete:
                kept.append(encode_mark(mark))
                length += len(kept[-1]) + 1
    text = join(newest_h, [*kept, *(item for _, item in parts)])
    if len(text) > room:
        text = encode(Lineage(incomplete=[_NOTHING_FITS]))
        dropped |= {mark.subject for mark in lineage.incomplete}
    return text, dropped


def _rank(write: WriteId) -> tuple[bool, int, str, str, str]:
    """Exact before covering, newest first, then by name so that the choice is the same."""
    return write.covering, -write.minted_h, write.datastore, write.key, str(write.version)


def _by_expiry(promises: Collection[Promise]) -> list[Promise]:
    return sorted(promises, key=lambda promise: (-promise.expires_s, promise.id))
