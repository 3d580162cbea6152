"""Posts in MySQL or MariaDB: a primary and its replica."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

import sqlalchemy
from sqlalchemy import bindparam, text
from sqlalchemy.engine.default import DefaultDialect

from ._storage import POST_STORAGE, version_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antipode.shim import ReadsFrom

    from ._storage import Place, Spec

#: Of a pool. Who finds none free waits: two processes with as many, and what else there is, are
#: below what a server allows, and no connection is made and thrown away for one call.
_CONNECTIONS = 40
#: More than enough characters to hold the version at the beginning of a post.
_HEAD = 20
#: Nothing is left to roll back, so a read needs no second round trip; from SQLAlchemy 2.0.43.
_QUIET: dict[str, Any] = (
    {"skip_autocommit_rollback": True}
    if "skip_autocommit_rollback" in signature(DefaultDialect.__init__).parameters
    else {}
)

_WRITE = text(
    "INSERT INTO antipode_kv (k, v) VALUES (:k, :v) ON DUPLICATE KEY UPDATE v = VALUES(v)"
)
_DELETE = text("DELETE FROM antipode_kv WHERE k = :k")
_READ = text("SELECT v FROM antipode_kv WHERE k = :k")
_VERSIONS = text("SELECT k, LEFT(v, :head) AS head FROM antipode_kv WHERE k IN :ks").bindparams(
    bindparam("ks", expanding=True)
)
_BYTES = text(
    "SELECT COALESCE(SUM(LENGTH(k) + LENGTH(v) + COALESCE(LENGTH(_ap), 0)), 0)"
    " FROM antipode_kv WHERE k = :k"
)
_COMMANDS = text("SHOW GLOBAL STATUS LIKE 'Questions'")


def put(connection: Any, post_id: str, value: bytes | None) -> None:  # noqa: ANN401
    """Write or delete a post over a connection."""
    if value is None:
        connection.execute(_DELETE, {"k": post_id})
    else:
        connection.execute(_WRITE, {"k": post_id, "v": value})


def get(connection: Any, post_id: str) -> bytes | None:  # noqa: ANN401
    """A post over a connection, if it is there."""
    value: bytes | None = connection.execute(_READ, {"k": post_id}).scalar()
    return value


def declare(spec: Spec) -> None:
    """Make the tables, in the writer's region; the replica copies them."""
    from antipode_shims.mysql import shim

    engine = sqlalchemy.create_engine(spec["writer"])
    with shim(POST_STORAGE, engine) as made:
        statements = made.ddl()
    with engine.begin() as connection:
        for statement in statements:
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
            **_QUIET,
        )

    def write(self, post_id: str, value: bytes | None) -> None:
        """Write or delete a post."""
        with self.engine.connect() as connection:
            put(connection, post_id, value)

    def read(self, post_id: str) -> bytes | None:
        """A post, if it is there."""
        with self.engine.connect() as connection:
            return get(connection, post_id)

    def versions(self, post_ids: Sequence[str]) -> dict[str, int]:
        """The versions of the posts that are there."""
        with self.engine.connect() as connection:
            found = connection.execute(_VERSIONS, {"ks": list(post_ids), "head": _HEAD})
            return {row.k.decode(): version_of(row.head) for row in found}

    def stored_bytes(self, post_id: str) -> int:
        """The length of key, value and lineage in the post's row."""
        with self.engine.connect() as connection:
            return int(connection.execute(_BYTES, {"k": post_id}).scalar())

    def commands(self) -> int | None:
        """Statements of all clients."""
        with self.engine.connect() as connection:
            return int(connection.execute(_COMMANDS).one()[1])

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()


class Instrumented(Plain):
    """With the library: what the engine's connections commit enters the current lineage."""

    def __init__(self, spec: Spec, place: Place) -> None:
        """Connect to the server at *place*."""
        from antipode_shims import mysql

        super().__init__(spec, place)
        reads_from: ReadsFrom = "replica" if place == "reader" else "primary"
        mysql.instrument_engine(self.engine, datastore=POST_STORAGE, reads_from=reads_from)

    def close(self) -> None:
        """Close the connections, and let barriers know nothing of them any more."""
        from antipode_shims import mysql

        mysql.uninstrument_engine(self.engine)
        super().close()


class Shimmed(Plain):
    """With the library: each write stores its lineage beside the value, each read returns it."""

    def __init__(self, spec: Spec, place: Place) -> None:
        """Connect to the server at *place* and register its shim."""
        from antipode_shims import mysql

        super().__init__(spec, place)
        reads_from: ReadsFrom = "replica" if place == "reader" else "primary"
        self._shim = mysql.shim(POST_STORAGE, self.engine, reads_from=reads_from)

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
