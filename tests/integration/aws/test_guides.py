"""The guides to the stores of AWS name what there is, and that it was tried on emulators."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from antipode_shims import dynamodb, s3, sns
from antipode_testing import DynamoDBTopology, S3Topology, SNSTopology
from antipode_testing.lab import Lab

if TYPE_CHECKING:
    from collections.abc import Callable

GUIDES = Path(__file__).resolve().parents[3] / "docs" / "guides"
SHIMS: dict[str, Any] = {"dynamodb": dynamodb, "s3": s3, "sns": sns}
TOPOLOGIES: dict[str, Any] = {
    "dynamodb": DynamoDBTopology,
    "s3": S3Topology,
    "sns": SNSTopology,
}
FUNCTIONS = [
    (store, getattr(shims, name))
    for store, shims in SHIMS.items()
    for name in ("instrument_client", "shim", "shim_async")
    if hasattr(shims, name)
]
#: What each region of a lab answers.
PROBES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "dynamodb": ("dynamodb", lambda client: client.describe_table(TableName="posts")["Table"]),
    "s3": ("s3", lambda client: client.get_bucket_versioning(Bucket="posts")["Status"]),
    "sns": ("sqs", lambda client: client.list_queues()["ResponseMetadata"]),
}


def text_of(store: str) -> str:
    """The guide."""
    return (GUIDES / f"{store}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("store", SHIMS)
def test_the_first_sentence_names_the_emulator(store: str) -> None:
    """Nobody takes a figure of an emulator for one of AWS."""
    assert "emulator" in text_of(store).splitlines()[2]
    assert "emulator" in str(TOPOLOGIES[store].__doc__).splitlines()[0]


@pytest.mark.parametrize(("store", "function"), FUNCTIONS)
def test_options_are_listed(store: str, function: Any) -> None:
    """Each option of each function is in the table."""
    options = [
        name
        for name, each in inspect.signature(function).parameters.items()
        if each.kind is each.KEYWORD_ONLY
    ]
    rows = "".join(line for line in text_of(store).splitlines() if line.startswith("| `"))
    assert all(f"`{option}`" in rows for option in options)


@pytest.mark.parametrize("store", SHIMS)
def test_operations_are_listed(store: str) -> None:
    """Each covered operation is in the table."""
    covered = SHIMS[store].COVERED_READS | SHIMS[store].COVERED_WRITES
    assert all(f"`{each}`" in text_of(store) for each in covered)


@pytest.mark.parametrize(
    "store", [pytest.param(store, marks=pytest.mark.store(store)) for store in SHIMS]
)
def test_a_lab_says_where_its_regions_are(store: str) -> None:
    """`antipode lab` prints what boto3 takes; it refuses a fail-over."""
    topology, (service, probe) = TOPOLOGIES[store], PROBES[store]
    with Lab(store, lag_ms=5) as lab:
        about = lab.describe()
        servers = (about["primary"], *about["replicas"])
        for server, region in zip(servers, topology.regions, strict=True):
            client: Any = boto3.client(
                service, endpoint_url=server["url"], region_name=region, **topology.credentials
            )
            assert probe(client)
            client.close()
        assert about["regions"] == topology.regions
        assert topology.no_failover in lab.answer("failover")["error"]
        assert lab.answer("cut")["ok"]
        assert lab.answer("reset")["ok"]
