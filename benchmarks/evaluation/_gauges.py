"""How much room posts take in a store: what was written, and the store's own count."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol

from antipode_shims.embedded import EmbeddedStore
from benchmarks.post_notification._storage import open_post_storage

if TYPE_CHECKING:
    from antipode_shims.embedded import EmbeddedTopology
    from antipode_testing import (
        MariaDBTopology,
        MongoDBTopology,
        MySQLTopology,
        PostgreSQLTopology,
        RedisTopology,
        Topology,
    )


class Gauge(Protocol):
    """Asks the writer region's server about posts."""

    #: What `total` counts, for a reader.
    counts: str

    def payload(self, post_id: str) -> int:
        """Bytes of a post's key and value, and of what lies beside."""
        ...

    def total(self) -> int:
        """Bytes that all posts take in the store."""
        ...

    def close(self) -> None:
        """Release the connections."""
        ...


class EmbeddedGauge:
    """A SQLite file."""

    counts = "the file, once its write-ahead log is in it"

    def __init__(self, topology: EmbeddedTopology, *, library: bool) -> None:  # noqa: ARG002 - as the others
        """Open the writer's file."""
        self._path = topology.primary
        self._store = EmbeddedStore(self._path)

    def payload(self, post_id: str) -> int:
        """The length of key, value and lineage in the newest entry."""
        entry = self._store.get(post_id)
        if entry is None:
            return 0
        return len(entry.key) + len(entry.value or b"") + len(entry.lineage or "")

    def total(self) -> int:
        """The pages of the file."""
        with closing(sqlite3.connect(self._path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            (size,) = connection.execute("PRAGMA page_size").fetchone()
        return int(pages) * int(size)

    def close(self) -> None:
        """Release the file."""
        self._store.close()


class RedisGauge:
    """A Redis server."""

    counts = "`used_memory` of `INFO`"

    def __init__(self, topology: RedisTopology, *, library: bool) -> None:  # noqa: ARG002
        """Connect to the writer's server."""
        import redis

        host, port = topology.primary
        self._client: Any = redis.Redis(host=host, port=port)

    def payload(self, post_id: str) -> int:
        """The length of the post and of its companion, keys included."""
        keys = [post_id, f"ap:{post_id}"]
        found = self._client.mget(keys)
        return sum(
            len(key) + len(value)
            for key, value in zip(keys, found, strict=True)
            if value is not None
        )

    def total(self) -> int:
        """What the server has allocated."""
        return int(self._client.info("memory")["used_memory"])

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


class SQLGauge:
    """A MySQL or MariaDB server."""

    counts = "leaf pages of the table, after `ANALYZE TABLE`"

    def __init__(self, topology: MySQLTopology | MariaDBTopology, *, library: bool) -> None:
        """Ask the writer's server; without the library its column is dropped as well."""
        self._execute = topology.execute
        self._table = f"{topology.database}.antipode_kv"
        self._database = topology.database
        self._length = "LENGTH(k) + LENGTH(v)" + (" + LENGTH(_ap)" if library else "")
        if not library:
            self._execute(f"ALTER TABLE {self._table} DROP COLUMN _ap")

    def payload(self, post_id: str) -> int:
        """The length of key, value and lineage in the post's row."""
        statement = f"SELECT {self._length} AS n FROM {self._table} WHERE k = %s"  # noqa: S608
        return int(self._execute(statement, post_id)[0]["n"])

    def total(self) -> int:
        """The pages in which rows are."""
        self._execute(f"ANALYZE TABLE {self._table}")
        found = self._execute(
            "SELECT stat_value * @@innodb_page_size AS n FROM mysql.innodb_index_stats"
            " WHERE database_name = %s AND table_name = 'antipode_kv'"
            " AND index_name = 'PRIMARY' AND stat_name = 'n_leaf_pages'",
            self._database,
        )
        return int(found[0]["n"])

    def close(self) -> None:
        """Leave the connection to the topology."""


class PostgreSQLGauge:
    """A PostgreSQL primary."""

    counts = "`pg_table_size`: the table with what is too long for its pages"

    def __init__(self, topology: PostgreSQLTopology, *, library: bool) -> None:
        """Ask the writer's server; without the library its columns are dropped as well."""
        self._execute = topology.execute
        ours = ("l", "d") if library else ()
        self._length = " + ".join(f"coalesce(length({each}), 0)" for each in ("k", "v", *ours))
        if not library:
            self._execute("ALTER TABLE antipode_kv DROP COLUMN l, DROP COLUMN d")

    def payload(self, post_id: str) -> int:
        """The length of key, value, lineage and digest in the post's row."""
        statement = f"SELECT {self._length} AS n FROM antipode_kv WHERE k = %s"  # noqa: S608
        return int(self._execute(statement, post_id.encode())[0]["n"])

    def total(self) -> int:
        """What the table takes on disk."""
        return int(self._execute("SELECT pg_table_size('antipode_kv') AS n")[0]["n"])

    def close(self) -> None:
        """Leave the connection to the topology."""


class MongoGauge:
    """A MongoDB primary."""

    counts = "`storageSize` of `collStats`, compressed, after a checkpoint"

    def __init__(self, topology: MongoDBTopology, *, library: bool) -> None:  # noqa: ARG002
        """Connect to the writer's server."""
        import pymongo

        host, port = topology.primary
        self._client: Any = pymongo.MongoClient(host, port, directConnection=True)
        self._database: Any = self._client["benchmarks"]

    def payload(self, post_id: str) -> int:
        """The length of the post's document in BSON."""
        import bson

        return len(bson.encode(self._database["posts"].find_one({"_id": post_id})))

    def total(self) -> int:
        """What the collection takes on disk."""
        self._client.admin.command("fsync")
        return int(self._database.command("collStats", "posts")["storageSize"])

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class ClientGauge:
    """A server that says nothing of its own room: what its client is shown is counted."""

    counts = "no count of its own"

    def __init__(self, topology: Topology, *, library: bool) -> None:  # noqa: ARG002
        """Ask the writer's region as the application does."""
        spec = {"store": topology.store, "writer": topology.primary}
        self._storage = open_post_storage(spec, place="writer")

    def payload(self, post_id: str) -> int:
        """What the application counts as stored: names and values of attributes, or metadata."""
        return self._storage.stored_bytes(post_id)

    def total(self) -> int:
        """Nothing is counted."""
        return 0

    def close(self) -> None:
        """Close the connections."""
        self._storage.close()


_GAUGES: dict[str, Any] = {
    "embedded": EmbeddedGauge,
    "redis": RedisGauge,
    "mysql": SQLGauge,
    "mariadb": SQLGauge,
    "mongodb": MongoGauge,
    "postgresql": PostgreSQLGauge,
    "dynamodb": ClientGauge,
    "seaweedfs": ClientGauge,
}


def open_gauge(topology: Topology, *, library: bool) -> Gauge:
    """The gauge of a store that runs; without *library* nothing of it is in the tables."""
    made: Gauge = _GAUGES[topology.store](topology, library=library)
    return made
