"""How a region answers: one request for each version, and a listing where it is not there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar

from antipode import ConfigurationError
from antipode_shims._aws.botocore import client_error, code_of, passes
from antipode_shims._aws.homes import Homes
from antipode_shims._aws.regions import Regions

from ._look import Look, Question, Shown, look

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from antipode import WriteId
    from antipode_shims._aws.botocore import Settings

    from ._look import Answer
    from ._position import Version

#: Requests at a time: as many as botocore has connections for.
AT_ONCE = 10
#: A reply without a body says no more than its status: these have several causes.
_UNCLEAR = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN})
#: What S3 calls a version of a bucket that kept none then.
_NO_VERSION = "null"
#: Versions of one key that a listing shows: the newest comes first.
_LISTED = 100


class S3Regions(Regions):
    """The clients by which regions are polled. Thread-safe."""

    service: ClassVar[str] = "s3"

    def __init__(
        self, settings: Settings, others: Mapping[str, str], buckets: Mapping[str, str]
    ) -> None:
        """As `Regions`; *buckets* are those of other regions, with the one here that has copies."""
        super().__init__(settings, others)
        self.homes: Homes[Shown] = Homes()
        self._buckets = dict(buckets)

    def look(self, writes: Collection[WriteId]) -> Look:
        """As `Regions.look`."""
        return look(writes, self.here, self._buckets, self.homes)

    def read(self, client: Any, question: Question) -> Answer:
        """As `Regions.read`."""
        if not question.versions:
            _ask_for_an_answer(client)
        if len(question.versions) <= 1:
            return {each: _shown(client, each, question) for each in question.versions}
        with ThreadPoolExecutor(min(AT_ONCE, len(question.versions))) as pool:
            asked = {
                each: pool.submit(copy_context().run, _shown, client, each, question)
                for each in question.versions
            }
            return {each: future.result() for each, future in asked.items()}


def _ask_for_an_answer(client: Any) -> None:
    """Ask for the least that there is; that it is not allowed is an answer, too."""
    try:
        client.list_buckets(MaxBuckets=1)
    except client_error() as error:
        if passes(error):
            raise


def _shown(client: Any, version: Version, question: Question) -> Shown | None:
    """What the region has of *version*, as *question* asks; None where it has no such bucket.

    Raises:
        ClientError: it was refused, such as for want of rights.
        ConfigurationError: versions may not be read.
    """
    bucket, key, number = version
    try:
        found = client.head_object(Bucket=bucket, Key=key, VersionId=number)
    except client_error() as error:
        status = _status_of(error)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:  # A delete marker is there, and has no content.
            return Shown(present=not question.copies or _is_read(client, version))
        if status != HTTPStatus.NOT_FOUND and status not in _UNCLEAR:
            raise
    else:
        present = not question.copies or _is_read(client, version)
        return Shown(present=present, replication=found.get("ReplicationStatus", ""))
    if not question.whole and status == HTTPStatus.NOT_FOUND:
        return Shown(present=False)
    newest = _newest(client, bucket, key)
    if newest is None:
        return None
    if status == HTTPStatus.FORBIDDEN:
        msg = f"versions of {bucket!r} may be listed but not read: grant s3:GetObjectVersion"
        raise ConfigurationError(msg)
    return Shown(present=False, newest=newest)


def _is_read(client: Any, version: Version) -> bool:
    """Whether a read that names no version shows *version*, or a newer one.

    A copy may be there before: SeaweedFS makes a version, and then has its key show it.
    """
    bucket, key, number = version
    try:
        shown = client.head_object(Bucket=bucket, Key=key).get("VersionId", _NO_VERSION)
    except client_error() as error:
        if _status_of(error) != HTTPStatus.NOT_FOUND:
            raise
        headers = _headers_of(error)
        if "x-amz-delete-marker" not in headers:
            return False
        shown = headers.get("x-amz-version-id") or _newest(client, bucket, key)
    if shown == number:
        return True
    # Versions have no order but that of listings: from the newest on, here after the one shown.
    older = client.list_object_versions(
        Bucket=bucket, Prefix=key, KeyMarker=key, VersionIdMarker=shown
    )
    listed = [*older.get("Versions", ()), *older.get("DeleteMarkers", ())]
    # So many versions are after it that the listing ends within them.
    endless = older.get("NextKeyMarker") == key
    return endless or any((each["Key"], each["VersionId"]) == (key, number) for each in listed)


def _newest(client: Any, bucket: str, key: str) -> str | None:
    """The newest version of *key*, or delete marker; None where there is no such bucket."""
    try:
        found = client.list_object_versions(Bucket=bucket, Prefix=key, MaxKeys=_LISTED)
    except client_error() as error:
        if code_of(getattr(error, "response", {})) == "NoSuchBucket":
            return None
        raise
    listed = [*found.get("Versions", ()), *found.get("DeleteMarkers", ())]
    newest = [str(each["VersionId"]) for each in listed if each["Key"] == key and each["IsLatest"]]
    return newest[0] if newest else ""


def _headers_of(error: Exception) -> Mapping[str, str]:
    response: Any = getattr(error, "response", {})
    found: Mapping[str, str] = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return found


def _status_of(error: Exception) -> int:
    response: Any = getattr(error, "response", {})
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
