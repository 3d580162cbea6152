"""SNS and SQS: the attribute of a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode_shims.sns._format import labelled, lineage_of, text_of
from tests.agent._values import of_lineage

if TYPE_CHECKING:
    from collections.abc import Mapping

    Given = Mapping[str, Any]


def message(given: Given) -> dict[str, Any]:
    """What the consumer of a message depends on."""
    return {"lineage": of_lineage(lineage_of(text_of(given["message"]), "posts"))}


def label(given: Given) -> dict[str, Any]:
    """The attributes of a message that is sent; null where there is no room for ours."""
    held = {name: {"DataType": "String", "StringValue": "x"} for name in given["attributes"]}
    found = labelled({"MessageAttributes": held}, given["text"], room=given["room"])
    return {"sent": None if found is None else sorted(found["MessageAttributes"])}
