"""Posts in the embedded store: a SQLite file for each region."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from antipode_shims.embedded import EmbeddedStore

from ._storage import POST_STORAGE, version_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antipode.shim import ReadsFrom

    from ._storage import Place, Spec


class Plain:
    """Without the library: values alone."""

    BATCHED: ClassVar[bool] = False

    def __init__(self, spec: Spec, place: Place) -> None:
        """Open the file at *place*."""
        self._store = EmbeddedStore(spec[place])

    def write(self, post_id: str, value: bytes | None) -> None:
        """Write or delete a post."""
        if value is None:
            self._store.delete(post_id)
        else:
            self._store.put(post_id, value)

    def read(self, post_id: str) -> bytes | None:
        """A post, if it is there."""
        entry = self._store.get(post_id)
        return None if entry is None else entry.value

    def versions(self, post_ids: Sequence[str]) -> dict[str, int]:
        """The versions of the posts that are there."""
        found = ((post_id, version_of(self.read(post_id))) for post_id in post_ids)
        return {post_id: version for post_id, version in found if version}

    def stored_bytes(self, post_id: str) -> int:
        """The length of key, value and lineage in the newest entry."""
        entry = self._store.get(post_id)
        if entry is None:
            return 0
        return len(entry.key) + len(entry.value or b"") + len(entry.lineage or "")

    def commands(self) -> int | None:
        """There is no server to count them."""
        return None

    def close(self) -> None:
        """Release the file."""
        self._store.close()


class Shimmed(Plain):
    """With the library: each write stores its lineage beside the value, each read returns it."""

    def __init__(self, spec: Spec, place: Place) -> None:
        """Open the file at *place* and register its shim."""
        from antipode_shims import embedded

        super().__init__(spec, place)
        reads_from: ReadsFrom = "replica" if place == "reader" else "primary"
        self._shim = embedded.shim(POST_STORAGE, spec[place], reads_from=reads_from)

    def write(self, post_id: str, value: bytes | None) -> None:
        """Write or delete a post; the current lineage then has it."""
        if value is None:
            self._shim.delete(post_id)
        else:
            self._shim.write(post_id, value)

    def read(self, post_id: str) -> bytes | None:
        """A post; the current lineage then has what it was written with."""
        value, _ = self._shim.read(post_id)
        return value

    def close(self) -> None:
        """Release the file and the shim."""
        self._shim.close()
        super().close()
