"""The guide to Redis does what it says, and names what there is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from antipode_shims import redis as shims

if TYPE_CHECKING:
    from antipode.testing import RedisTopology

pytestmark = pytest.mark.store("redis")

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "redis.md"


def test_examples_run(antipode_redis: RedisTopology) -> None:
    """Both examples, run one after the other on a lagging pair of servers, hold."""
    antipode_redis.set_lag(50)
    text = GUIDE.read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))
    for port, address in (("6379", antipode_redis.primary), ("6380", antipode_redis.replica)):
        examples = examples.replace(port, str(address.port))
    names: dict[str, Any] = {}
    exec(compile(examples, str(GUIDE), "exec"), names)  # noqa: S102 - our own examples
    assert names["value"] == b"hello"
    assert {write.datastore for write in names["lineage"]} == {"posts"}
    for one in ("writer", "reader"):
        shims.uninstrument_client(names[one])
        names[one].close()
    names["posts"].close()
    names["posts"]._client.close()
    names["near"].close()


def test_every_option_is_in_the_guide() -> None:
    """The table of options names each argument of the public functions."""
    text = GUIDE.read_text(encoding="utf-8")
    for function in (shims.shim, shims.async_shim, shims.instrument_client):
        for name in inspect.signature(function).parameters:
            assert name == "client" or f"| `{name}` |" in text, name
