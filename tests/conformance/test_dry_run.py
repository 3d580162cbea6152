"""Records of dry runs of processes in several languages: one report is made of them."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from opentelemetry.baggage.propagation import W3CBaggagePropagator

import antipode
from antipode._cli import main
from antipode.propagation import AntipodePropagator
from antipode.shim import floor, record_write
from antipode.testing import FakeStore, VirtualClock
from antipode.testing.agent._values import lineage_of, write_of
from tests.conformance import _vectors as vectors

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = vectors.HERE.parents[1] / "docs" / "spec" / "dry-run-record.schema.json"
RECORDS = vectors.cases("L3-headers", "records")
PROPAGATOR = AntipodePropagator(W3CBaggagePropagator())
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


@pytest.mark.parametrize("vector", vectors.cases("L3-headers", "verdicts"))
def test_verdicts(vector: dict[str, Any], tmp_path: Path) -> None:
    """Each read is judged by what the scope depends on and what guards it, and by nothing else."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path, region=vector.get("region"))
    antipode.configure(barriers=vector.get("barriers", "explicit"))
    stores = _registered(vector["stores"])
    expected: list[tuple[str, list[list[str]]]] = []
    with antipode.scope(lineage_of(vector.get("lineage", {}))):
        for step in vector["steps"]:
            match step["op"]:
                case "write":
                    record_write(write_of(step["write"]))
                case "barrier":
                    antipode.barrier(timeout=1, **step.get("options", {}))
                case "check":
                    antipode.check()
                case "read":
                    with antipode.barriers(step["block"]) if "block" in step else nullcontext():
                        floor(stores[step["datastore"]])
                    if step["verdict"]:
                        expected.append((step["verdict"], sorted(step["writes"])))
        headers: dict[str, str] = {}
        PROPAGATOR.inject(headers)
    texts = [file.read_text(encoding="utf-8") for file in tmp_path.iterdir()]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    reads = [line for line in lines if line["kind"] == "read"]
    assert [(read["verdict"], _entries(read["writes"])) for read in reads] == expected
    if "guards_after" in vector:
        sent = re.findall(r"~(0g[^~,;]*)", headers["baggage"])
        assert sorted(sent) == sorted(vector["guards_after"])


def _registered(stores: list[dict[str, Any]]) -> dict[str, FakeStore]:
    made: dict[str, FakeStore] = {}
    for options in stores:
        chosen = options.get("barriers")
        more = {name: value for name, value in options.items() if name != "barriers"}
        store = made[options["datastore"]] = FakeStore(clock=VirtualClock(), **more)
        store.wait_by(chosen)
        antipode.shim.register(store)
    return made


def _entries(writes: list[dict[str, str]]) -> list[list[str]]:
    return sorted([each["datastore"], each["log"], each["version"]] for each in writes)
