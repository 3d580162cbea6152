"""Posts in S3: two regions of an emulator, or of SeaweedFS, not of AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from . import _aws
from ._storage import POST_STORAGE, version_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._storage import Place, Spec

_BUCKET = "posts"


class Plain:
    """Without the library: objects alone."""

    BATCHED: ClassVar[bool] = False

    def __init__(self, spec: Spec, place: Place) -> None:
        """Make a client of the region at *place*."""
        self.client: Any = _aws.client("s3", spec, place)

    def write(self, post_id: str, value: bytes | None) -> None:
        """Write or delete a post."""
        if value is None:
            self.client.delete_object(Bucket=_BUCKET, Key=post_id)
        else:
            self.client.put_object(Bucket=_BUCKET, Key=post_id, Body=value)

    def read(self, post_id: str) -> bytes | None:
        """A post, if it is there."""
        try:
            found: bytes = self.client.get_object(Bucket=_BUCKET, Key=post_id)["Body"].read()
        except self.client.exceptions.NoSuchKey:
            return None
        return found

    def versions(self, post_ids: Sequence[str]) -> dict[str, int]:
        """The versions of the posts that are there."""
        found = {post_id: Plain.read(self, post_id) for post_id in post_ids}
        return {post_id: version_of(value) for post_id, value in found.items() if value is not None}

    def stored_bytes(self, post_id: str) -> int:
        """The content, the key and the user metadata; nothing of a deleted post."""
        try:
            about = self.client.head_object(Bucket=_BUCKET, Key=post_id)
        except self.client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] != "404":
                raise
            return 0
        metadata = sum(len(name) + len(value) for name, value in about["Metadata"].items())
        return int(about["ContentLength"]) + len(post_id) + metadata

    def commands(self) -> int | None:
        """No server counts them."""
        return None

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


class Instrumented(Plain):
    """With the library: the client's own writes enter the current lineage."""

    def __init__(self, spec: Spec, place: Place) -> None:
        """Make a client of the region at *place*."""
        from antipode_shims import s3

        super().__init__(spec, place)
        s3.instrument_client(self.client, datastore=POST_STORAGE, **_aws.options(spec, place))

    def close(self) -> None:
        """Close the connections, and let barriers know nothing of them any more."""
        from antipode_shims import s3

        s3.uninstrument_client(self.client)
        super().close()


class Shimmed(Plain):
    """With the library: each write stores its lineage with the object, each read returns it."""

    def __init__(self, spec: Spec, place: Place) -> None:
        """Make a client of the region at *place*, and register its shim."""
        from antipode_shims import s3

        super().__init__(spec, place)
        options = _aws.options(spec, place)
        self._shim = s3.shim(POST_STORAGE, self.client, bucket=_BUCKET, **options)

    def write(self, post_id: str, value: bytes | None) -> None:
        """Write or delete a post; the current lineage then has it."""
        if value is None:
            self._shim.delete(post_id)
        else:
            self._shim.write(post_id, value)

    def read(self, post_id: str) -> bytes | None:
        """A post; the current lineage then has what it was written with."""
        value: bytes | None = self._shim.read(post_id)[0]
        return value

    def close(self) -> None:
        """Close the connections and the shim."""
        self._shim.close()
        super().close()
