"""The guide to Redis does what it says, and names what there is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode_shims import redis as shims
from antipode_testing import RedisSentinelTopology

if TYPE_CHECKING:
    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "redis.md"


def blocks() -> list[str]:
    """The examples in Python."""
    text = GUIDE.read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def test_examples_run(antipode_redis: RedisTopology) -> None:
    """Both examples, run one after the other on a lagging pair of servers, hold."""
    antipode_redis.set_lag(50)
    examples = "\n".join(each for each in blocks() if "sentinel" not in each)
    for port, address in (("6379", antipode_redis.primary), ("6380", antipode_redis.replica)):
        examples = examples.replace(port, str(address.port))
    names: dict[str, Any] = {}
    exec(compile(examples, str(GUIDE), "exec"), names)  # noqa: S102 - our own examples
    assert names["value"] == b"hello"
    assert {write.datastore for write in names["lineage"]} == {"posts"}
    assert names["title"] == b"hello"
    for one in ("writer", "reader", "feed", "near_feed"):
        shims.uninstrument_client(names[one])
        names[one].close()
    names["posts"].close()
    names["posts"]._client.close()
    names["near"].close()


def test_example_with_sentinel_runs() -> None:
    """The example under Sentinel holds at every replica that may answer."""
    (example,) = (each for each in blocks() if "sentinel" in each)
    with RedisSentinelTopology() as topology:
        for port, address in zip((26379, 26380, 26381), topology.sentinels, strict=True):
            example = example.replace(str(port), str(address.port))
        topology.set_lag(50)
        names: dict[str, Any] = {"antipode": antipode, "antipode_redis": shims}
        exec(compile(example, str(GUIDE), "exec"), names)  # noqa: S102 - our own example
        assert names["value"] == b"hello"
        for one in ("writer", "reader"):
            shims.uninstrument_client(names[one])
            names[one].close()
        for one in names["sentinel"].sentinels:
            one.close()


def test_every_option_is_in_the_guide() -> None:
    """The table of options names each argument of the public functions."""
    text = GUIDE.read_text(encoding="utf-8")
    for function in (shims.shim, shims.shim_async, shims.instrument_client):
        for name in inspect.signature(function).parameters:
            assert name == "client" or f"| `{name}` |" in text, name
