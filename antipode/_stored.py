"""Lineages beside values: what every shim stores and takes up (paper section 6.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _seam
from ._bounds import encode_bounded
from ._config import config
from ._lineage import Lineage, without_notes
from ._metrics import count, log_once
from ._readable import readable
from ._scope import scope_in
from ._telemetry import left

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ._write_id import WriteId
    from .shim import Shim


def stored_text(lineage: Lineage, *, egress: Collection[str] | None = None) -> str:
    """What to store beside a value, or to put into a message, for *lineage*.

    Within ``max_lineage_bytes``, as every lineage that leaves the process: what does not fit is
    marked as missing in the text.

    Args:
        lineage: what the write depends on.
        egress: the datastores that may be named in it; None for all.
    """
    if lineage.unknown:
        lineage = without_notes(lineage)
    text = encode_bounded(lineage, max_bytes=config().max_lineage_bytes, egress=egress)
    left("stored", text, lineage)
    return text


def stored_lineage(datastore: str, text: str | bytes | None) -> Lineage:
    """The lineage that was found beside a value of *datastore*.

    None, nothing stored, is the empty lineage. A text that cannot be read is never taken for
    it: it becomes ``incomplete`` (*datastore*, ``unreadable``), counted and logged.
    """
    if text is None:
        return Lineage()
    found = readable(datastore, text)
    return without_notes(found) if found.unknown else found


def unread(datastore: str, what: str) -> None:
    """Note that a read shows nothing of the lineages beside the values that it is made of.

    Of a count, say, or of an aggregate. What these values depend on elsewhere does not enter:
    counted as ``unread_lineage`` and logged once for each *what*, never silent. Nothing is marked:
    the read itself is covered by its position, as any other.
    """
    count("unread_lineage", datastore)
    log_once(
        "unread_lineage",
        datastore,
        what,
        "%s on %r does not show what its values depend on elsewhere",
        what,
        datastore,
    )


def record_read(lineage: Lineage) -> None:
    """Merge what a read found into the current scope: who reads depends on what was read."""
    held = scope_in()
    if held is not None and not lineage.empty:
        held.merge(lineage)


def record_shown(shim: Shim, *writes: WriteId) -> None:
    """Note, for a dry run, that a read by a client of *shim* showed *writes* by their own tokens.

    They enter the lineage with what was read, and no barrier is missing for them where it was
    read. Covering positions need no note: they are no finding.
    """
    if (observer := _seam.observer) is not None:
        observer.showed(scope_in(), shim, writes)


def record_uncommitted(shim: Shim, who: object, *, wrote: bool) -> None:
    """Note, for a dry run, that a transaction has written and is not committed, or is over.

    Its writes have no positions yet: what is published or called meanwhile cannot say that it
    depends on them.

    Args:
        shim: of the client.
        who: its connection or session; the same object in all calls.
        wrote: whether there is such a transaction now.
    """
    if (observer := _seam.observer) is not None:
        # Each reply of a server may come here; most tell of no write.
        observer.uncommitted(scope_in() if wrote else None, shim, who, wrote=wrote)


def defer_read(sample: Callable[[], Lineage]) -> None:
    """Merge what *sample* returns into the current scope once its lineage is used or leaves.

    For a covering position that costs a round trip. *sample* returns the same whenever it is
    called again, and asks the server at most once: on the connection that read, and before that
    returns to its pool (the shim calls it there itself). It raises nothing: what cannot be sampled
    is a lineage that is incomplete. It is called from whatever thread uses the lineage.
    """
    held = scope_in()
    if held is not None:
        held.defer(sample)
