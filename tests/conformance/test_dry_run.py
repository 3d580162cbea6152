"""The records of dry runs that vectors give a report are such as may be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from tests.conformance import _vectors as vectors

if TYPE_CHECKING:
    from tests.conformance._vectors import Vector

SCHEMA = vectors.HERE.parents[1] / "docs" / "spec" / "dry-run-record.schema.json"
RECORDS = [each for each in vectors.every("L3-headers") if each.kind == "records"]
KINDS = frozenset(vectors.load(SCHEMA)["properties"]["kind"]["enum"])


@pytest.mark.parametrize("vector", RECORDS, ids=str)
def test_records_are_of_the_schema(vector: Vector) -> None:
    """What a report is made of is what the schema allows to write."""
    if vector.content.get("refused"):
        return
    judge = Draft202012Validator(vectors.load(SCHEMA))
    for line in [line for lines in vector.content["files"] for line in lines]:
        if isinstance(line, dict) and line["kind"] in KINDS:
            judge.validate(line)
