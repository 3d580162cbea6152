"""Level 1: texts to lineages and back."""

from __future__ import annotations

from typing import Any

import pytest

from antipode import LineageDecodeError, deserialize
from antipode.shim import encode
from tests.agent._values import lineage_of
from tests.conformance import _vectors as vectors


@pytest.mark.parametrize("vector", vectors.cases("L1-codec", "valid"))
def test_valid(vector: dict[str, Any]) -> None:
    """The text stands for this lineage, and this lineage has the canonical text."""
    lineage = lineage_of(vector["lineage"])
    canonical = vector.get("canonical", vector["text"])
    assert deserialize(vector["text"]) == lineage
    assert encode(lineage) == canonical
    assert deserialize(canonical) == lineage


@pytest.mark.parametrize("vector", vectors.cases("L1-codec", "limits"))
def test_limits(vector: dict[str, Any]) -> None:
    """The largest texts decode, and encoded again they still do."""
    lineage = deserialize(vectors.text_of(vector))
    assert (len(lineage), len(lineage.unknown)) == (vector["writes"], vector["unknown"])
    assert deserialize(encode(lineage)) == lineage


@pytest.mark.parametrize("vector", vectors.cases("L1-codec", "errors"))
def test_errors(vector: dict[str, Any]) -> None:
    """The text is refused with this code, at a place within it."""
    text = vectors.text_of(vector)
    with pytest.raises(LineageDecodeError) as caught:
        deserialize(text)
    assert caught.value.code == vector["code"]
    assert 0 <= caught.value.offset <= len(text)


@pytest.mark.parametrize("vector", vectors.cases("golden/v1", "values"))
def test_golden(vector: dict[str, Any]) -> None:
    """What a release wrote is read as what it meant then, and written alike for ever."""
    lineage = lineage_of(vector["lineage"])
    assert deserialize(vector["text"]) == lineage
    assert encode(lineage) == vector["text"]
