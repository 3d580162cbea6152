"""Two clusters of SeaweedFS: what their own replication keeps, its lag, its faults."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from antipode_testing import wait_until
from antipode_testing.servers.s3.weed import seaweedfs
from antipode_testing.servers.server import started
from tests.integration.s3._regions import Regions, name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import SeaweedFSTopology

pytestmark = pytest.mark.store("seaweedfs")

BUCKET = "posts"
#: Where SeaweedFS has its own sockets, whatever ``TMPDIR`` is.
SOCKETS = Path("/tmp")  # noqa: S108
#: Long against what copies take beside the lag, so that the clock is not what decides.
LAG_MS = 1000.0


@pytest.fixture
def regions(antipode_seaweedfs: SeaweedFSTopology) -> Iterator[Any]:
    """Two regions and clients of them, which end with the test."""
    with ExitStack() as stack:
        yield Regions(antipode_seaweedfs, stack)


def has(client: Any, key: str, version: str) -> bool:
    """Whether a region has a version, or a delete marker, of an object."""
    try:
        client.head_object(Bucket=BUCKET, Key=key, VersionId=version)
    except ClientError as error:
        return int(error.response["ResponseMetadata"]["HTTPStatusCode"]) == 405
    return True


def test_versions_and_metadata_are_kept(regions: Any) -> None:
    """The copy has the version and the metadata of the original, and no replication status."""
    us, eu = regions.client(regions.home), regions.client(regions.away)
    key = name()
    put = us.put_object(Bucket=BUCKET, Key=key, Body=b"1", Metadata={"antipode": "text"})
    deleted = us.delete_object(Bucket=BUCKET, Key=key)
    regions.topology.wait_replicated()
    found = eu.get_object(Bucket=BUCKET, Key=key, VersionId=put["VersionId"])
    assert found["Body"].read() == b"1"
    assert found["Metadata"] == {"antipode": "text"}
    assert found["VersionId"] == put["VersionId"]
    assert "ReplicationStatus" not in found
    assert has(eu, key, deleted["VersionId"])


def test_copies_are_late(regions: Any) -> None:
    """By the lag and little more, whether or not the key was there before."""
    us, eu = regions.client(regions.home), regions.client(regions.away)
    key = name()
    regions.topology.set_lag(LAG_MS)
    for _ in range(2):
        version = us.put_object(Bucket=BUCKET, Key=key, Body=b"1")["VersionId"]
        began = time.monotonic()
        wait_until(lambda version=version: has(eu, key, version), what="the copy", timeout_s=10)
        assert LAG_MS / 1000 * 0.9 < time.monotonic() - began < LAG_MS / 1000 * 2


@pytest.mark.parametrize(("fault", "undo"), [("pause", "resume"), ("cut", "heal")])
def test_nothing_is_copied_meanwhile(regions: Any, fault: str, undo: str) -> None:
    """What is written during a fault comes after its end."""
    us, eu = regions.client(regions.home), regions.client(regions.away)
    key = name()
    getattr(regions.topology, fault)()
    version = us.put_object(Bucket=BUCKET, Key=key, Body=b"1")["VersionId"]
    assert not has(eu, key, version)
    getattr(regions.topology, undo)()
    wait_until(lambda: has(eu, key, version), what="the copy", timeout_s=20)


def test_reseed(regions: Any) -> None:
    """The second region has nothing after `forget`, and all again after `reseed`."""
    us, eu = regions.client(regions.home), regions.client(regions.away)
    key = name()
    version = us.put_object(Bucket=BUCKET, Key=key, Body=b"1")["VersionId"]
    regions.topology.wait_replicated()
    regions.topology.pause()
    regions.topology.forget()
    assert not has(eu, key, version)
    regions.topology.reseed()
    assert has(eu, key, version)


def test_nothing_is_left_behind() -> None:
    """A server that has ended has no socket any more, though it was killed."""
    server = started(seaweedfs("ends"))
    port = server.endpoints["filer-grpc"].port
    assert list(SOCKETS.glob(f"seaweedfs-*-{port}.sock"))
    ports = [address.port for address in server.endpoints.values()]
    server.close()
    left = [each.name for each in SOCKETS.glob("seaweedfs-*.sock")]
    assert not [each for each in left if any(f"-{port}." in each for port in ports)]


def test_there_is_no_failover(antipode_seaweedfs: SeaweedFSTopology) -> None:
    """A bucket has no second region to go to."""
    with pytest.raises(Exception, match="no second region"):
        antipode_seaweedfs.failover()
