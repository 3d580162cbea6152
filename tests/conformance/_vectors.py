"""Reads the vectors."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
FOLDERS = {
    "L1-codec": "codec",
    "L2-algebra": "algebra",
    "L3-headers": "headers",
    "L4-barrier": "barrier",
    "L4-automatic": "barrier",
    "L4-guard": "guard",
    "S1-positions": "positions",
    "S2-commands": "commands",
    "S3-stored": "stored",
    "C1-calls": "calls",
    "golden/v1": "golden",
}
#: Levels that tests of this process have.
REPLAYED: set[str] = set()


class Vector(NamedTuple):
    """One vector, and where it is; most contents are objects with a ``name``."""

    level: str
    file: str
    kind: str
    store: str | None
    content: Any

    def __str__(self) -> str:
        """Its place and its name, as the reports of all languages have them."""
        name = self.content if isinstance(self.content, str) else self.content["name"]
        return f"{self.level}/{self.file}/{self.kind}: {name}"


def files() -> list[tuple[Path, str]]:
    """All vector files, each with the name of its schema."""
    return [
        (path, FOLDERS[path.parent.relative_to(HERE).as_posix()])
        for path in sorted(HERE.rglob("*.json"))
        if path.parent.name != "schema"
    ]


@cache
def load(path: Path) -> Any:
    """One file of vectors."""
    return json.loads(path.read_text(encoding="utf-8"))


def every(*levels: str) -> list[Vector]:
    """The vectors of all kinds in all files of *levels*."""
    return [
        Vector(level, path.name, kind, load(path).get("store"), content)
        for level in levels
        for path in sorted((HERE / level).glob("*.json"))
        for kind, vectors in load(path).items()
        if isinstance(vectors, (list, dict))
        for content in vectors
    ]


def replayed(*levels: str) -> Callable[[Any], Any]:
    """A test that has each vector of *levels* as its parameter ``vector``."""
    REPLAYED.update(levels)
    found = [pytest.param(vector, id=str(vector)) for vector in every(*levels)]
    return pytest.mark.parametrize("vector", found)


def smoke(*levels: str) -> list[Vector]:
    """The first vector of each kind in each file of *levels*."""
    first: dict[tuple[str, str, str], Vector] = {}
    for vector in every(*levels):
        first.setdefault((vector.level, vector.file, vector.kind), vector)
    return list(first.values())


@cache
def validator(schema: str) -> Draft202012Validator:
    """The validator of one schema, which may refer to the others."""
    schemas = {path.name: load(path) for path in sorted((HERE / "schema").glob("*.json"))}
    resources = {name: Resource.from_contents(found) for name, found in schemas.items()}
    registry: Registry[Any] = Registry().with_resources(resources.items())
    return Draft202012Validator(schemas[f"{schema}.schema.json"], registry=registry)
