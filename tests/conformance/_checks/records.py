"""Records of dry runs of processes in several languages: one report is made of them."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from antipode_cli.main import main

if TYPE_CHECKING:
    from tests.conformance._agents import Answers
    from tests.conformance._vectors import Vector


def records(_: Answers, vector: Vector) -> None:
    """Processes of several languages are reported together, by Python's program."""
    expected = vector.content
    found = _reported(expected["files"])
    assert (found is None) is expected.get("refused", False)
    if found is None:
        return
    for kind in ("findings", "lints"):
        _check_each(expected[kind], found[kind])
    held = expected.get("automatic_reads", [])
    _check_each(held, found["automatic_reads"])
    for name in ("reads_guarded", "reads_unguarded"):
        assert found["records"][name] == expected[name]
    assert found["records"]["reads_automatic"] == sum(one["reads"] for one in held)
    if "datastores_unread" in expected:
        assert found["datastores_unread"] == expected["datastores_unread"]


def _check_each(expected: list[dict[str, Any]], found: list[dict[str, Any]]) -> None:
    """What a vector leaves out, it leaves open."""
    for wanted, one in zip(expected, found, strict=True):
        assert {name: one[name] for name in wanted} == wanted


def _reported(files: list[list[Any]]) -> Any:
    """What the program prints of *files*; None where it refuses them."""
    with TemporaryDirectory() as folder, redirect_stdout(io.StringIO()) as out:
        for number, lines in enumerate(files):
            texts = [line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines]
            texts[:-1] = [text.rstrip("\n") + "\n" for text in texts[:-1]]
            Path(folder, f"{number}.jsonl").write_text("".join(texts), encoding="utf-8")
        status = main(["report", folder, "--format", "json"])
    return json.loads(out.getvalue()) if status == 0 else None
