"""One call of an instrumented client: what is added to it, and what its reply says. No I/O."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

from antipode import Lineage
from antipode.shim import count, lineage_not_stored, log_once, record_read, record_shown
from antipode_shims._aws.call import BaseCall, BaseCalls, Kind, Question
from antipode_shims.s3._commands import LABELLED, SHOWS_METADATA, kind_of
from antipode_shims.s3._format import NAME, labelled, lineage_in, without_ours
from antipode_shims.s3._position import NO_VERSION, Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode import WriteId
    from antipode_shims.s3._shim.base import BaseS3Shim

#: Uploads in parts of which is remembered what their object will depend on.
MOST_UPLOADS = 1_000
#: What a copy keeps of its source, besides the metadata, unless it replaces both.
_HEADERS = frozenset(
    """
    CacheControl ContentDisposition ContentEncoding ContentLanguage ContentType Expires
    """.split()  # noqa: SIM905 - a table that is read by eye
)
#: What an object may be copied onto itself for, besides its metadata.
_CHANGES = frozenset(
    """
    BucketKeyEnabled SSECustomerAlgorithm SSEKMSKeyId ServerSideEncryption StorageClass
    WebsiteRedirectLocation
    """.split()  # noqa: SIM905 - a table that is read by eye
)
_UNVERSIONED = "met a bucket without versioning"


@dataclass(slots=True)
class Call(BaseCall):
    """One call, and the object that it is about.

    Attributes:
        bucket: as the parameters have it.
        place: the object; None where there is none, or no bucket is named.
        stored: what is stored with the object.
        source: what the source of a copy says; None where it was not asked.
        quiet: whether the application wants no list of what was deleted.
        upload: the upload that it completes.
    """

    bucket: Any = None
    place: Place | None = None
    stored: Lineage | None = None
    source: dict[str, Any] | None = None
    quiet: bool = False
    upload: str = ""


#: Nothing has changed, nothing is there, or not what was asked for.
_TELLING = frozenset({304, 404, 412, 416})


class Calls(BaseCalls[Call, "BaseS3Shim"]):
    """What an instrumented client does before and after each call.

    Args:
        shim: what the client registered.
        stores: whether lineages are stored with objects.
    """

    call_class = Call
    telling = _TELLING

    def __init__(self, shim: BaseS3Shim, *, stores: bool) -> None:
        super().__init__(shim)
        self._stores = stores
        self._uploads: OrderedDict[str, Lineage] = OrderedDict()

    def kind_of(self, operation: str, params: dict[str, Any]) -> Kind:
        """As `BaseCalls.kind_of`."""
        return kind_of(operation, params)

    def questions(self, call: Call, params: dict[str, Any]) -> Iterator[Question]:
        """The source of a copy, whose metadata the copy would have unchanged."""
        if self._stores and call.operation == "CopyObject" and not _replaces(params):
            source = _source_of(params.get("CopySource"))
            if source is not None and not _changes_nothing(params, source):
                yield Question("head_object", source)

    def learn(self, call: Call, question: Question, answer: dict[str, Any]) -> None:
        """Take over what the source of a copy says."""
        del question
        call.source = answer

    def plan(self, call: Call, params: dict[str, Any], *, own_token: bool) -> None:
        """As `BaseCalls.plan`."""
        del own_token
        call.bucket = params.get("Bucket")
        call.place = Place.of(call.bucket, params.get("Key"), self.shim.region)
        if call.kind is Kind.OTHER:
            call.uncovered = True
            return
        if call.operation == "DeleteObjects":
            wanted = params["Delete"]
            call.quiet = bool(wanted.get("Quiet"))
            params["Delete"] = {**wanted, "Quiet": False}
        call.upload = str(params.get("UploadId", ""))
        if self._stores and call.operation in LABELLED:
            self._label(call, params)

    def _label(self, call: Call, params: dict[str, Any]) -> None:
        """Store the current lineage in the metadata that the object will have."""
        metadata: dict[str, str] = dict(params.get("Metadata") or {})
        if call.operation == "CopyObject" and not _replaces(params):
            if call.source is None:  # It keeps what its source has, and nothing is added.
                lineage_not_stored(self.shim.datastore, call.operation)
                return
            metadata = dict(call.source.get("Metadata") or {})
            kept = {name: held for name, held in call.source.items() if name in _HEADERS}
            params.update(kept, MetadataDirective="REPLACE")
        found = lineage_in(metadata, self.shim.datastore)
        call.stored = (Lineage() if call.scope is None else call.scope.known).merge(found)
        changed = without_ours(metadata) if call.stored.empty else labelled(metadata, call.stored)
        if changed is None:
            self._left_out(call)
        else:
            params["Metadata"] = changed

    def _left_out(self, call: Call) -> None:
        """Note that an object has no room for its lineage: its readers learn no causes."""
        datastore = self.shim.datastore
        count("unstored_lineage", datastore)
        message = "the metadata of an object of %r has no room for %r: it was put without"
        log_once("unstored_lineage", datastore, "metadata", message, datastore, NAME)
        self._mark(call, "size")

    def _record(self, call: Call, reply: dict[str, Any]) -> None:
        if call.operation == "CreateMultipartUpload" and call.stored is not None:
            self._uploads[reply["UploadId"]] = call.stored
            while len(self._uploads) > MOST_UPLOADS:
                self._uploads.popitem(last=False)
        elif call.operation == "DeleteObjects":
            self._record_deletions(call, reply)
        elif call.kind is Kind.WRITE:
            self._record_write(call, reply)
        elif call.operation in SHOWS_METADATA:
            self._merge(call, reply)

    def _record_write(self, call: Call, reply: dict[str, Any]) -> None:
        if call.operation == "CompleteMultipartUpload" and self._stores:
            stored = self._uploads.pop(call.upload, Lineage())
            known = Lineage() if call.scope is None else call.scope.known
            if known.merge(stored) != stored:
                # Its metadata is that of the beginning.
                lineage_not_stored(self.shim.datastore, "a late part of an upload")
        version = reply.get("VersionId", NO_VERSION)
        if version == NO_VERSION:
            self._uncovered(call, _UNVERSIONED)
        elif call.place is None:
            self._uncovered(call)
        else:
            self._append(call, [self.shim.written(call.place, version)])

    def _record_deletions(self, call: Call, reply: dict[str, Any]) -> None:
        writes: list[WriteId] = []
        unknown = False
        for each in reply.get("Deleted") or ():
            place = Place.of(call.bucket, each.get("Key"), self.shim.region)
            marker = each.get("DeleteMarkerVersionId", NO_VERSION)
            if place is None or marker == NO_VERSION or "VersionId" in each:
                unknown = True  # A version that ended for good, or a bucket without versioning.
            else:
                writes.append(self.shim.written(place, marker))
        self._append(call, writes)
        if unknown:
            self._uncovered(call)
        if call.quiet:
            reply.pop("Deleted", None)

    def _merge(self, call: Call, reply: dict[str, Any]) -> None:
        """Let who reads depend on what was stored, and on the write that is shown."""
        if not self._stores:
            return
        lineage = lineage_in(reply.get("Metadata"), self.shim.datastore)
        version = reply.get("VersionId", NO_VERSION)
        if call.place is not None and version != NO_VERSION:
            known = Lineage() if call.scope is None else call.scope.known
            held = (each for each in known.only(self.shim.datastore) if each.version == version)
            write = next(held, self.shim.written(call.place, version))
            record_shown(self.shim, write)
            lineage = lineage.append(write)
        if call.scope is not None:
            call.scope.merge(lineage)
        else:
            record_read(lineage)

    def _hide(self, call: Call, reply: dict[str, Any]) -> None:
        if call.operation in SHOWS_METADATA and isinstance(reply.get("Metadata"), dict):
            reply["Metadata"] = without_ours(reply["Metadata"])


def _replaces(params: dict[str, Any]) -> bool:
    """Whether a copy has metadata of its own."""
    return params.get("MetadataDirective") == "REPLACE"


def _changes_nothing(params: dict[str, Any], source: dict[str, Any]) -> bool:
    """Whether a copy is of an object onto itself: refused, which metadata of ours would end."""
    onto = {"Bucket": params.get("Bucket"), "Key": params.get("Key")}
    return source == onto and not _CHANGES & params.keys()


def _source_of(source: Any) -> dict[str, Any] | None:
    """The source of a copy as ``HeadObject`` takes it, whichever way it is given."""
    if isinstance(source, dict):
        return dict(source)
    path, _, query = str(source).lstrip("/").partition("?")
    bucket, _, key = unquote(path).partition("/")
    if not (bucket and key):
        return None
    version = parse_qs(query).get("versionId", [])
    return {"Bucket": bucket, "Key": key, **({"VersionId": version[0]} if version else {})}
