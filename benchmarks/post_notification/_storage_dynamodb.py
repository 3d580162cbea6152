"""Posts in DynamoDB: two regions of an emulator, not of AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from . import _aws
from ._storage import POST_STORAGE, version_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._storage import Place, Spec

_TABLE = "posts"
_MOST_KEYS = 100


class Plain:
    """Without the library: values alone."""

    BATCHED: ClassVar[bool] = True

    def __init__(self, spec: Spec, place: Place) -> None:
        """Make a client of the region at *place*."""
        self.client: Any = _aws.client("dynamodb", spec, place)

    def write(self, post_id: str, value: bytes | None) -> None:
        """Write or delete a post."""
        key = {"id": {"S": post_id}}
        if value is None:
            self.client.delete_item(TableName=_TABLE, Key=key)
        else:
            self.client.put_item(TableName=_TABLE, Item={**key, "value": {"B": value}})

    def read(self, post_id: str) -> bytes | None:
        """A post, if it is there."""
        found = self.client.get_item(TableName=_TABLE, Key={"id": {"S": post_id}}).get("Item")
        return None if found is None else bytes(found["value"]["B"])

    def versions(self, post_ids: Sequence[str]) -> dict[str, int]:
        """The versions of the posts that are there."""
        found: dict[str, int] = {}
        for start in range(0, len(post_ids), _MOST_KEYS):
            keys = [{"id": {"S": each}} for each in post_ids[start : start + _MOST_KEYS]]
            asked = {_TABLE: {"Keys": keys, "ConsistentRead": True}}
            for item in self.client.batch_get_item(RequestItems=asked)["Responses"][_TABLE]:
                found[item["id"]["S"]] = version_of(bytes(item["value"]["B"]))
        return found

    def stored_bytes(self, post_id: str) -> int:
        """The names and values of all attributes."""
        key = {"id": {"S": post_id}}
        item = self.client.get_item(TableName=_TABLE, Key=key).get("Item", {})
        values = (value for typed in item.values() for value in typed.values())
        return sum(map(len, item)) + sum(map(len, values))

    def commands(self) -> int | None:
        """The emulator counts none."""
        return None

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


class Instrumented(Plain):
    """With the library: the client's own writes enter the current lineage."""

    def __init__(self, spec: Spec, place: Place) -> None:
        """Make a client of the region at *place*."""
        from antipode_shims import dynamodb

        super().__init__(spec, place)
        options = _aws.options(spec, place)
        dynamodb.instrument_client(self.client, datastore=POST_STORAGE, **options)

    def close(self) -> None:
        """Close the connections, and let barriers know nothing of them any more."""
        from antipode_shims import dynamodb

        dynamodb.uninstrument_client(self.client)
        super().close()


class Shimmed(Plain):
    """With the library: each write stores its lineage with the value, each read returns it."""

    def __init__(self, spec: Spec, place: Place) -> None:
        """Make a client of the region at *place*, and register its shim."""
        from antipode_shims import dynamodb

        super().__init__(spec, place)
        options = _aws.options(spec, place)
        self._shim = dynamodb.shim(POST_STORAGE, self.client, table=_TABLE, **options)

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
