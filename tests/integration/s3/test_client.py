"""Instrumented clients of boto3: what enters the lineage, what replies show, what waits."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, Any

import pytest
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

import antipode
from antipode import BarrierTimeout, Lineage, Status, UnmetError, WriteId
from antipode.shim import Incomplete
from antipode.telemetry import Metric, metrics
from antipode_shims import s3
from antipode_shims.s3._format import MOST_BYTES, NAME
from antipode_testing import LagProxy
from tests.integration._refusing import answering
from tests.integration._stale import doubtful, served
from tests.integration.s3._regions import POSTS, Regions, name, written

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.store("s3")

UNSAMPLED = Incomplete(POSTS, "unsampled")
ELSEWHERE = WriteId("elsewhere", "log", 7, 490_000)
PART_BYTES = 5 * 2**20


def put(client: Any, key: str) -> None:
    client.put_object(Bucket=POSTS, Key=key, Body=b"new")


def upload(client: Any, key: str) -> None:
    client.upload_fileobj(io.BytesIO(b"new"), POSTS, key)


def upload_parts(client: Any, key: str) -> None:
    parts = TransferConfig(multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES)
    client.upload_fileobj(io.BytesIO(bytes(PART_BYTES + 1)), POSTS, key, Config=parts)


def copy_managed(client: Any, key: str) -> None:
    put(client, f"{key}-source")
    client.copy({"Bucket": POSTS, "Key": f"{key}-source"}, POSTS, key)


@pytest.mark.parametrize("write", [put, upload, upload_parts, copy_managed])
def test_a_write_is_named_by_its_version(
    client: Any, regions: Regions, write: Callable[[Any, str], None]
) -> None:
    """Each way to write enters the version that the bucket then has, from whatever thread."""
    key = name()
    with antipode.scope():
        write(client, key)
        entered = written()[key]
    plain = regions.client(regions.home)
    assert entered.version == plain.head_object(Bucket=POSTS, Key=key)["VersionId"]
    assert entered.key == f"{POSTS}/{key}@{regions.home}"


def test_a_barrier_in_the_other_region_waits(client: Any, regions: Regions) -> None:
    """While copies are late a barrier, and the read after it, wait for the version."""
    reader = regions.reader()
    regions.topology.set_lag(60)
    for at in ("now", "read"):
        key = name()
        with antipode.scope():
            put(client, key)
            antipode.barrier(timeout=10, at=at)
            assert reader.get_object(Bucket=POSTS, Key=key)["Body"].read() == b"new"
    regions.topology.pause()
    with antipode.scope():
        put(client, name())
        with pytest.raises(BarrierTimeout):
            antipode.barrier(timeout=0.1)


def test_a_deletion_is_waited_for_by_its_marker(client: Any, regions: Regions) -> None:
    """A delete marker is a version; once it is visible the other region has no object."""
    reader, key = regions.reader(), name()
    put(client, key)
    regions.topology.set_lag(50)
    with antipode.scope():
        client.delete_object(Bucket=POSTS, Key=key)
        assert set(written()) == {key}
        antipode.barrier(timeout=10)
        with pytest.raises(ClientError, match="NoSuchKey"):
            reader.get_object(Bucket=POSTS, Key=key)


@pytest.mark.parametrize("quiet", [True, False])
def test_batches_of_deletions_enter_their_markers(client: Any, quiet: bool) -> None:  # noqa: FBT001 - a parameter
    """Each object's marker enters, and the application sees no more than it asked for."""
    keys = [name(), name()]
    for key in keys:
        put(client, key)
    with antipode.scope() as scope:
        objects = [{"Key": key} for key in keys]
        told = client.delete_objects(Bucket=POSTS, Delete={"Objects": objects, "Quiet": quiet})
        assert set(written()) == set(keys)
        assert not scope.lineage.incomplete
    assert ("Deleted" in told) != quiet


def test_what_ends_a_version_for_good_is_marked(client: Any) -> None:
    """No other region ever hears of it."""
    key = name()
    version = client.put_object(Bucket=POSTS, Key=key, Body=b"1")["VersionId"]
    with antipode.scope() as scope:
        client.delete_object(Bucket=POSTS, Key=key, VersionId=version)
        assert UNSAMPLED in scope.lineage.incomplete
        assert not written()


def test_a_bucket_without_versioning_is_marked(
    client: Any, regions: Regions, caplog: pytest.LogCaptureFixture
) -> None:
    """There is nothing to wait for, and the log says why."""
    bucket = name()
    regions.topology.create_bucket(bucket, versioned=False)
    with antipode.scope() as scope:
        client.put_object(Bucket=bucket, Key="a", Body=b"1")
        assert UNSAMPLED in scope.lineage.incomplete
    assert "without versioning" in caplog.text


def test_a_failed_replication_is_lost(client: Any, regions: Regions) -> None:
    """A source that says FAILED ends the wait long before its deadline."""
    bucket, plain = name(), regions.client(regions.home)
    plain.create_bucket(Bucket=bucket)
    plain.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    regions.client(regions.away).create_bucket(
        Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": regions.away}
    )
    regions.reader()
    with antipode.scope():
        client.put_object(Bucket=bucket, Key="a", Body=b"1")
        with pytest.raises(UnmetError) as caught:
            antipode.barrier(timeout=20)
    (outcome,) = caught.value.result.outcomes
    assert outcome.status is Status.LOST


def test_an_expired_version_is_superseded_by_what_came_after(client: Any, regions: Regions) -> None:
    """A version that ended for good is waited for until both regions have the same newest one."""
    regions.reader()
    key = name()
    regions.topology.pause()
    with antipode.scope():
        first = client.put_object(Bucket=POSTS, Key=key, Body=b"1")["VersionId"]
        lineage = antipode.current()
    put(client, key)
    plain = regions.client(regions.home)
    plain.delete_object(Bucket=POSTS, Key=key, VersionId=first)
    with pytest.raises(BarrierTimeout):
        antipode.barrier(lineage, timeout=0.4)
    regions.topology.resume()
    (outcome,) = antipode.barrier(lineage, timeout=10).outcomes
    assert outcome.status is Status.SUPERSEDED
    shown = regions.client(regions.away).get_object(Bucket=POSTS, Key=key)
    assert shown["Body"].read() == b"new"


def test_a_missing_bucket_is_told(client: Any, regions: Regions) -> None:
    """The reader's region has no bucket of the name, and no copies in another."""
    bucket, plain = name(), regions.client(regions.home)
    plain.create_bucket(Bucket=bucket)
    plain.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    reader = regions.reader()
    with antipode.scope():
        client.put_object(Bucket=bucket, Key="a", Body=b"1")
        with pytest.raises(UnmetError) as caught:
            antipode.barrier(timeout=2)
    (outcome,) = caught.value.result.outcomes
    assert outcome.status is Status.UNKNOWN_LOG
    assert reader is not None


def test_copies_may_be_in_a_bucket_of_another_name(regions: Regions) -> None:
    """A reader that says so waits at the bucket with the copies."""
    copies = name()
    regions.topology.create_bucket(copies)
    plain = regions.client(regions.away)
    reader = regions.reader(buckets={POSTS: copies})
    key = name()
    version = plain.put_object(Bucket=copies, Key=key, Body=b"1")["VersionId"]
    lineage = Lineage([WriteId(POSTS, f"{POSTS}/{key}@{regions.home}", version, 490_000)])
    (outcome,) = antipode.barrier(lineage, timeout=5).outcomes
    assert outcome.status is Status.VISIBLE
    assert reader is not None


@pytest.mark.parametrize("status", [400, 403])
def test_expired_credentials_end_a_barrier(client: Any, regions: Regions, status: int) -> None:
    """They do at once, and by the service's own word for them, which a HEAD does not have."""
    with answering((status, "ExpiredToken")) as url, antipode.scope():
        regions.instrumented(regions.client(regions.away, endpoint_url=url), reads_from="replica")
        put(client, name())
        with pytest.raises(Exception, match="ExpiredToken"):
            antipode.barrier(timeout=20)


def test_throttling_is_waited_out(client: Any, regions: Regions) -> None:
    """A region that throttles is unreachable until the deadline, and the error says why."""
    with answering((503, "SlowDown")) as url, antipode.scope():
        regions.instrumented(regions.client(regions.away, endpoint_url=url), reads_from="replica")
        put(client, name())
        with pytest.raises(UnmetError, match="503") as caught:
            antipode.barrier(timeout=0.3)
    (outcome,) = caught.value.result.outcomes
    assert outcome.status is Status.UNREACHABLE


def test_metadata_that_is_full_stays_as_it_is(regions: Regions) -> None:
    """Without room the object is put as it was given, and the lineage is marked."""
    client = regions.instrumented(regions.client(regions.home), lineage="beside")
    key, value = name(), "x" * (MOST_BYTES - 1)
    with antipode.scope(Lineage([ELSEWHERE])) as scope:
        client.put_object(Bucket=POSTS, Key=key, Body=b"1", Metadata={"m": value})
        assert Incomplete(POSTS, "size") in scope.lineage.incomplete
        assert set(written()) == {key}
    told = regions.client(regions.home).head_object(Bucket=POSTS, Key=key)
    assert told["Metadata"] == {"m": value}


def test_lineages_are_stored_with_objects(regions: Regions) -> None:
    """Who reads an object depends on what its writer did; copies merge, and nobody is shown it."""
    client = regions.instrumented(regions.client(regions.home), lineage="beside")
    key, copied = name(), name()
    with antipode.scope(Lineage([ELSEWHERE])):
        client.put_object(Bucket=POSTS, Key=key, Body=b"1", Metadata={"m": "x"}, ContentType="a/b")
    other = WriteId("other", "log", 8, 490_000)
    with antipode.scope(Lineage([other])):
        client.copy_object(Bucket=POSTS, Key=copied, CopySource=f"{POSTS}/{key}")
    for each, expected in ((key, {ELSEWHERE}), (copied, {ELSEWHERE, other})):
        with antipode.scope() as scope:
            told = client.get_object(Bucket=POSTS, Key=each)
            assert told["Metadata"] == {"m": "x"}
            assert told["ContentType"] == "a/b"
            assert expected <= set(scope.lineage)
            assert set(written()) == {each}
    assert NAME in regions.client(regions.home).head_object(Bucket=POSTS, Key=copied)["Metadata"]


@pytest.mark.parametrize("given", [{}, {"Metadata": {"m": "y"}}], ids=["nothing", "no-directive"])
def test_a_copy_that_changes_nothing_goes_as_it_is(regions: Regions, given: dict[str, Any]) -> None:
    """AWS refuses it of an object onto itself: the lineage must not be what it changes."""
    client = regions.instrumented(regions.client(regions.home), lineage="beside")
    sent: list[bool] = []
    client.meta.events.register(
        "before-call.s3.CopyObject",
        lambda params, **_: sent.append("x-amz-metadata-directive" in params["headers"]),
    )
    key = name()
    onto: Any = {"Bucket": POSTS, "Key": key, "CopySource": {"Bucket": POSTS, "Key": key}}
    with antipode.scope(Lineage([ELSEWHERE])):
        put(client, key)
        with contextlib.suppress(ClientError):  # Not every emulator refuses it.
            client.copy_object(**onto, **given)
        client.copy_object(**onto, **given, StorageClass="STANDARD")
    assert sent == [False, True]
    with antipode.scope() as scope:
        client.head_object(Bucket=POSTS, Key=key)
        assert ELSEWHERE in scope.lineage


def test_an_upload_in_parts_stores_what_it_began_with(regions: Regions) -> None:
    """The lineage is that of its beginning, and what came after is counted."""
    client = regions.instrumented(regions.client(regions.home), lineage="beside")
    key, metric = name(), Metric("unstored_lineage", POSTS)
    before = metrics().get(metric, 0)
    with antipode.scope(Lineage([ELSEWHERE])):
        begun = client.create_multipart_upload(Bucket=POSTS, Key=key)
        where = {"Bucket": POSTS, "Key": key, "UploadId": begun["UploadId"]}
        tag = client.upload_part(**where, PartNumber=1, Body=b"1")["ETag"]
        put(client, name())
        parts = {"Parts": [{"ETag": tag, "PartNumber": 1}]}
        client.complete_multipart_upload(**where, MultipartUpload=parts)
        assert key in written()
    with antipode.scope() as scope:
        client.head_object(Bucket=POSTS, Key=key)
        assert ELSEWHERE in scope.lineage
    assert metrics()[metric] == before + 1


def test_what_is_only_signed_is_counted(client: Any) -> None:
    """A presigned URL enters nothing: somebody else makes the call, some time."""
    metric = Metric("presigned", POSTS)
    before = metrics().get(metric, 0)
    with antipode.scope() as scope:
        client.generate_presigned_url("put_object", Params={"Bucket": POSTS, "Key": name()})
        assert scope.lineage.empty
    assert metrics()[metric] == before + 1


def test_a_lost_reply_is_in_doubt(regions: Regions) -> None:
    """A put whose reply never comes marks the lineage."""
    with LagProxy(regions.topology.primary) as proxy:
        once = Config(retries={"total_max_attempts": 1}, read_timeout=1)
        url = f"http://{proxy.address}"
        client = regions.client(regions.home, endpoint_url=url, config=once)
        regions.instrumented(client)
        key = name()
        client.list_objects_v2(Bucket=POSTS, Prefix=key)
        proxy.set_lag(60_000, request_lag_ms=0)
        with antipode.scope() as scope:
            with pytest.raises(Exception, match="Read timeout"):
                put(client, key)
            assert Incomplete(POSTS, "in_doubt") in scope.lineage.incomplete


def test_uninstrumenting_leaves_a_plain_client(client: Any, regions: Regions) -> None:
    """Nothing enters any more, and nothing is left on the client."""
    s3.uninstrument_client(client)
    with antipode.scope() as scope:
        put(client, name())
        assert scope.lineage.empty
    regions.instrumented(client)


def test_absence_is_an_answer_that_may_be_stale(client: Any) -> None:
    """That an object is not there is what a replica shows, though the client raises it."""
    antipode.configure(barriers="auto")
    missing = doubtful(POSTS)[0]
    with served(POSTS, 1), antipode.scope(missing), pytest.raises(ClientError, match="NoSuchKey"):
        client.get_object(Bucket=POSTS, Key=name())
