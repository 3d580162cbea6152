"""How a lineage lies in an object: in one item of its user metadata. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import LineageTooLarge
from antipode.shim import stored_lineage, stored_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import Lineage

#: The item of the metadata that has the lineage of an object's writer.
NAME = "antipode"
#: Bytes of all of an object's user metadata, names and values. AWS refuses more.
MOST_BYTES = 2_048


def room_in(metadata: Mapping[str, str]) -> int:
    """How many bytes the text of a lineage may have next to what is in *metadata*."""
    others = ((name, value) for name, value in metadata.items() if name.lower() != NAME)
    used = sum(len(name.encode()) + len(str(value).encode()) for name, value in others)
    return MOST_BYTES - used - len(NAME)


def labelled(metadata: Mapping[str, str], lineage: Lineage) -> dict[str, str] | None:
    """*metadata* with *lineage*, which is cut to the room that there is.

    Returns:
        None where there is no room, not even for the mark that says so.
    """
    try:
        text = stored_text(lineage, room=room_in(metadata))
    except LineageTooLarge:
        return None
    return {**without_ours(metadata), NAME: text}


def without_ours(metadata: Mapping[str, str]) -> dict[str, str]:
    """*metadata* without the lineage."""
    return {name: value for name, value in metadata.items() if name.lower() != NAME}


def lineage_in(metadata: Any, datastore: str) -> Lineage:
    """The lineage that lies in the *metadata* of an object."""
    held: Mapping[str, str] = metadata if isinstance(metadata, dict) else {}
    texts = [value for name, value in held.items() if name.lower() == NAME]
    return stored_lineage(datastore, texts[0] if texts else None)
