"""What the tests of the dry run have in common."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import antipode
from antipode import WriteId
from antipode_testing import FakeStore, VirtualClock

if TYPE_CHECKING:
    from pathlib import Path

LOG = "log"


def records(folder: Path, kind: str = "") -> list[dict[str, Any]]:
    """What all processes wrote into *folder*, of one kind; each line must be whole."""
    files = sorted(folder.glob("*.jsonl"))
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    found = [json.loads(line) for line in lines]
    return [one for one in found if not kind or one["kind"] == kind]


def verdicts(folder: Path) -> list[str]:
    """What was said of each read."""
    return [one["verdict"] for one in records(folder, "read")]


def lints(folder: Path) -> list[tuple[str, str, str]]:
    """What was found besides."""
    return [(one["lint"], one["datastore"], one["detail"]) for one in records(folder, "lint")]


def write(version: int | str = 1, *, log: str = LOG, covering: bool = False) -> WriteId:
    """A write of the datastore ``posts``."""
    return WriteId("posts", log, version, 490_000, covering=covering)


def fake(**options: Any) -> FakeStore:
    """A store at whose replica this process reads; nothing is visible there before told so."""
    store = FakeStore("posts", VirtualClock(), **{"reads_from": "replica", **options})
    antipode.shim.register(store)
    return store
