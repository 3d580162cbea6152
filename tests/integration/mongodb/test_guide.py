"""The guide to MongoDB does what it says, and names what there is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from antipode_shims import mongodb

if TYPE_CHECKING:
    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "mongodb.md"


def test_examples_run(antipode_mongodb: MongoDBTopology) -> None:
    """The examples, run one after the other on a lagging set, hold."""
    antipode_mongodb.set_lag(50)
    text = GUIDE.read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))
    examples = examples.replace(
        "mongodb://localhost:27017/?replicaSet=rs0", antipode_mongodb.set_url
    )
    examples = examples.replace("localhost:27018", str(antipode_mongodb.replica))
    names: dict[str, Any] = {}
    exec(compile(examples, str(GUIDE), "exec"), names)  # noqa: S102 - our own examples
    assert names["value"] == {"text": "hello", "likes": 1}
    assert {write.datastore for write in names["lineage"]} == {"posts"}
    assert names["refund"] == {"_id": "refund:1"}
    for one in ("writer", "reader", "feed"):
        mongodb.uninstrument_client(names[one])
        names[one].close()
    for one in ("posts", "near"):
        names[one].close()


def test_options_are_listed() -> None:
    """The guide's table names every option of every entry."""
    text = GUIDE.read_text(encoding="utf-8")
    for entry in (mongodb.shim, mongodb.shim_async, mongodb.instrument_client):
        for name, parameter in inspect.signature(entry).parameters.items():
            if parameter.kind is parameter.KEYWORD_ONLY:
                assert f"`{name}`" in text, name
