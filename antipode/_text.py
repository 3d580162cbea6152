"""``serialize`` and ``deserialize`` (Table 2)."""

from __future__ import annotations

from ._bounds import encode_bounded
from ._codec import decode
from ._lineage import Lineage
from ._scope import scope_in


def serialize(lineage: Lineage | None = None, *, max_bytes: int = 1024) -> str:
    """The text of *lineage*, default the current one, for a header, a message or a column.

    Over *max_bytes*, in which ``antipode=`` counts, the oldest entries are dropped and the text
    says so: deserialised, it is ``incomplete`` (datastore, ``size``). The current one says how many
    branches of its request are still running.

    Raises:
        LineageTooLarge: *max_bytes* is too small for even that mark.
    """
    if lineage is None:
        held = scope_in()
        lineage = held.leaving if held is not None else Lineage()
    return encode_bounded(lineage, max_bytes=max_bytes)


def deserialize(text: str) -> Lineage:
    """The lineage that *text* stands for.

    Raises:
        LineageDecodeError: it is no lineage; ``code`` says why.
    """
    return decode(text)
