"""Where posts are kept: one interface over the stores, with the library and without."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The datastore's name in lineages.
POST_STORAGE = "post-storage"

#: The module of each store's client.
MODULES = {
    "embedded": "_storage_embedded",
    "redis": "_storage_redis",
    "mysql": "_storage_mysql",
    "mariadb": "_storage_mysql",
    "mongodb": "_storage_mongodb",
}

Spec = dict[str, Any]
Region = Literal["writer", "reader"]


class PostStorage(Protocol):
    """A client of one region's server of the post storage. Thread-safe."""

    def write(self, post_id: str, value: bytes) -> None:
        """Write a post, or another version of it; returns when the store has acknowledged it."""
        ...

    def delete(self, post_id: str) -> None:
        """Delete a post; returns when the store has acknowledged it."""
        ...

    def read(self, post_id: str) -> bytes | None:
        """A post; None when it is not there."""
        ...

    def versions(self, post_ids: Sequence[str]) -> dict[str, int]:
        """The versions of those posts that are there, in one round trip."""
        ...

    def stored_bytes(self, post_id: str) -> int:
        """How much the store keeps for a post: keys, values and whatever lies beside."""
        ...

    def close(self) -> None:
        """Release the connections."""
        ...


def post_value(version: int, length: int) -> bytes:
    """A post of about *length* bytes that states its version."""
    head = b"%d:" % version
    return head + b"x" * max(length - len(head), 0)


def version_of(value: bytes | None) -> int:
    """The version that a post states; 0 when it is not there."""
    return 0 if value is None else int(value.partition(b":")[0])


def open_post_storage(spec: Spec, *, region: Region, library: bool) -> PostStorage:
    """A client of the server of *region*.

    Args:
        spec: where the servers are.
        region: ``writer`` or ``reader``.
        library: through the library's shim, which this process then has registered for barriers;
            or by the store's own client, as if the library did not exist.
    """
    module = import_module(f".{MODULES[spec['store']]}", __package__)
    made: PostStorage = (module.Shimmed if library else module.Plain)(spec, region)
    return made
