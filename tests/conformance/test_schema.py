"""The vector files themselves: well-formed, each name once, released values unchanged."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from tests.conformance import _vectors as vectors

if TYPE_CHECKING:
    from pathlib import Path

FILES = [pytest.param(path, schema, id=path.name) for path, schema in vectors.files()]
SCHEMAS = sorted((vectors.HERE / "schema").glob("*.json"))
EVERY = vectors.every(*vectors.FOLDERS)
GOLDEN = vectors.HERE / "golden" / "v1"


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_schemas_are_schemas(path: Path) -> None:
    """Each schema follows JSON Schema, and is named as it is referred to."""
    schema = vectors.load(path)
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == path.name


@pytest.mark.parametrize(("path", "schema"), FILES)
def test_vectors_follow_their_schema(path: Path, schema: str) -> None:
    """Every file is what the schema of its level promises to the other languages."""
    vectors.validator(schema).validate(vectors.load(path))


def test_names_are_unique() -> None:
    """A failure names exactly one vector."""
    doubled = {name for name, times in Counter(map(str, EVERY)).items() if times > 1}
    assert not doubled


def test_no_file_is_without_vectors() -> None:
    """Every file has some, so that none is read for nothing."""
    assert {path for path, _ in vectors.files()} == {
        vectors.HERE / each.level / each.file for each in EVERY
    }


def test_released_values_are_not_changed() -> None:
    """Golden files are append-only: each is listed with its checksum and has not changed."""
    lines = (GOLDEN / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    listed = {name: checksum for checksum, name in map(str.split, lines)}
    found = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in GOLDEN.glob("*.json")}
    assert found == listed
