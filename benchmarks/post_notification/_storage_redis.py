"""Posts in Redis: a primary and its replica."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import redis

from ._storage import POST_STORAGE, version_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antipode.shim import ReadsFrom

    from ._storage import Place, Spec

#: More than there are threads that may ask at once.
_CONNECTIONS = 512
#: More than enough characters to hold the version at the beginning of a post.
_HEAD = 19


class Plain:
    """Without the library: values alone."""

    BATCHED: ClassVar[bool] = False

    def __init__(self, spec: Spec, place: Place) -> None:
        """Connect to the server at *place*."""
        host, port = spec[place]
        self.client: Any = redis.Redis(host=host, port=port, max_connections=_CONNECTIONS)
        self.client.ping()

    def write(self, post_id: str, value: bytes | None) -> None:
        """Write or delete a post."""
        if value is None:
            self.client.delete(post_id)
        else:
            self.client.set(post_id, value)

    def read(self, post_id: str) -> bytes | None:
        """A post, if it is there."""
        value: bytes | None = self.client.get(post_id)
        return value

    def versions(self, post_ids: Sequence[str]) -> dict[str, int]:
        """The versions of the posts that are there."""
        pipeline = self.client.pipeline(transaction=False)
        for post_id in post_ids:
            pipeline.getrange(post_id, 0, _HEAD)
        heads = zip(post_ids, pipeline.execute(), strict=True)
        return {post_id: version_of(head) for post_id, head in heads if head}

    def stored_bytes(self, post_id: str) -> int:
        """What ``MEMORY USAGE`` says of the post and of its companion."""
        pipeline = self.client.pipeline(transaction=False)
        for key in (post_id, f"ap:{post_id}"):
            pipeline.memory_usage(key)
        return sum(size or 0 for size in pipeline.execute())

    def commands(self) -> int | None:
        """Those of all clients."""
        return int(self.client.info("stats")["total_commands_processed"])

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


class Instrumented(Plain):
    """With the library: the client's own writes enter the current lineage."""

    def __init__(self, spec: Spec, place: Place) -> None:
        """Connect to the server at *place*."""
        from antipode_shims import redis as redis_shim

        super().__init__(spec, place)
        reads_from: ReadsFrom = "replica" if place == "reader" else "primary"
        redis_shim.instrument_client(self.client, datastore=POST_STORAGE, reads_from=reads_from)

    def close(self) -> None:
        """Close the connections, and let barriers know nothing of them any more."""
        from antipode_shims import redis as redis_shim

        redis_shim.uninstrument_client(self.client)
        super().close()


class Shimmed(Plain):
    """With the library: each write stores its lineage beside the value, each read returns it."""

    def __init__(self, spec: Spec, place: Place) -> None:
        """Connect to the server at *place* and register its shim."""
        from antipode_shims import redis as redis_shim

        super().__init__(spec, place)
        reads_from: ReadsFrom = "replica" if place == "reader" else "primary"
        self._shim = redis_shim.shim(POST_STORAGE, self.client, reads_from=reads_from)

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
