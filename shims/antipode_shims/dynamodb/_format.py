"""How a stamp and a lineage lie in an item. No I/O."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from antipode.shim import stored_lineage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import Lineage

#: The attribute that has an item's stamp.
STAMP = "_ap"
#: The attribute that has the lineage of an item's writer.
LINEAGE = "_apl"
#: Both: no reader of ours is shown them.
OURS = frozenset({STAMP, LINEAGE})


def stamp_of(value: Any) -> int | None:
    """The stamp that the attribute has, of the API or of a resource; None where it is none."""
    number = value.get("N") if isinstance(value, dict) else value
    try:
        return int(number) if isinstance(number, (str, int, Decimal)) else None
    except ValueError:
        return None


def lineage_in(item: Mapping[str, Any], datastore: str) -> Lineage:
    """The lineage that lies in *item*, as the API has it; a part of an item as it is."""
    held = item.get(LINEAGE)
    text = held.get("S", "") if isinstance(held, dict) else held
    # What is no text is no lineage, and not an empty one.
    return stored_lineage(datastore, text if text is None or isinstance(text, str) else "")
