"""Posts in PostgreSQL: a primary and its standby."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import sqlalchemy
from sqlalchemy import bindparam, text

from ._storage import POST_STORAGE, version_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antipode.shim import ReadsFrom

    from ._storage import Place, Spec

#: Of a pool. Who finds none free waits: two processes with as many, and what else there is, are
#: below what a server allows.
_CONNECTIONS = 20
#: More than enough bytes to hold the version at the beginning of a post.
_HEAD = 20

_WRITE = text(
    "INSERT INTO antipode_kv (k, v) VALUES (:k, :v) ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v"
)
_DELETE = text("DELETE FROM antipode_kv WHERE k = :k")
_READ = text("SELECT v FROM antipode_kv WHERE k = :k")
_VERSIONS = text(
    f"SELECT k, substring(v FOR {_HEAD}) AS head FROM antipode_kv WHERE k IN :ks"  # noqa: S608
).bindparams(bindparam("ks", expanding=True))
_BYTES = text(
    "SELECT coalesce(sum(length(k) + length(v) + coalesce(length(l), 0) + coalesce(length(d), 0)),"
    " 0) FROM antipode_kv WHERE k = :k"
)


def declare(spec: Spec) -> None:
    """Make the tables, in the writer's region; the standby copies them."""
    from antipode_shims.postgresql import ddl

    engine = sqlalchemy.create_engine(spec["writer"])
    with engine.begin() as connection:
        for statement in ddl():
            connection.execute(text(statement))
    engine.dispose()


class Plain:
    """Without the library: values alone."""

    BATCHED: ClassVar[bool] = True

    def __init__(self, spec: Spec, place: Place) -> None:
        """Connect to the server at *place*."""
        self.engine: Any = sqlalchemy.create_engine(
            spec[place],
            pool_size=_CONNECTIONS,
            max_overflow=0,
            isolation_level="AUTOCOMMIT",
            pool_reset_on_return=None,
        )

    def write(self, post_id: str, value: bytes | None) -> None:
        """Write or delete a post."""
        with self.engine.connect() as connection:
            if value is None:
                connection.execute(_DELETE, {"k": post_id.encode()})
            else:
                connection.execute(_WRITE, {"k": post_id.encode(), "v": value})

    def read(self, post_id: str) -> bytes | None:
        """A post, if it is there."""
        with self.engine.connect() as connection:
            value: bytes | None = connection.execute(_READ, {"k": post_id.encode()}).scalar()
            return value

    def versions(self, post_ids: Sequence[str]) -> dict[str, int]:
        """The versions of the posts that are there."""
        with self.engine.connect() as connection:
            keys = [post_id.encode() for post_id in post_ids]
            found = connection.execute(_VERSIONS, {"ks": keys})
            return {row.k.decode(): version_of(row.head) for row in found}

    def stored_bytes(self, post_id: str) -> int:
        """The length of key, value, lineage and digest in the post's row."""
        with self.engine.connect() as connection:
            return int(connection.execute(_BYTES, {"k": post_id.encode()}).scalar())

    def commands(self) -> int | None:
        """Nobody counts statements without an extension."""
        return None

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()


class Instrumented(Plain):
    """With the library: what the engine's connections commit enters the current lineage."""

    def __init__(self, spec: Spec, place: Place) -> None:
        """Connect to the server at *place*."""
        from antipode_shims import postgresql

        super().__init__(spec, place)
        reads_from: ReadsFrom = "replica" if place == "reader" else "primary"
        postgresql.instrument_engine(self.engine, datastore=POST_STORAGE, reads_from=reads_from)

    def close(self) -> None:
        """Close the connections, and let barriers know nothing of them any more."""
        from antipode_shims import postgresql

        postgresql.uninstrument_engine(self.engine)
        super().close()


class Shimmed(Plain):
    """With the library: each write stores its lineage with the value, each read returns it."""

    def __init__(self, spec: Spec, place: Place) -> None:
        """Connect to the server at *place* and register its shim."""
        from antipode_shims import postgresql

        super().__init__(spec, place)
        reads_from: ReadsFrom = "replica" if place == "reader" else "primary"
        self._shim = postgresql.shim(POST_STORAGE, self.engine, reads_from=reads_from)

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
