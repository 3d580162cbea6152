"""Which operations of the API read, write, or do neither. Static tables; no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode_shims._aws.call import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Writes that enter the lineage of an instrumented client, each by the version that it makes.
COVERED_WRITES = frozenset(
    """
    CompleteMultipartUpload CopyObject DeleteObject DeleteObjects PutObject
    """.split()  # noqa: SIM905 - a table that is read by eye
)

#: Reads that a floor holds back.
COVERED_READS = frozenset(
    """
    GetObject GetObjectAcl GetObjectAttributes GetObjectLegalHold GetObjectRetention
    GetObjectTagging GetObjectTorrent HeadObject ListObjectVersions ListObjects ListObjectsV2
    SelectObjectContent
    """.split()  # noqa: SIM905 - a table that is read by eye
)

#: Whose ``Metadata`` becomes that of an object.
LABELLED = frozenset({"CopyObject", "CreateMultipartUpload", "PutObject"})
#: Whose reply has the metadata of an object.
SHOWS_METADATA = frozenset({"GetObject", "HeadObject"})

#: What changes an object without a new version: nobody can wait for that.
_UNSEEN = frozenset(
    """
    DeleteObjectTagging PutObjectAcl PutObjectLegalHold PutObjectRetention PutObjectTagging
    RenameObject RestoreObject UpdateObjectEncryption WriteGetObjectResponse
    """.split()  # noqa: SIM905 - a table that is read by eye
)
#: Neither reads nor writes objects, whatever their names begin with.
_NEUTRAL = frozenset(
    """
    AbortMultipartUpload CreateBucket CreateMultipartUpload CreateSession ListMultipartUploads
    ListParts UploadPart UploadPartCopy
    """.split()  # noqa: SIM905 - a table that is read by eye
)
#: How the operations on buckets begin, and what they are about.
_ABOUT = ("Get", "Put", "Delete", "List", "Head", "Create", "Update")


def kind_of(operation: str, params: Mapping[str, Any]) -> Kind:
    """What a call of *operation* with *params* means for a lineage."""
    if operation in COVERED_READS:
        return Kind.READ
    if operation in COVERED_WRITES:
        # What ends a version for good is never copied to another region.
        return Kind.OTHER if operation == "DeleteObject" and "VersionId" in params else Kind.WRITE
    if operation in _NEUTRAL:
        return Kind.NEUTRAL
    is_of_bucket = "Object" not in operation and operation.startswith(_ABOUT)
    return Kind.NEUTRAL if is_of_bucket and operation not in _UNSEEN else Kind.OTHER
