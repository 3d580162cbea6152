"""Levels 1 and 2, and what releases wrote: texts, lineages and what is made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import antipode
from tests.agent._values import lineage_of

if TYPE_CHECKING:
    from tests.conformance._agents import Answers
    from tests.conformance._vectors import Vector


def valid(agent: Answers, vector: Vector) -> None:
    """A text is parsed to its lineage and rendered canonically, and the lineage alike."""
    text, lineage = vector.content["text"], vector.content["lineage"]
    canonical = vector.content.get("canonical", text)
    for each in (text, canonical):
        found = agent.ask("parse", text=each)
        assert lineage_of(found["lineage"]) == lineage_of(lineage)
        assert found["text"] == canonical
    assert agent.ask("render", lineage=lineage) == canonical


def limits(agent: Answers, vector: Vector) -> None:
    """The largest texts decode, and encoded again they still do."""
    found = agent.ask("parse", text=_text_of(vector.content))
    lineage = lineage_of(found["lineage"])
    assert len(lineage) == vector.content["writes"]
    assert len(lineage.unknown) == vector.content["unknown"]
    again = agent.ask("parse", text=found["text"])
    assert lineage_of(again["lineage"]) == lineage


def errors(agent: Answers, vector: Vector) -> None:
    """A text is refused with its code, at a place within it."""
    text = _text_of(vector.content)
    with pytest.raises(antipode.LineageDecodeError) as caught:
        agent.ask("parse", text=text)
    assert caught.value.code == vector.content["code"]
    assert 0 <= caught.value.offset <= len(text)


def _text_of(vector: dict[str, Any]) -> str:
    """The text of a vector, which may be built of repeated strings."""
    if "text" in vector:
        return str(vector["text"])
    return "".join(part * times for part, times in vector["build"])


def algebra(agent: Answers, vector: Vector) -> None:
    """Every check of the script holds."""
    steps = vector.content["steps"]
    found = agent.ask("algebra", steps=steps)
    for step, came_to in zip(steps, found, strict=True):
        if "as" not in step:
            assert came_to == _expected(step, came_to)


def _expected(step: dict[str, Any], came_to: Any) -> Any:
    """What a step that checks something must have come to."""
    match step["op"]:
        case "equal":
            return step["equal"]
        case "count":  # What a vector leaves out, it leaves open.
            return {kind: step.get(kind, number) for kind, number in came_to.items()}
        case _:
            return {"code": step["code"]} if "code" in step else step["text"]


GOLDEN = {"values": valid}
CODEC = {"valid": valid, "limits": limits, "errors": errors}
ALGEBRA = {"scripts": algebra}
