"""Posts in MongoDB: a replica set's primary and a secondary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import bson
import pymongo

from ._storage import POST_STORAGE, version_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antipode.shim import ReadsFrom

    from ._storage import Region, Spec

#: More than there are threads that may ask at once.
_CONNECTIONS = 512
_DATABASE, _COLLECTION = "benchmarks", "posts"
#: More than enough characters to hold the version at the beginning of a post.
_HEAD = 20


class Plain:
    """Without the library: values alone."""

    def __init__(self, spec: Spec, region: Region) -> None:
        """Connect to the server of *region*."""
        host, port = spec[region]
        self._client: Any = pymongo.MongoClient(
            host,
            port,
            directConnection=True,
            maxPoolSize=_CONNECTIONS,
            # A write is acknowledged in its own region: what the stores of the paper do.
            w=1,
            readPreference="primaryPreferred",
        )
        self._posts: Any = self._client[_DATABASE][_COLLECTION]

    def write(self, post_id: str, value: bytes) -> None:
        """Write a post."""
        self._posts.replace_one({"_id": post_id}, {"value": value}, upsert=True)

    def delete(self, post_id: str) -> None:
        """Delete a post."""
        self._posts.delete_one({"_id": post_id})

    def read(self, post_id: str) -> bytes | None:
        """A post, if it is there."""
        found = self._posts.find_one({"_id": post_id}, {"value": 1})
        return None if found is None else bytes(found["value"])

    def versions(self, post_ids: Sequence[str]) -> dict[str, int]:
        """The versions of the posts that are there."""
        found = self._posts.find({"_id": {"$in": list(post_ids)}}, {"value": 1})
        return {each["_id"]: version_of(bytes(each["value"][:_HEAD])) for each in found}

    def stored_bytes(self, post_id: str) -> int:
        """The length of the post's document in BSON."""
        found = self._posts.find_one({"_id": post_id})
        return 0 if found is None else len(bson.encode(found))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class Shimmed(Plain):
    """With the library: each write stores its lineage in the document, each read returns it."""

    def __init__(self, spec: Spec, region: Region) -> None:
        """Connect to the server of *region* and register its shim."""
        from antipode_shims import mongodb

        super().__init__(spec, region)
        reads_from: ReadsFrom = "replica" if region == "reader" else "primary"
        self._shim = mongodb.shim(
            POST_STORAGE,
            self._client,
            database=_DATABASE,
            collection=_COLLECTION,
            reads_from=reads_from,
        )

    def write(self, post_id: str, value: bytes) -> None:
        """Write a post; the current lineage then has it."""
        self._shim.write(post_id, value)

    def delete(self, post_id: str) -> None:
        """Delete a post; the current lineage then has it."""
        self._shim.delete(post_id)

    def read(self, post_id: str) -> bytes | None:
        """A post; the current lineage then has what it was written with."""
        value = self._shim.read(post_id)[0]
        return None if value is None else bytes(value)

    def close(self) -> None:
        """Close the connections and the shim."""
        self._shim.close()
        super().close()
