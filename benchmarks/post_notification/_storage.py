"""Where posts are kept: one interface over the stores, with the library and without."""

from __future__ import annotations

import threading
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

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
    "postgresql": "_storage_postgresql",
    "mongodb": "_storage_mongodb",
    "dynamodb": "_storage_dynamodb",
    "s3": "_storage_s3",
    "seaweedfs": "_storage_s3",
}
#: Those whose posts are rows of a table, which somebody must have made.
OF_TABLES = ("mysql", "mariadb", "postgresql")

Spec = dict[str, Any]
#: Where a client stands, and what it talks to: its own region's server, the primary of the writer's
#: or the replica of the reader's; or, in the reader's region, the primary across the link.
Place = Literal["writer", "reader", "across"]
#: Through the store's own client as if the library did not exist, through the library's shim with
#: the lineage beside the value, or through the store's own client that the library instruments.
Face = Literal["plain", "shim", "client"]
_CLASSES: dict[Face, str] = {"plain": "Plain", "shim": "Shimmed", "client": "Instrumented"}


class PostStorage(Protocol):
    """A client of one server of the post storage. Thread-safe.

    Attributes:
        BATCHED: whether `versions` is one command to the server, however many posts it asks for.
    """

    BATCHED: ClassVar[bool]

    def write(self, post_id: str, value: bytes | None) -> None:
        """Write a post or another version of it, or delete it where there is no *value*.

        Returns when the store has acknowledged it.
        """
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

    def commands(self) -> int | None:
        """How many commands the server has processed by its own count; None: it has none."""
        ...

    def close(self) -> None:
        """Release the connections."""
        ...


class Across:
    """The primary, as the reader's region sees it: reads are counted and take the link's time.

    What talks to a server does so through a proxy that delays it; a file has no network, so reads
    of it wait here.

    Attributes:
        reads: how many there were.
    """

    def __init__(self, spec: Spec, face: Face) -> None:
        """Connect, in the way of *face*."""
        self.reads = 0
        self._storage = open_post_storage(spec, place="across", face=face)
        self._link_s = spec["link_ms"] / 1000 if spec["store"] == "embedded" else 0.0
        self._counting = threading.Lock()

    def read(self, post_id: str) -> bytes | None:
        """A post; None when it is not there."""
        with self._counting:
            self.reads += 1
        time.sleep(self._link_s)
        value = self._storage.read(post_id)
        time.sleep(self._link_s)
        return value


def declare(spec: Spec) -> None:
    """Make the tables of posts in the writer's region; replicas copy them."""
    import_module(f".{MODULES[spec['store']]}", __package__).declare(spec)


def post_value(version: int, length: int) -> bytes:
    """A post of about *length* bytes that states its version."""
    head = b"%d:" % version
    return head + b"x" * max(length - len(head), 0)


def version_of(value: bytes | None) -> int:
    """The version that a post states; 0 when it is not there."""
    return 0 if value is None else int(value.partition(b":")[0])


def open_post_storage(spec: Spec, *, place: Place, face: Face = "plain") -> PostStorage:
    """A client at *place*.

    Args:
        spec: where the servers are.
        place: whose server it talks to, from which region.
        face: how; unless ``plain``, this process then has the datastore registered for barriers.
    """
    made: PostStorage = client_class(spec["store"], face)(spec, place)
    return made


def client_class(store: str, face: Face) -> Any:  # noqa: ANN401 - a class of some module
    """The class of a store's clients."""
    return getattr(import_module(f".{MODULES[store]}", __package__), _CLASSES[face])
