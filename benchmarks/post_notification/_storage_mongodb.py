"""Posts in MongoDB: a replica set's primary and a secondary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import bson
import pymongo

from ._storage import POST_STORAGE, version_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antipode.shim import ReadsFrom

    from ._storage import Place, Spec

#: More than there are threads that may ask at once.
_CONNECTIONS = 512
_DATABASE, _COLLECTION = "benchmarks", "posts"
#: More than enough characters to hold the version at the beginning of a post.
_HEAD = 20
#: The counters of what clients send.
_COMMANDS = ("insert", "query", "update", "delete")


def put(posts: Any, post_id: str, value: bytes | None, **options: Any) -> None:  # noqa: ANN401
    """Write a post into a collection, or delete it; *options* are those of the driver's calls."""
    if value is None:
        posts.delete_one({"_id": post_id}, **options)
    else:
        posts.replace_one({"_id": post_id}, {"value": value}, upsert=True, **options)


def get(posts: Any, post_id: str, **options: Any) -> bytes | None:  # noqa: ANN401
    """A post of a collection, if it is there; *options* are those of the driver's call."""
    found = posts.find_one({"_id": post_id}, {"value": 1}, **options)
    return None if found is None else bytes(found["value"])


class Plain:
    """Without the library: values alone."""

    BATCHED: ClassVar[bool] = True

    def __init__(self, spec: Spec, place: Place) -> None:
        """Connect to the server at *place*."""
        host, port = spec[place]
        self.client: Any = pymongo.MongoClient(
            host,
            port,
            directConnection=True,
            maxPoolSize=_CONNECTIONS,
            # A write is acknowledged in its own region: what the stores of the paper do.
            w=1,
            readPreference="primaryPreferred",
        )
        self.posts: Any = self.client[_DATABASE][_COLLECTION]

    def write(self, post_id: str, value: bytes | None) -> None:
        """Write or delete a post."""
        put(self.posts, post_id, value)

    def read(self, post_id: str) -> bytes | None:
        """A post, if it is there."""
        return get(self.posts, post_id)

    def versions(self, post_ids: Sequence[str]) -> dict[str, int]:
        """The versions of the posts that are there."""
        found = self.posts.find({"_id": {"$in": list(post_ids)}}, {"value": 1})
        return {each["_id"]: version_of(bytes(each["value"][:_HEAD])) for each in found}

    def stored_bytes(self, post_id: str) -> int:
        """The length of the post's document in BSON."""
        found = self.posts.find_one({"_id": post_id})
        return 0 if found is None else len(bson.encode(found))

    def commands(self) -> int | None:
        """Reads and writes of all clients; what members ask each other is none of them."""
        counted = self.client.admin.command("serverStatus")["opcounters"]
        return sum(int(counted[name]) for name in _COMMANDS)

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


class Instrumented(Plain):
    """With the library: the client's own writes enter the current lineage."""

    def __init__(self, spec: Spec, place: Place) -> None:
        """Connect to the server at *place*."""
        from antipode_shims import mongodb

        super().__init__(spec, place)
        reads_from: ReadsFrom = "replica" if place == "reader" else "primary"
        mongodb.instrument_client(self.client, datastore=POST_STORAGE, reads_from=reads_from)

    def close(self) -> None:
        """Close the connections, and let barriers know nothing of them any more."""
        from antipode_shims import mongodb

        mongodb.uninstrument_client(self.client)
        super().close()


class Shimmed(Plain):
    """With the library: each write stores its lineage in the document, each read returns it."""

    def __init__(self, spec: Spec, place: Place) -> None:
        """Connect to the server at *place* and register its shim."""
        from antipode_shims import mongodb

        super().__init__(spec, place)
        reads_from: ReadsFrom = "replica" if place == "reader" else "primary"
        self._shim = mongodb.shim(
            POST_STORAGE,
            self.client,
            database=_DATABASE,
            collection=_COLLECTION,
            reads_from=reads_from,
        )

    def write(self, post_id: str, value: bytes | None) -> None:
        """Write or delete a post; the current lineage then has it."""
        if value is None:
            self._shim.delete(post_id)
        else:
            self._shim.write(post_id, value)

    def read(self, post_id: str) -> bytes | None:
        """A post; the current lineage then has what it was written with."""
        value = self._shim.read(post_id)[0]
        return None if value is None else bytes(value)

    def close(self) -> None:
        """Close the connections and the shim."""
        self._shim.close()
        super().close()
