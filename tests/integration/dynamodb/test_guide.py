"""The guide to DynamoDB does what it says, and names what there is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from antipode_shims import dynamodb as shims
from antipode_testing import DynamoDBTopology
from antipode_testing.lab import Lab

if TYPE_CHECKING:
    from tests.integration.dynamodb._regions import Regions

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "dynamodb.md"
TEXT = GUIDE.read_text(encoding="utf-8")


@pytest.mark.store("dynamodb")
def test_examples_run(regions: Regions) -> None:
    """Both examples, run one after the other on lagging regions, hold; so does the test's."""
    regions.topology.set_lag(50)
    *examples, test = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    code = "\n".join(examples)
    for region in (regions.home, regions.away):
        where = f'"dynamodb", region_name="{region}"'
        assert where in code
        code = code.replace(where, f'"dynamodb", **OPTIONS["{region}"]')
    options = {region: regions.options(region) for region in (regions.home, regions.away)}
    names: dict[str, Any] = {"OPTIONS": options}
    exec(compile(code, str(GUIDE), "exec"), names)  # noqa: S102 - our own examples
    assert names["item"] == {"id": {"S": "1"}, "text": {"S": "hello"}}
    assert names["value"] == "hello"
    for one in ("posts", "near"):
        names[one].close()
    for one in ("us", "eu"):
        shims.uninstrument_client(names[one])
        names[one].close()
    exec(compile(test, str(GUIDE), "exec"), names)  # noqa: S102 - as above
    names["test_the_follower_reads_the_post"](regions.topology)


def test_the_first_sentence_names_the_emulator() -> None:
    """Nobody takes a figure of an emulator for one of AWS."""
    assert "emulator" in TEXT.splitlines()[2]
    assert "emulator" in str(DynamoDBTopology.__doc__).splitlines()[0]


@pytest.mark.parametrize("function", [shims.instrument_client, shims.shim, shims.shim_async])
def test_options_are_listed(function: Any) -> None:
    """Each option of each function is in the table."""
    options = [
        name
        for name, each in inspect.signature(function).parameters.items()
        if each.kind is each.KEYWORD_ONLY
    ]
    rows = "".join(line for line in TEXT.splitlines() if line.startswith("| `"))
    assert all(f"`{option}`" in rows for option in options)


def test_operations_are_listed() -> None:
    """Each covered operation is in the table."""
    assert all(f"`{each}`" in TEXT for each in shims.COVERED_READS | shims.COVERED_WRITES)


@pytest.mark.store("dynamodb")
def test_a_lab_says_where_its_regions_are() -> None:
    """`antipode lab dynamodb` prints what boto3 takes; it refuses a fail-over."""
    with Lab("dynamodb", lag_ms=5) as lab:
        about = lab.describe()
        servers = (about["primary"], *about["replicas"])
        for server, region in zip(servers, about["regions"], strict=True):
            client = boto3.client(
                "dynamodb",
                endpoint_url=server["url"],
                region_name=region,
                **DynamoDBTopology.credentials,
            )
            assert client.describe_table(TableName="posts")["Table"]["TableName"] == "posts"
            client.close()
        assert "no primary" in lab.answer("failover")["error"]
        assert lab.answer("cut")["ok"]
        assert lab.answer("reset")["ok"]
