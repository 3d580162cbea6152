"""Reads the vectors; what every language needs to replay them, in its Python form."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
FOLDERS = {
    "L1-codec": "codec",
    "L2-algebra": "algebra",
    "L3-headers": "headers",
    "L4-barrier": "barrier",
    "L4-automatic": "barrier",
    "S1-positions": "positions",
    "S2-commands": "commands",
    "S3-stored": "stored",
    "golden/v1": "golden",
}


def files() -> list[tuple[Path, str]]:
    """All vector files, each with the name of its schema."""
    return [
        (path, schema)
        for folder, schema in FOLDERS.items()
        for path in sorted((HERE / folder).glob("*.json"))
    ]


@cache
def load(path: Path) -> Any:
    """One file of vectors."""
    return json.loads(path.read_text(encoding="utf-8"))


def cases(folder: str, kind: str) -> list[Any]:
    """The vectors under *kind* in all files of *folder*, as parameters of a test."""
    return [
        pytest.param(vector, id=f"{path.stem}: {vector['name']}")
        for path in sorted((HERE / folder).glob("*.json"))
        for vector in load(path).get(kind, ())
    ]


def of_stores(kind: str) -> list[Any]:
    """The vectors under *kind* of all stores, each behind the name of its store."""
    return [
        pytest.param(load(path)["store"], vector, id=f"{path.stem}: {vector['name']}")
        for folder in ("S1-positions", "S2-commands", "S3-stored")
        for path in sorted((HERE / folder).glob("*.json"))
        for vector in load(path).get(kind, ())
    ]


def entries(folder: str, kind: str) -> list[Any]:
    """The values under *kind* in all files of *folder* that are no vectors with names."""
    return [
        found
        for path in sorted((HERE / folder).glob("*.json"))
        for found in load(path).get(kind, ())
    ]


@cache
def validator(schema: str) -> Draft202012Validator:
    """The validator of one schema, which may refer to the others."""
    schemas = {path.name: load(path) for path in sorted((HERE / "schema").glob("*.json"))}
    resources = {name: Resource.from_contents(found) for name, found in schemas.items()}
    registry: Registry[Any] = Registry().with_resources(resources.items())
    return Draft202012Validator(schemas[f"{schema}.schema.json"], registry=registry)


def text_of(vector: dict[str, Any]) -> str:
    """The text of a vector, which may be built of repeated strings."""
    if "text" in vector:
        return str(vector["text"])
    return "".join(part * times for part, times in vector["build"])


def names(folder: str) -> Iterator[str]:
    """The names of all vectors of *folder*, each with its file."""
    for path in sorted((HERE / folder).glob("*.json")):
        for kind, vectors in load(path).items():
            if isinstance(vectors, list):
                named = [each for each in vectors if isinstance(each, dict)]
                yield from (f"{path.name}/{kind}/{vector['name']}" for vector in named)
