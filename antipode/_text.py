"""``serialize`` and ``deserialize`` (Table 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._bounds import encode_bounded
from ._codec import decode
from ._scope import current

if TYPE_CHECKING:
    from ._lineage import Lineage


def serialize(lineage: Lineage | None = None, *, max_bytes: int = 1024) -> str:
    """The text of *lineage*, default the current one, for a header, a message or a column.

    Over *max_bytes*, in which ``antipode=`` counts, the oldest entries are dropped and the text
    says so: deserialised, it is ``incomplete`` (datastore, ``size``).

    Raises:
        LineageTooLarge: *max_bytes* is too small for even that mark.
    """
    return encode_bounded(current() if lineage is None else lineage, max_bytes=max_bytes)


def deserialize(text: str) -> Lineage:
    """The lineage that *text* stands for.

    Raises:
        LineageDecodeError: it is no lineage; ``code`` says why.
    """
    return decode(text)
