"""Records of dry runs of processes in several languages: one report is made of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from antipode_cli.main import main
from tests.conformance import _vectors as vectors

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = vectors.HERE.parents[1] / "docs" / "spec" / "dry-run-record.schema.json"
RECORDS = vectors.cases("L3-headers", "records")
KINDS = frozenset(vectors.load(SCHEMA)["properties"]["kind"]["enum"])


def reported(folder: Path, files: list[list[Any]], out: pytest.CaptureFixture[str]) -> Any:
    """What the program prints of *files*; None where it refuses them."""
    for number, lines in enumerate(files):
        texts = [line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines]
        texts[:-1] = [text.rstrip("\n") + "\n" for text in texts[:-1]]
        (folder / f"{number}.jsonl").write_text("".join(texts), encoding="utf-8")
    status = main(["report", str(folder), "--format", "json"])
    return json.loads(out.readouterr().out) if status == 0 else None


@pytest.mark.parametrize("vector", RECORDS)
def test_records(
    vector: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Processes of several languages are reported together."""
    found = reported(tmp_path, vector["files"], capsys)
    if vector.get("refused"):
        assert found is None
        return
    for kind in ("findings", "lints"):
        for expected, one in zip(vector[kind], found[kind], strict=True):
            assert {name: one[name] for name in expected} == expected
    held = vector.get("automatic_reads", [])
    for expected, one in zip(held, found["automatic_reads"], strict=True):
        assert {name: one[name] for name in expected} == expected
    for name in ("reads_guarded", "reads_unguarded"):
        assert found["records"][name] == vector[name]
    assert found["records"]["reads_automatic"] == sum(one["reads"] for one in held)
    if "datastores_unread" in vector:
        assert found["datastores_unread"] == vector["datastores_unread"]


@pytest.mark.parametrize("vector", RECORDS)
def test_records_are_of_the_schema(vector: dict[str, Any]) -> None:
    """What a report is made of is what the schema allows to write."""
    if vector.get("refused"):
        return
    judge = Draft202012Validator(vectors.load(SCHEMA))
    for line in [line for lines in vector["files"] for line in lines]:
        if isinstance(line, dict) and line["kind"] in KINDS:
            judge.validate(line)
